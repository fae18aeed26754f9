"""Where local updates are computed: the interface of all executors."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.submodels import ParamSpec
from wirelessfl.submodels.partition import IntArray
from wirelessfl.training.batches import Batches, BatchSource
from wirelessfl.training.rules import Cohort, State
from wirelessfl.training.task import Task


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
        """Inputs [..., *sample] and labels [...] at the positions ``rows`` [...]."""
        # On a CPU this copies sample by sample, in less than half the time of inputs[rows].
        flat = self.inputs.flatten(1).index_select(0, rows.reshape(-1))
        return flat.view(*rows.shape, *self.inputs.shape[1:]), self.labels[rows]


@dataclass(frozen=True)
class Job:
    """H local steps of many clients.

    Args:
        algorithm: the client rule.
        spec: shapes of what is trained: the model, or submodels padded to one shape.
        servers: what each node sends its clients, [nodes, P] by name.
        node: [clients], each client's node.
        clients: [clients], their numbers.
        first_steps: [clients], local steps that each has taken before.
        local_steps: H.
        label: where the job belongs, for error messages ("round 3, edge round 1").
    """

    algorithm: Algorithm
    spec: ParamSpec
    servers: State
    node: IntArray
    clients: IntArray
    first_steps: IntArray
    local_steps: int
    label: str = ""

    def of(self, part: slice) -> Job:
        """The job of some of the clients."""
        return replace(
            self,
            node=self.node[part],
            clients=self.clients[part],
            first_steps=self.first_steps[part],
        )

    def cohort(self) -> Cohort:
        """The clients, with what they were sent."""
        if (self.node == self.node[0]).all():  # the usual case needs no copies
            sent = {
                name: value[int(self.node[0])].expand(len(self.clients), -1)
                for name, value in self.servers.items()
            }
        else:
            rows = torch.tensor(self.node)
            sent = {name: value[rows.to(value.device)] for name, value in self.servers.items()}
        return Cohort(sent, self.local_steps)

    def batches(self, source: BatchSource) -> Batches:
        """The clients' mini-batches."""
        return source.draw(self.clients, self.first_steps, self.local_steps)


@dataclass(frozen=True)
class Chunk:
    """What some clients of a job send: [clients in ``part``, P] by payload.

    The tensors hold until the next chunk is asked for.
    """

    part: slice
    payloads: dict[str, Tensor]


class Executor(ABC):
    """Trains the clients of a job, in client order.

    Args:
        task: model and loss.
        data: what clients train on.
        chunk: clients at a time; memory is bounded by it, results do not depend on it beyond
            rounding.
    """

    name: ClassVar[str]

    def __init__(self, task: Task, data: TrainingData, chunk: int) -> None:
        self.task = task
        self.data = data
        self.chunk = chunk

    def train(self, job: Job) -> Iterator[Chunk]:
        """Payloads of all clients of ``job``, chunk by chunk in client order."""
        for part in even_parts(len(job.clients), self.chunk):
            yield Chunk(part, self.payloads(job.of(part)))

    def payloads(self, job: Job) -> dict[str, Tensor]:
        """Payloads of the clients of ``job``, all at once: [clients, P] by name.

        Raises:
            ConfigError: they are not those that the algorithm has declared.
            TrainingError: the model or the algorithm failed; the message says where.
        """
        try:
            sent = self._train(job)
        except (ConfigError, DataError, TrainingError):
            raise
        except Exception as error:  # whatever a user's classes raise
            raise failure(job, error) from error
        if sent.keys() != {payload.name for payload in job.algorithm.payloads}:
            raise ConfigError(
                f"algorithm {job.algorithm.name!r} sends {sorted(sent)}, and its payloads are "
                f"{[payload.name for payload in job.algorithm.payloads]}: they must agree."
            )
        wanted = (len(job.clients), job.spec.size)
        for name, value in sent.items():
            if getattr(value, "shape", None) != wanted or not isinstance(value, Tensor):
                shape = getattr(value, "shape", None)
                raise ConfigError(
                    f"algorithm {job.algorithm.name!r} sends {name!r} as a {type(value).__name__} "
                    f"of shape {shape and tuple(shape)}: a tensor {list(wanted)}, clients by "
                    "parameters, is needed."
                )
        return sent

    def warm_up(self) -> None:  # noqa: B027
        """Load what libraries load at their first use; workers do so before they say ready."""

    @abstractmethod
    def _train(self, job: Job) -> dict[str, Tensor]:
        """Payloads of the clients of ``job``."""

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
