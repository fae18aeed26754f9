"""Where local updates are computed: the interface of all executors."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from channels.arrays import BoolArray, IntArray
from wirelessfl.data.dataset import widened
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.submodels import ParamSpec
from wirelessfl.training.batches import Batches, BatchSource
from wirelessfl.training.cohort import Cohort, Penalty, State
from wirelessfl.training.objective import Objective
from wirelessfl.training.rules import ClientRule

KEPT = "kept: "
"""What a client keeps is told from what it sends by this prefix."""


@dataclass(frozen=True)
class TrainingData:
    """What clients train on.

    Args:
        inputs: [samples, ...] on the device.
        labels: [samples] on the device.
        source: which of them are whose, and in which batches they come.
    """

    inputs: Tensor
    labels: Tensor
    source: BatchSource

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs [..., *sample], ``widened``, and labels [...] at the positions ``rows`` [...]."""
        # On a CPU this copies sample by sample, in less than half the time of inputs[rows].
        flat = self.inputs.flatten(1).index_select(0, rows.reshape(-1))
        return widened(flat).view(*rows.shape, *self.inputs.shape[1:]), self.labels[rows]

    def first(self, count: int) -> tuple[Tensor, Tensor]:
        """The first samples, at most ``count``, to try a model on."""
        return widened(self.inputs[:count]), self.labels[:count]


@dataclass(frozen=True)
class Job:
    """H local steps of many clients.

    Args:
        rule: what clients do.
        spec: shapes of what is trained: the model, or submodels padded to one shape.
        servers: what each node sends its clients, [nodes, P] by name: for the rule, and for the
            penalties.
        node: [clients], each client's node.
        clients: [clients], their numbers.
        first_steps: [clients], local steps that each has taken before.
        local_steps: H.
        label: where the job belongs, for error messages ("round 3, edge round 1").
        tracking: [clients], who sends what only trackers send; None: all.
        recall: from clients and their nodes, what they have kept, [clients, P] by name. It is asked
            chunk by chunk, so that no more than a chunk of it is on the device. None: nothing yet.
        penalties: terms of the clients' loss beside the cross-entropy.
        fresh: [clients], who has never trained before; None: those without steps before.
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

    def of(self, part: slice) -> Job:
        """The job of some of the clients."""
        return replace(
            self,
            node=self.node[part],
            clients=self.clients[part],
            first_steps=self.first_steps[part],
            tracking=None if self.tracking is None else self.tracking[part],
            fresh=None if self.fresh is None else self.fresh[part],
        )

    def kept(self) -> State:
        """What the clients have kept, [clients, P] by name."""
        names, like = self.rule.client_state, self.servers["params"]
        if self.recall is None:
            return {name: like.new_zeros(len(self.clients), self.spec.size) for name in names}
        return self.recall(self.clients, self.node) if names else {}

    def cohort(self) -> Cohort:
        """The clients, with what they were sent and what they have kept."""
        if (self.node == self.node[0]).all():  # the usual case needs no copies
            given = {
                name: value[int(self.node[0])].expand(len(self.clients), -1)
                for name, value in self.servers.items()
            }
        else:
            rows = torch.tensor(self.node)
            given = {name: value[rows.to(value.device)] for name, value in self.servers.items()}
        device = self.servers["params"].device
        tracking = np.ones(len(self.clients), bool) if self.tracking is None else self.tracking
        first = self.first_steps == 0 if self.fresh is None else self.fresh
        tracks, fresh = (torch.from_numpy(who)[:, None].to(device) for who in (tracking, first))
        return Cohort(given, self.local_steps, self.kept(), tracks, fresh, self.penalties)

    def batches(self, source: BatchSource) -> Batches:
        """The clients' mini-batches."""
        return source.draw(self.clients, self.first_steps, self.local_steps)


@dataclass(frozen=True)
class Chunk:
    """What some clients of a job send and keep: [clients in ``part``, P] by name.

    The tensors hold until the next chunk is asked for.
    """

    part: slice
    payloads: dict[str, Tensor]
    kept: dict[str, Tensor]

    @classmethod
    def of(cls, part: slice, results: dict[str, Tensor]) -> Chunk:
        """A chunk of ``results``, as from ``Executor.results``."""
        kept = {n.removeprefix(KEPT): v for n, v in results.items() if n.startswith(KEPT)}
        return cls(part, {n: v for n, v in results.items() if not n.startswith(KEPT)}, kept)


def after_training(
    rule: ClientRule, params: Tensor, state: State, cohort: Cohort
) -> dict[str, Tensor]:
    """What clients send, and what they keep under names of their own, after their local steps."""
    kept = rule.keep(params, state, cohort)
    sent = rule.send(params, state, cohort)
    return {**sent, **{KEPT + name: value for name, value in kept.items()}}


class Executor(ABC):
    """Trains the clients of a job, in client order.

    Args:
        objective: model and loss.
        data: what clients train on.
        chunk: clients at a time; memory is bounded by it, results do not depend on it beyond
            rounding.
    """

    name: ClassVar[str]

    def __init__(self, objective: Objective, data: TrainingData, chunk: int) -> None:
        self.objective = objective
        self.data = data
        self.chunk = chunk

    def train(self, job: Job) -> Iterator[Chunk]:
        """What all clients of ``job`` send and keep, chunk by chunk in client order."""
        for part in even_parts(len(job.clients), self.chunk):
            yield Chunk.of(part, self.results(job.of(part)))

    def results(self, job: Job) -> dict[str, Tensor]:
        """What the clients of ``job`` send and keep, all at once: [clients, P] by name.

        Raises:
            ConfigError: it is not what the algorithm has declared.
            TrainingError: the model or the algorithm failed; the message says where.
        """
        try:
            results = self._train(job)
        except (ConfigError, DataError, TrainingError):
            raise
        except Exception as error:  # whatever a user's classes raise
            raise failure(job, error) from error
        chunk = Chunk.of(slice(0), results)
        if chunk.payloads.keys() != {payload.name for payload in job.rule.payloads}:
            raise ConfigError(
                f"algorithm {job.rule.name!r} sends {sorted(chunk.payloads)}, and its "
                f"payloads are {[p.name for p in job.rule.payloads]}: they must agree."
            )
        if chunk.kept.keys() != set(job.rule.client_state):
            raise ConfigError(
                f"algorithm {job.rule.name!r} keeps {sorted(chunk.kept)}, and its "
                f"client_state is {list(job.rule.client_state)}: they must agree."
            )
        wanted = (len(job.clients), job.spec.size)
        for name, value in results.items():
            if getattr(value, "shape", None) != wanted or not isinstance(value, Tensor):
                shape = getattr(value, "shape", None)
                raise ConfigError(
                    f"algorithm {job.rule.name!r} gives {name!r} as a {type(value).__name__} "
                    f"of shape {shape and tuple(shape)}: a tensor {list(wanted)}, clients by "
                    "parameters, is needed."
                )
        return results

    def warm_up(self) -> None:  # noqa: B027
        """Load what libraries load at their first use; workers do so before they say ready."""

    @abstractmethod
    def _train(self, job: Job) -> dict[str, Tensor]:
        """What the clients of ``job`` send and keep, by ``after_training``."""

    def start(self) -> None:  # noqa: B027
        """Start what takes time to start: processes."""

    def close(self) -> None:  # noqa: B027
        """Give back what the executor holds: processes, memory."""


def failure(job: Job, error: Exception) -> TrainingError:
    """An error in a line: whose training, what, and where in the code."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    first, last = int(job.clients[0]), int(job.clients[-1])
    who = f"client {first}" if first == last else f"clients {first} to {last}"
    return TrainingError(
        f"{', '.join(filter(None, (who, job.label)))}: {type(error).__name__}: {error} (in "
        f"{place.name}, {Path(place.filename).name}, line {place.lineno})"
    )


def even_parts(clients: int, chunk: int) -> list[slice]:
    """Slices of at most ``chunk`` of ``clients``, sizes differing by one at most.

    A small last chunk would cost nearly as much as a full one.
    """
    chunks = -(-clients // chunk)
    ends = [clients * (i + 1) // chunks for i in range(chunks)]
    return list(map(slice, [0, *ends], ends))
