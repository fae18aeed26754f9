"""Sharding: several processes, on one machine or many, share the clients of every round.

Every process runs the same simulation and trains its share of the clients. Sums over clients are
added across processes, after which all processes have the same state.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch

from wirelessfl.base.errors import ConfigError, DataError, TrainingError
from wirelessfl.base.ranks import launched

T = TypeVar("T")


@dataclass(frozen=True)
class Shards:
    """The position of this process among those that share the work; by default a single process.

    Args:
        rank: index of this process, from 0.
        count: number of processes.
    """

    rank: int = 0
    count: int = 1

    def share(self, clients: int) -> slice:
        """The slice of a round's ``clients`` that this process trains; it may be empty."""
        return slice(clients * self.rank // self.count, clients * (self.rank + 1) // self.count)

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Sum ``tensor`` over the processes, in place."""
        if self.count > 1:
            with _connection_errors(self.count):
                torch.distributed.all_reduce(tensor)
        return tensor

    def gather(self, rows: torch.Tensor, total: int) -> torch.Tensor:
        """Gather the rows [own clients, ...] of all processes: [total, ...], in client order."""
        if self.count == 1:
            return rows
        whole = rows.new_zeros(total, *rows.shape[1:])
        whole[self.share(total)] = rows
        return self.sum(whole)

    def from_first(self, thing: T) -> T:
        """Broadcast the object of process 0 to all processes."""
        if self.count == 1:
            return thing
        things: list[Any] = [thing]
        with _connection_errors(self.count):
            torch.distributed.broadcast_object_list(things, src=0)
        result: T = things[0]
        return result

    def by_first(self, action: Callable[[], T]) -> T:
        """Run ``action`` in process 0; all processes return its result or raise its error."""
        done: T | None = None
        error: Exception | None = None
        if self.rank == 0:
            try:
                done = action()
            except (ConfigError, DataError, TrainingError) as caught:
                error = caught
        done, error = self.from_first((done, error))
        if error is not None:
            raise error
        return cast(T, done)

    def all(self, thing: T) -> list[T]:
        """Gather the objects of all processes, in order of rank."""
        if self.count == 1:
            return [thing]
        things: list[Any] = [None] * self.count
        with _connection_errors(self.count):
            torch.distributed.all_gather_object(things, thing)
        return things


ALONE = Shards()
"""A single process, which trains all clients."""


@contextmanager
def _connection_errors(count: int) -> Iterator[None]:
    """Raise a one-line error if a connection breaks; the process that ended reports the cause."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            f"one of the {count} processes that share the clients has ended: see its error message."
        ) from error


@contextmanager
def sharded(environment: Mapping[str, str] | None = None) -> Iterator[Shards]:
    """Connect the processes started by ``torchrun``; without it, yield a single process.

    Args:
        environment: variables by name; None for those of this process.
    """
    environment = os.environ if environment is None else environment
    rank, count = launched(environment)
    if count == 1:
        yield Shards()
        return
    # Autograd under vmap imports torch's compiler, which imports this module, whose functions store
    # the current default group as a default argument. The group would then outlive
    # destroy_process_group, and its threads would make the exit fail. The import below therefore
    # comes before the group is created.
    importlib.import_module("torch.distributed.nn.functional")
    if torch.cuda.is_available():
        torch.cuda.set_device(int(environment.get("LOCAL_RANK", "0")))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        torch.distributed.init_process_group(backend)
    except ValueError as error:
        raise ConfigError(
            f"RANK={rank} and WORLD_SIZE={count} are set, as by torchrun, but: {error}. Unset "
            "them, or start with torchrun."
        ) from error
    try:
        yield Shards(rank, count)
    finally:
        torch.distributed.destroy_process_group()
