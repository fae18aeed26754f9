"""Clients that code of others trains, as that of a Flower app: a trainer, and its executor."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.base.wording import shown
from wirelessfl.models.metrics.built_in import is_row_field
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.executor import (
    REPORTED,
    WEIGHT,
    Chunk,
    Executor,
    Job,
    TrainingData,
    after_training,
)
from wirelessfl.training.objective import Objective
from wirelessfl.training.rules import UPDATE, ClientRule, plain_sgd

STATES = "trainer."
"""Prefix of the names of a trainer's tensors in a checkpoint."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A client after its local training.

    Args:
        params: parameters [P], float32.
        weight: weight of its update in means, >= 0; None for that of the run.
        metrics: numbers by name of their field of rows.
    """

    params: Tensor
    weight: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


class ClientTraining(ABC):
    """The training of a run's clients: what a ``Trainer`` begins."""

    @abstractmethod
    def received(self, params: Tensor) -> Any:
        """What clients receive, given the parameters [P]: computed once for all of a round."""

    @abstractmethod
    def train(self, client: int, received: Any, lr: float, number: int) -> Trained:
        """Train a client.

        Args:
            client: its number.
            received: a result of ``received``, which must not change.
            lr: step size of the clients in this round.
            number: number of the round from 0, or version of the received model.
        """

    def evaluated(self, params: Tensor, version: int) -> dict[str, float]:
        """Numbers that clients report about the parameters [P], by name of their field of rows.

        Args:
            params: the parameters.
            version: number of merges that have led to them.
        """
        return {}

    @abstractmethod
    def states(self) -> dict[int, bytes]:
        """The state of each client that has one."""

    @abstractmethod
    def restore(self, states: Mapping[int, bytes]) -> None:
        """Continue from the result of ``states``."""


class Trainer(ABC):
    """Replaces the local steps of clients; ``begin`` is called once for each run."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Its name in messages and in the run's settings."""

    @property
    @abstractmethod
    def code(self) -> object:
        """Functions and values that its results depend on, by which edited code is noticed."""

    @abstractmethod
    def begin(self, module: nn.Module, spec: ParamSpec, clients: int) -> ClientTraining:
        """The training of a run.

        Args:
            module: the run's model, whose parameters are the initial ones.
            spec: its trained parameters.
            clients: number of registered clients.
        """


def check_rule(rule: ClientRule, title: str) -> None:
    """Refuse algorithms of whose clients the trainer would replace more than plain SGD steps.

    Raises:
        ConfigError: the algorithm changes local steps, or its clients send or keep more.
    """
    remembers = getattr(rule, "remembers", ())
    payloads = tuple(payload.name for payload in rule.payloads)
    reasons = {
        "changes the clients' local steps": not plain_sgd(rule) or rule.shrink != 1.0,
        "adds terms to the clients' loss": bool(rule.penalties),
        "lets clients or server keep state of each client": bool(rule.client_state or remembers),
        f"lets clients send {', '.join(payloads)}": payloads != (UPDATE[0].name,),
        "lets clients send their models": not rule.payloads[0].change,
    }
    for reason, true in reasons.items():
        if true:
            raise ConfigError(
                f"algorithm {rule.title!r} {reason}, and {title} trains the clients of this run: "
                "choose fedavg without momentum, fedadam, fedyogi, fedadagrad or fedbuff."
            )


class TrainerExecutor(Executor):
    """Lets a trainer train one client after the other, under generators that the run's seed sets.

    Args:
        training: the training of the run.
        title: the trainer's name in messages.
        weights: [clients], weights of the clients' updates in the run's means, up to a factor.
        stream: random stream of the run.
    """

    name: ClassVar[str] = "loop"
    stateful = True

    def __init__(
        self,
        objective: Objective,
        data: TrainingData,
        chunk: int,
        training: ClientTraining,
        title: str,
        weights: FloatArray,
        stream: Stream,
    ) -> None:
        super().__init__(objective, data, chunk)
        self.training, self.title, self.weights, self.stream = training, title, weights, stream
        self._received: dict[int, Any] = {}
        self._names: tuple[str, ...] | None = None
        self._evaluated: Iterable[str] = ()

    def train(self, job: Job) -> Iterator[Chunk]:
        """Train the clients of ``job``; a node's model is converted once."""
        self._received = {}
        yield from super().train(job)
        self._received = {}

    def _train(self, job: Job) -> dict[str, Tensor]:
        assert job.rounds is not None, "the engine numbers rounds"
        cohort = job.cohort()
        params, rows = cohort.start.clone(), list[Trained]()
        for row, client in enumerate(job.clients.tolist()):
            node = int(job.node[row])
            if node not in self._received:
                self._received[node] = self.training.received(job.servers["params"][node])
            stream = self.stream.child("client", client, "trainer")
            with seeded_generators(stream.child(int(job.first_steps[row]))):
                trained = self.training.train(
                    client, self._received[node], job.rule.lr, int(job.rounds[row])
                )
            self._check(client, trained)
            params[row] = trained.params.to(params.device)
            rows.append(trained)
        results = after_training(job.rule, params, job.rule.begin(cohort), cohort)
        reported = {
            REPORTED + name: [trained.metrics[name] for trained in rows] for name in rows[0].metrics
        }
        weights = [trained.weight for trained in rows if trained.weight is not None]
        if weights:
            factors = np.array(weights) / self.weights[job.clients]
            reported[WEIGHT] = factors.tolist()
            if (factors != 1.0).any():
                update = results[UPDATE[0].name]
                update.mul_(update.new_tensor(reported[WEIGHT])[:, None])
        numbers = {
            name: torch.tensor(values, dtype=torch.float64)[:, None]
            for name, values in reported.items()
        }
        return {**results, **numbers}

    def evaluated(self, params: Tensor, version: int) -> dict[str, float]:
        """What clients report about the parameters [P] of a version, by field of rows."""
        with seeded_generators(self.stream.child("trainer", "evaluation")):
            numbers = self.training.evaluated(params, version)
        self._check_free(numbers, "the clients' evaluation", self._names or ())
        self._evaluated = [*numbers]
        return numbers

    def _check_free(self, names: Iterable[str], who: str, others: Iterable[str]) -> None:
        """Refuse metrics with the name of another field of rows.

        Args:
            names: names of the metrics.
            who: who reports them.
            others: names of the metrics that others report.
        """
        taken = [name for name in names if not name or is_row_field(name) or name in others]
        if taken:
            raise TrainingError(
                f"{self.title}: {who} reports the metric {taken[0]!r}, which is "
                f"{'another field of rows' if taken[0] else 'no name'}: reply with another name, "
                f"e.g. client_{taken[0] or 'loss'}."
            )

    def _check(self, client: int, trained: Trained) -> None:
        """Refuse weights that are no weights, and metrics that change or that rows have already."""
        weight, names = trained.weight, sorted(trained.metrics)
        if weight is not None and not (math.isfinite(weight) and weight >= 0):
            raise TrainingError(
                f"{self.title}: client {client} reports the weight {shown(weight)}: reply with a "
                "finite number >= 0."
            )
        reported = (*["a weight"] * (weight is not None), *names)
        if self._names is None:
            self._check_free(names, f"client {client}", self._evaluated)
            self._names = reported
        if reported != self._names:
            raise TrainingError(
                f"{self.title}: client {client} reports {', '.join(reported) or 'nothing'}, and "
                f"another reported {', '.join(self._names) or 'nothing'}: reply with the same "
                "metrics in each round."
            )

    def tensors(self) -> dict[str, Tensor]:
        """The clients' states as bytes, one after the other, with their clients and lengths."""
        states = sorted(self.training.states().items())
        content = b"".join(state for _, state in states)
        return {
            f"{STATES}clients": torch.tensor([client for client, _ in states], dtype=torch.int64),
            f"{STATES}bytes": torch.tensor([len(s) for _, s in states], dtype=torch.int64),
            f"{STATES}states": torch.from_numpy(np.frombuffer(content, np.uint8).copy()),
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Continue from the result of ``tensors``; other tensors are ignored."""
        clients, lengths = (tensors[f"{STATES}{name}"].tolist() for name in ("clients", "bytes"))
        content = tensors[f"{STATES}states"].numpy().tobytes()
        ends = np.cumsum([0, *lengths]).tolist()
        if ends[-1] != len(content):
            raise ValueError(f"{STATES}states has {len(content)} bytes, not {ends[-1]}")
        parts = (content[start:end] for start, end in pairwise(ends))
        self.training.restore(dict(zip(clients, parts, strict=True)))
