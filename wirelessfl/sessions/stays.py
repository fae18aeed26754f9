"""The ends of stays, in order; most of them take 12 bytes."""

from __future__ import annotations

import heapq
import math
from array import array

import numpy as np

SOON = 256
"""Minimum number of the earliest ends that are taken from the arrays at a time."""
SHARE = 64
"""The earliest ends are at least this fraction of all."""


class Stays:
    """Clients that are present until the ends of their stays.

    The earliest ends are in a heap. All others are in arrays, which are only searched once the
    heap is empty.
    """

    def __init__(self) -> None:
        self._soon = list[tuple[float, int]]()
        self._until = -np.inf
        """The heap has all ends up to this time."""
        self._times, self._clients = array("d"), array("i")

    def add(self, end: float, client: int) -> None:
        """Add a stay; one without an end is not stored."""
        if end <= self._until:
            heapq.heappush(self._soon, (end, client))
            if len(self._soon) > 2 * self._at_once(len(self._soon) + len(self._times)):
                self._times.extend(end for end, _ in self._soon)
                self._clients.extend(client for _, client in self._soon)
                self._search()
        elif end < math.inf:
            self._times.append(end)
            self._clients.append(client)

    @property
    def first(self) -> tuple[float, int] | None:
        """The end of the earliest stay, and its client; None if there is no stay."""
        if not self._soon and self._times:
            self._search()
        return self._soon[0] if self._soon else None

    def remove_first(self) -> None:
        """Remove the earliest stay."""
        heapq.heappop(self._soon)

    @staticmethod
    def _at_once(stays: int) -> int:
        """Number of stays that are moved to the heap at a time, of so many."""
        return max(SOON, stays // SHARE)

    def _search(self) -> None:
        """Move the earliest ends from the arrays to the heap."""
        times, clients = np.array(self._times), np.array(self._clients)
        last = min(self._at_once(len(times)), len(times)) - 1
        self._until = float(np.partition(times, last)[last])
        soon = times <= self._until
        self._soon = sorted(zip(times[soon].tolist(), clients[soon].tolist(), strict=True))
        self._times = array("d", times[~soon].tobytes())
        self._clients = array("i", clients[~soon].tobytes())
