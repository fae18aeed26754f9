"""Several processes, on one machine or many, that share the clients of every round.

Each of them runs the same simulation and trains its own clients; the sums over clients are added
up between them, and then all hold the same state.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, distributed

from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.processes import launched

T = TypeVar("T")


@dataclass(frozen=True)
class Shards:
    """This process among those that share the work; the only one unless said otherwise.

    Args:
        rank: its number, from 0.
        count: of all processes.
    """

    rank: int = 0
    count: int = 1

    def share(self, clients: int) -> slice:
        """The clients that this process trains, of those of a round; there may be none."""
        return slice(clients * self.rank // self.count, clients * (self.rank + 1) // self.count)

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over the processes, in place.

        Raises:
            TrainingError: one of them has ended.
        """
        if self.count > 1:
            with _whole(self.count):
                distributed.all_reduce(tensor)
        return tensor

    def gather(self, rows: Tensor, total: int) -> Tensor:
        """Rows [own clients, ...] of every process, [total, ...] in the order of the clients."""
        if self.count == 1:
            return rows
        whole = rows.new_zeros(total, *rows.shape[1:])
        whole[self.share(total)] = rows
        return self.sum(whole)

    def from_first(self, thing: T) -> T:
        """What process 0 has."""
        if self.count == 1:
            return thing
        things: list[Any] = [thing]
        with _whole(self.count):
            distributed.broadcast_object_list(things, src=0)
        result: T = things[0]
        return result

    def by_first(self, action: Callable[[], T]) -> T:
        """What ``action`` gives in process 0; a user's error there is raised in all."""
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
        """What each process has, in their order."""
        if self.count == 1:
            return [thing]
        things: list[Any] = [None] * self.count
        with _whole(self.count):
            distributed.all_gather_object(things, thing)
        return things


@contextmanager
def _whole(count: int) -> Iterator[None]:
    """Say in a line what a broken connection means; the process that broke it says why."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            f"one of the {count} processes that share the clients has ended: see what it says."
        ) from error


@contextmanager
def sharded(environment: Mapping[str, str] = os.environ) -> Iterator[Shards]:
    """The processes that ``torchrun`` has started, connected; just this one without it."""
    rank, count = launched(environment)
    if count == 1:
        yield Shards()
        return
    # torch's compiler, which autograd under vmap imports, brings this module in, and its functions
    # take the default group of that moment as an argument's default. Then the group would outlive
    # its end here, and its threads abort a process that is leaving.
    importlib.import_module("torch.distributed.nn.functional")
    if torch.cuda.is_available():
        torch.cuda.set_device(int(environment.get("LOCAL_RANK", "0")))
    distributed.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield Shards(rank, count)
    finally:
        distributed.destroy_process_group()
