"""Executors, which compute local updates: their interface, jobs and results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from channels.arrays import BoolArray, IntArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling
from wirelessfl.base.wording import shown
from wirelessfl.data.dataset import widened
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.batches import Batch, Batches, BatchSource
from wirelessfl.training.cohort import Cohort, Factors, Penalty
from wirelessfl.training.objective import Objective
from wirelessfl.training.precision import tf32
from wirelessfl.training.rules import ClientRule, State, check_result

KEPT = "kept: "
"""Prefix of the tensors that a client keeps, as opposed to those that it sends."""
REPORTED = "reported: "
"""Prefix of numbers [clients, 1] that clients report with their payloads, at no cost."""
WEIGHT = REPORTED
"""Name of the reported weight of an update, relative to its weight in the run's means."""


@dataclass(frozen=True)
class TrainingData:
    """The training data of all clients.

    Args:
        inputs: [samples, ...] on the device; copied if not contiguous.
        labels: [samples] on the device.
        source: the clients' samples and their mini-batches.

    Attributes:
        tokens: whether the inputs are token ids, which ``widened`` converts.
    """

    inputs: Tensor
    labels: Tensor
    source: BatchSource
    tokens: bool = field(init=False)

    def __post_init__(self) -> None:
        # Otherwise flatten in batch() would copy all samples for every batch.
        object.__setattr__(self, "inputs", self.inputs.contiguous())
        object.__setattr__(self, "tokens", self.inputs.dtype == torch.uint8)

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs [..., *sample], after ``widened``, and labels [...] of samples ``rows`` [...]."""
        # On a CPU index_select copies whole samples, in less than half the time of inputs[rows].
        flat = self.inputs.flatten(1).index_select(0, rows.reshape(-1))
        if self.tokens:
            flat = widened(flat)
        return flat.view(*rows.shape, *self.inputs.shape[1:]), self.labels[rows]

    def of_step(self, batches: Batches, step: int, *, alone: bool = False) -> Batch:
        """The batch of a step, augmented if it is to be.

        Args:
            batches: batches of a cohort.
            step: the step.
            alone: whether the first client's batch [batch, ...] is meant, the only one. If not, the
                batches of all clients, [clients, batch, ...].
        """
        at = (0, step) if alone else (slice(None), step)
        x, y = self.batch(batches.index[at])
        augmentation = self.source.augmentation
        if augmentation is not None:
            assert batches.seeds is not None
            assert batches.sizes is not None
            sizes, seeds = batches.sizes[:, step].tolist(), batches.seeds[:, step].tolist()
            x = augmentation.batches(x[None] if alone else x, sizes, seeds)
            x = x[0] if alone else x
        return Batch(x, y, batches.weight[at], batches.keys[at])

    def first(self, count: int) -> tuple[Tensor, Tensor]:
        """Copies of at most the first ``count`` samples, to check a model or estimate its cost."""
        return widened(self.inputs[:count]).clone(), self.labels[:count].clone()


@dataclass(frozen=True)
class Job:
    """H local steps of many clients.

    Args:
        rule: the client rule.
        spec: shapes of the trained parameters: the model, or submodels padded to one shape.
        servers: tensors that each node sends to its clients, [nodes, P] by name, for the rule and
            the penalties.
        node: [clients], each client's node.
        clients: [clients], client indices.
        first_steps: [clients], number of local steps that each client has completed.
        local_steps: H; unused if ``client_steps`` is given and its numbers differ.
        label: context for error messages, e.g. "round 3, edge round 1".
        tracking: [clients], whether a client sends the payloads of tracking clients; None means
            all do.
        recall: function of clients and their nodes that returns the clients' state, [clients, P] by
            name. It is called once per chunk, so the device stores the state of at most one chunk.
            None means that no state exists yet.
        penalties: terms of the clients' loss in addition to the cross-entropy.
        fresh: [clients], whether a client trains for the first time; None means clients without
            completed steps.
        factors: by name of a weight, a factor [nodes] of the inputs that the weight multiplies.
        client_steps: [clients], local steps of each client, increasing; None for ``local_steps``
            each. An executor trains clients with equal numbers at once, see ``parts``.
        rounds: [clients], number of the round from 0, or version of the received model; None if
            the executor does not need it.
    """

    rule: ClientRule
    spec: ParamSpec
    servers: State
    node: IntArray
    clients: IntArray
    first_steps: IntArray
    local_steps: int
    label: str = ""
    tracking: BoolArray | None = None
    recall: Callable[[IntArray, IntArray], State] | None = None
    penalties: tuple[Penalty, ...] = ()
    fresh: BoolArray | None = None
    factors: Factors = field(default_factory=dict)
    client_steps: IntArray | None = None
    rounds: IntArray | None = None

    @property
    def title(self) -> str:
        """The clients and the label, for error messages."""
        first, last = int(self.clients[0]), int(self.clients[-1])
        clients = f"client {first}" if first == last else f"clients {first} to {last}"
        return ", ".join(filter(None, (clients, self.label)))

    def of(self, part: slice) -> Job:
        """The job restricted to some of its clients."""
        steps = None if self.client_steps is None else self.client_steps[part]
        same = steps is not None and len(steps) > 0 and bool((steps == steps[0]).all())
        return replace(
            self,
            client_steps=None if same else steps,
            local_steps=int(steps[0]) if steps is not None and same else self.local_steps,
            node=self.node[part],
            clients=self.clients[part],
            first_steps=self.first_steps[part],
            tracking=None if self.tracking is None else self.tracking[part],
            fresh=None if self.fresh is None else self.fresh[part],
            rounds=None if self.rounds is None else self.rounds[part],
        )

    def parts(self, chunk: int) -> list[slice]:
        """Slices of at most ``chunk`` clients that have equal numbers of local steps."""
        count = len(self.clients)
        if self.client_steps is None:
            return even_parts(count, chunk)
        ends = [*(np.flatnonzero(np.diff(self.client_steps)) + 1).tolist(), count]
        return [
            slice(first + part.start, first + part.stop)
            for first, end in pairwise([0, *ends])
            for part in even_parts(end - first, chunk)
        ]

    def kept(self) -> State:
        """The clients' state, [clients, P] by name; zeros before their first local steps."""
        names, like = self.rule.client_state, self.servers["params"]
        if self.recall is None:
            return {name: like.new_zeros(len(self.clients), self.spec.size) for name in names}
        return self.recall(self.clients, self.node) if names else {}

    def cohort(self) -> Cohort:
        """The clients with their received tensors and their state."""
        rows = torch.tensor(self.node)
        if (self.node == self.node[0]).all():  # one node, the usual case, needs no copies
            received = {
                name: value[int(self.node[0])].expand(len(self.clients), -1)
                for name, value in self.servers.items()
            }
        else:
            received = {name: value[rows.to(value.device)] for name, value in self.servers.items()}
        device = self.servers["params"].device
        tracking = np.ones(len(self.clients), bool) if self.tracking is None else self.tracking
        first = self.first_steps == 0 if self.fresh is None else self.fresh
        tracks, fresh = (torch.from_numpy(flag)[:, None].to(device) for flag in (tracking, first))
        factors = {name: value[rows].to(device) for name, value in self.factors.items()}
        return Cohort(
            received, self.local_steps, self.kept(), tracks, fresh, self.penalties, factors
        )

    def batches(self, source: BatchSource) -> Batches:
        """The clients' mini-batches."""
        return source.draw(self.clients, self.first_steps, self.local_steps)


@dataclass(frozen=True)
class Chunk:
    """Payloads and state of some clients of a job: [clients in ``part``, P] by name.

    The tensors are valid until the next chunk is requested. Numbers that clients report are
    [clients in ``part``, 1], by names with the prefix ``REPORTED``.
    """

    part: slice
    payloads: dict[str, Tensor]
    kept: dict[str, Tensor]
    reported: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, part: slice, results: dict[str, Tensor]) -> Chunk:
        """Make a chunk from ``results`` as returned by ``Executor.results``."""
        kept = {n.removeprefix(KEPT): v for n, v in results.items() if n.startswith(KEPT)}
        reported = {n: v for n, v in results.items() if n.startswith(REPORTED)}
        sent = {n: v for n, v in results.items() if not n.startswith((KEPT, REPORTED))}
        return cls(part, sent, kept, reported)


def after_training(
    rule: ClientRule, params: Tensor, state: State, cohort: Cohort
) -> dict[str, Tensor]:
    """Payloads of the clients after their local steps, and their state with the prefix ``KEPT``."""
    kept = rule.keep(params, state, cohort)
    sent = rule.send(params, state, cohort)
    for method, tensors in (("keep", kept), ("send", sent)):
        if not isinstance(tensors, Mapping):
            raise ConfigError(
                f"algorithm {rule.title!r}: {method} returned {shown(tensors)}. Return a dict of "
                "tensors [clients, P] by name."
            )
    return {**sent, **{KEPT + name: value for name, value in kept.items()}}


class Executor(ABC):
    """Trains the clients of a job, in client order.

    Args:
        chunk: number of clients trained at once. It bounds memory and affects results only by
            rounding.
    """

    name: ClassVar[str]
    stateful: ClassVar[bool] = False
    """Whether it keeps state of clients itself, so that a client's trainings must be in order."""

    def __init__(self, objective: Objective, data: TrainingData, chunk: int) -> None:
        self.objective = objective
        self.data = data
        self.chunk = chunk

    def train(self, job: Job) -> Iterator[Chunk]:
        """Train the clients of ``job``; yields their payloads and state by chunk, in order."""
        for part in job.parts(self.chunk):
            yield Chunk.of(part, self.results(job.of(part)))

    def results(self, job: Job) -> dict[str, Tensor]:
        """Train the clients of ``job`` as one chunk; returns payloads and state, [clients, P]."""
        with calling(job.title), tf32(self.objective.precision):
            results = self._train(job)
        chunk, rule = Chunk.of(slice(0), results), job.rule
        if chunk.payloads.keys() != {payload.name for payload in rule.payloads}:
            raise ConfigError(
                f"algorithm {rule.title!r} sends {sorted(chunk.payloads)}, but its payloads are "
                f"{[p.name for p in rule.payloads]}: make the two agree."
            )
        if chunk.kept.keys() != set(rule.client_state):
            raise ConfigError(
                f"algorithm {rule.title!r} keeps {sorted(chunk.kept)}, but its client_state is "
                f"{list(rule.client_state)}: make the two agree."
            )
        for method, tensors in (("send", chunk.payloads), ("keep", chunk.kept)):
            for name, value in tensors.items():
                check_result(rule, method, value, (len(job.clients), job.spec.size), name)
        return results

    def warm_up(self) -> None:  # noqa: B027
        """Trigger lazy imports of libraries; workers call this before they report ready."""

    @abstractmethod
    def _train(self, job: Job) -> dict[str, Tensor]:
        """Train the clients of ``job``; returns the result of ``after_training``."""

    def tensors(self) -> dict[str, Tensor]:
        """State of clients that it keeps, for a checkpoint."""
        return {}

    def restore(self, tensors: dict[str, Tensor]) -> None:  # noqa: B027
        """Continue from the result of ``tensors``; other tensors are ignored."""

    def start(self) -> None:  # noqa: B027
        """Start processes ahead of the first job."""

    def close(self) -> None:  # noqa: B027
        """Release the executor's processes and memory."""


def even_parts(clients: int, chunk: int) -> list[slice]:
    """Split ``clients`` into slices of at most ``chunk`` whose sizes differ by at most one.

    Sizes are even because a small last chunk costs nearly as much as a full one.
    """
    chunks = -(-clients // chunk)
    ends = [clients * (i + 1) // chunks for i in range(chunks)]
    return list(map(slice, [0, *ends], ends))
