"""Clients at work, and which client a request goes to where their number is limited."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable

from wirelessfl.tasks.request import Request


class BusyClients:
    """Clients with requests: at most ``limit``, beyond which one of them gets the next request.

    Args:
        clients: N.
        limit: maximum number of busy clients; None for no limit.
        idle_first: whether a request goes to an idle client while there may be more busy ones, and
            then to one of those without a request of its task; otherwise to any client.
    """

    def __init__(self, clients: int, limit: int | None, *, idle_first: bool = False) -> None:
        self.clients, self.idle_first = clients, idle_first
        self.limit = clients if limit is None else min(limit, clients)
        self.all: list[int] = []
        """In the order in which one is drawn."""
        self._place: dict[int, int] = {}
        self._rising: list[int] = []
        self._requests: Counter[tuple[int, int]] = Counter()
        """By task and client, requests."""

    def choose(self, place: float, task: int) -> int:
        """The client that a request of ``task`` goes to, by a number ``place`` in [0, 1)."""
        if len(self.all) >= self.limit:
            busy = self._without(task) or self.all if self.idle_first else self.all
            return busy[int(place * len(busy))]
        if not self.idle_first:
            return int(place * self.clients)
        rising = self._rising
        rank = int(place * (self.clients - len(rising)))  # among idle clients, by their numbers
        return rank + bisect_right(range(len(rising)), rank, key=lambda i: rising[i] - i)

    def _without(self, task: int) -> list[int]:
        """Those without a request of ``task``."""
        return [client for client in self.all if (task, client) not in self._requests]

    def add(self, request: Request) -> None:
        """A request has been issued; an idle client is busy from now on."""
        client = request.client
        if client not in self._place:
            self._place[client] = len(self.all)
            self.all.append(client)
            if self.idle_first:
                insort(self._rising, client)
        if self.idle_first:
            self._requests[request.task, client] += 1

    def remove(self, request: Request, *, idle: bool) -> None:
        """A request is over; a client that is idle leaves its place to the last in the list."""
        client = request.client
        if idle:
            place, last = self._place.pop(client), self.all.pop()
            if last != client:
                self.all[place], self._place[last] = last, place
            if self.idle_first:
                del self._rising[bisect_left(self._rising, client)]
        if self.idle_first:
            key = request.task, client
            self._requests[key] -= 1
            if not self._requests[key]:
                del self._requests[key]

    def restore(self, busy: Iterable[int], requests: Iterable[Request]) -> None:
        """Continue with these busy clients, in their order, and the requests that are out."""
        self.all = list(busy)
        self._place = {client: place for place, client in enumerate(self.all)}
        self._rising = sorted(self.all)
        self._requests = Counter((request.task, request.client) for request in requests)
