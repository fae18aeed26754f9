"""Busy clients, the choice of a client for a request, and drop-outs during training."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from channels.indexed import Draws, uniform
from channels.streams import Stream
from wirelessfl.air.participants import PresentClients
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.tasks.request import Request


class BusyClients:
    """Clients with requests, at most ``limit``; at the limit, further requests go to one of them.

    Args:
        clients: N, number of clients.
        limit: maximum number of busy clients; None for no limit.
        idle_first: whether requests go to idle clients until ``limit`` clients are busy, and then
            to busy clients without a request of the same task. Otherwise they go to any client, or
            at the limit to any busy client.
    """

    def __init__(self, clients: int, limit: int | None, *, idle_first: bool = False) -> None:
        self.clients, self.idle_first = clients, idle_first
        self.limit = clients if limit is None else min(limit, clients)
        self.all: list[int] = []
        """Busy clients, in the order from which ``choose`` draws."""
        self._index: dict[int, int] = {}
        self._sorted: list[int] = []
        self._requests: Counter[tuple[int, int]] = Counter()
        """Number of requests by task and client."""

    def choose(self, place: float, task: int, present: PresentClients | None = None) -> int:
        """Choose the client for a request of ``task``.

        Args:
            place: uniform draw in [0, 1).
            task: task of the request.
            present: clients that are available, unless idle clients go first; None for all.
        """
        if len(self.all) >= self.limit:
            busy = self._without(task) or self.all if self.idle_first else self.all
            if present is not None:
                busy = [client for client in busy if client in present]
            if busy:
                return busy[int(place * len(busy))]
        if not self.idle_first:
            return at_place(place, self.clients, present)
        busy = self._sorted
        rank = int(place * (self.clients - len(busy)))  # index among the idle clients, sorted
        return rank + bisect_right(range(len(busy)), rank, key=lambda i: busy[i] - i)

    def _without(self, task: int) -> list[int]:
        """Busy clients without a request of ``task``."""
        return [client for client in self.all if (task, client) not in self._requests]

    def add(self, request: Request) -> None:
        """Add an issued request; its client becomes busy if it was idle."""
        client = request.client
        if client not in self._index:
            self._index[client] = len(self.all)
            self.all.append(client)
            if self.idle_first:
                insort(self._sorted, client)
        if self.idle_first:
            self._requests[request.task, client] += 1

    def remove(self, request: Request, *, idle: bool) -> None:
        """Remove a finished request, and its client from the busy clients if it became idle."""
        client = request.client
        if idle:
            index, last = self._index.pop(client), self.all.pop()
            if last != client:
                self.all[index], self._index[last] = last, index
            if self.idle_first:
                del self._sorted[bisect_left(self._sorted, client)]
        if self.idle_first:
            key = request.task, client
            self._requests[key] -= 1
            if not self._requests[key]:
                del self._requests[key]

    def restore(self, busy: Iterable[int], requests: Iterable[Request]) -> None:
        """Continue with these busy clients, in this order, and these active requests."""
        self.all = list(busy)
        self._index = {client: index for index, client in enumerate(self.all)}
        self._sorted = sorted(self.all)
        self._requests = Counter((request.task, request.client) for request in requests)


def at_place(place: float, clients: int, present: PresentClients | None) -> int:
    """The client at ``place``, a draw in [0, 1), among those present, or among all."""
    if present is None:
        return int(place * clients)
    return int(present.at(np.array([int(place * len(present))]))[0])


def busy_at_once(requests: Sequence[int], clients: int, busy_clients: int | None) -> int:
    """Number of clients that are always busy if requests go to idle clients first.

    Args:
        requests: [tasks], R_m, active requests of each task.
        clients: N, number of clients.
        busy_clients: maximum number of busy clients; None for no limit.
    """
    return min(sum(requests), clients, clients if busy_clients is None else busy_clients)


def check_gathering(
    buffers: Sequence[int], requests: Sequence[int], clients: int, busy_clients: int | None
) -> None:
    """Check that buffers can always fill if each client holds its update until it transmits.

    A task needs b_m clients that hold an update of it. If sum (b_m - 1) is less than the number of
    busy clients, then some task has enough of them once all busy clients hold an update.

    Args:
        buffers: [tasks], b_m, updates that are transmitted together.
        requests: [tasks], R_m, active requests of each task.
        clients: N, number of clients.
        busy_clients: maximum number of busy clients; None for no limit.
    """
    busy = busy_at_once(requests, clients, busy_clients)
    limits = f"min({sum(requests)} requests, {clients} clients"
    limits += ")" if busy_clients is None else f", busy_clients {busy_clients})"
    for buffer, count in zip(buffers, requests, strict=True):
        if buffer > min(count, busy):
            why, remedy = f"its task has only {count} requests", "requests"
            if busy <= count:
                why = f"only {limits} = {busy} clients are busy"
                remedy = "the smallest of these numbers"
            raise ConfigError(
                f"buffer is {buffer}: {buffer} clients must transmit together, and {why}. Lower "
                f"buffer to {min(count, busy)}, or raise {remedy}."
            )
    if sum(buffer - 1 for buffer in buffers) >= busy:
        shown = " + ".join(map(str, buffers))
        limit = busy + len(buffers) - 1
        raise ConfigError(
            f"buffer is {shown} = {sum(buffers)} over all tasks: with {limits} = {busy} busy "
            "clients, all of them may wait for other clients to transmit together. Lower the sum "
            f"of the buffers to {limit}, or raise the smallest of these numbers."
        )


@dataclass(frozen=True, eq=False)
class DropOuts:
    """Random drop-outs, drawn by training-run number, so independent of the order of events.

    Args:
        probability: probability that a client drops out of a training run, at a uniform time.
        stream: random stream of the drop-outs and their times.
    """

    probability: float
    stream: Stream

    @cached_property
    def _fates(self) -> Draws:
        return uniform(self.stream)

    def lost_after(self, number: int, seconds: float) -> float | None:
        """Seconds until the drop-out in training run ``number`` of ``seconds``, or None."""
        if not self.probability or (fate := self._fates[number]) >= self.probability:
            return None
        return seconds * fate / self.probability
