"""Where local updates are computed: the interface, and the two ways that exist."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.submodels import ParamSpec
from wirelessfl.submodels.partition import IntArray
from wirelessfl.training.batches import Batches
from wirelessfl.training.rules import Cohort, State
from wirelessfl.training.task import Task


@dataclass(frozen=True)
class Job:
    """H local steps of many clients.

    Args:
        algorithm: the client rule.
        spec: shapes of what is trained: the model, or submodels padded to one shape.
        servers: what each node sends its clients, [nodes, P] by name.
        node: [clients], each client's node.
        clients: [clients], their numbers.
        local_steps: H.
        batches: draws the mini-batches of some of the clients, by their places in the job.
        label: where the job belongs, for error messages ("round 3, edge round 1").
    """

    algorithm: Algorithm
    spec: ParamSpec
    servers: State
    node: IntArray
    clients: IntArray
    local_steps: int
    batches: Callable[[slice], Batches]
    label: str = ""

    def cohort(self, part: slice) -> Cohort:
        """The clients in ``part``, with what they were sent."""
        rows = torch.tensor(self.node[part])
        return Cohort(
            self.clients[part],
            {name: sent[rows.to(sent.device)] for name, sent in self.servers.items()},
            self.local_steps,
        )


@dataclass(frozen=True)
class Chunk:
    """What some clients of a job send: [clients in ``part``, P] by payload."""

    part: slice
    payloads: dict[str, Tensor]


class Executor(ABC):
    """Trains the clients of a job, in client order.

    Args:
        task: model and loss.
        inputs: training inputs [samples, ...] on the device.
        labels: training labels [samples] on the device.
        chunk: clients at a time; memory is bounded by it, results do not depend on it beyond
            rounding.
    """

    name: ClassVar[str]

    def __init__(self, task: Task, inputs: Tensor, labels: Tensor, chunk: int) -> None:
        self.task = task
        self.inputs = inputs
        self.labels = labels
        self.chunk = chunk

    def train(self, job: Job) -> Iterator[Chunk]:
        """Payloads of all clients of ``job``, chunk by chunk in client order."""
        clients = len(job.clients)
        chunks = -(-clients // self.chunk)
        # Even chunks: a small last one would cost nearly as much as a full one.
        ends = [clients * (i + 1) // chunks for i in range(chunks)]
        for part in map(slice, [0, *ends], ends):
            sent = self._train(job, part)
            if sent.keys() != {payload.name for payload in job.algorithm.payloads}:
                raise ConfigError(
                    f"algorithm {job.algorithm.name!r} sends {sorted(sent)}, and its payloads are "
                    f"{[payload.name for payload in job.algorithm.payloads]}: they must agree."
                )
            yield Chunk(part, sent)

    @abstractmethod
    def _train(self, job: Job, part: slice) -> dict[str, Tensor]:
        """Payloads of the clients in ``part``."""
