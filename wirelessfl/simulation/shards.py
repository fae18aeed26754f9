"""Several processes, on one machine or many, that share the clients of every round.

Each of them runs the same simulation and trains its own clients; the sums over clients are added
up between them, and then all hold the same state.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

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
        """The sum over the processes, in place."""
        if self.count > 1:
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
        distributed.broadcast_object_list(things, src=0)
        result: T = things[0]
        return result

    def all(self, thing: T) -> list[T]:
        """What each process has, in their order."""
        if self.count == 1:
            return [thing]
        things: list[Any] = [None] * self.count
        distributed.all_gather_object(things, thing)
        return things


@contextmanager
def sharded(environment: Mapping[str, str] = os.environ) -> Iterator[Shards]:
    """The processes that ``torchrun`` has started, connected; just this one without it."""
    count = int(environment.get("WORLD_SIZE", "1"))
    if count == 1 or "RANK" not in environment:
        yield Shards()
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(environment.get("LOCAL_RANK", "0")))
    distributed.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield Shards(int(environment["RANK"]), count)
    finally:
        distributed.destroy_process_group()
