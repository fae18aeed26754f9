"""Sets of clients with ranks, from which a round draws its participants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, IntArray
from channels.streams import Stream
from channels.validation import compact

BLOCK = 1024
"""Clients per block, for each of which the number of present clients is stored."""


class RankedClients(Protocol):
    """A set of clients, ranked by their numbers from 0."""

    def below(self, bounds: ArrayLike) -> IntArray:
        """Number of clients in the set whose number is below each of ``bounds``, [bounds]."""

    def at(self, ranks: IntArray) -> IntArray:
        """The clients with the given ranks, which are sorted."""


class PresentClients:
    """The present clients of a server. A departure takes the same time for any number of clients.

    Args:
        mask: [clients] boolean, clients that are present.
    """

    def __init__(self, mask: BoolArray) -> None:
        self._mask = compact(mask.copy())
        self._counts = np.add.reduceat(mask, np.arange(0, len(mask), BLOCK), dtype=np.int64)
        self._number = int(self._counts.sum())

    @property
    def mask(self) -> BoolArray:
        """Whether each client is present, [clients] boolean, a read-only view."""
        view = self._mask.view()
        view.setflags(write=False)
        return view

    def __len__(self) -> int:
        return self._number

    def __contains__(self, client: int) -> bool:
        return bool(self._mask[client])

    def remove(self, client: int) -> None:
        """Remove a client that is present."""
        if not self._mask.flags.writeable:
            self._mask = self._mask.copy()
        self._mask[client] = False
        self._counts[client // BLOCK] -= 1
        self._number -= 1

    def below(self, bounds: ArrayLike) -> IntArray:
        """Number of present clients whose number is below each of ``bounds``, [bounds]."""
        before = np.cumsum([0, *self._counts])
        blocks, rests = np.divmod(bounds, BLOCK)
        within = [
            np.count_nonzero(self._mask[block * BLOCK :][:rest])
            for block, rest in zip(blocks.tolist(), rests.tolist(), strict=True)
        ]
        return np.asarray(before[blocks] + within)

    def at(self, ranks: IntArray) -> IntArray:
        """The present clients with the given ranks, which are sorted."""
        ends = np.cumsum(self._counts)
        stops = np.searchsorted(ranks, ends)
        starts = np.concatenate([[0], stops[:-1]])
        found = [ranks[:0]]
        for block in np.flatnonzero(stops > starts).tolist():
            some = ranks[starts[block] : stops[block]] - (ends[block] - self._counts[block])
            found.append(self._block(block)[some])
        return np.concatenate(found)

    def after(self, client: int) -> Iterator[int]:
        """Present clients whose number is above ``client``, in increasing order."""
        for block in range((client + 1) // BLOCK, len(self._counts)):
            members = self._block(block)
            yield from members[np.searchsorted(members, client, side="right") :].tolist()

    def _block(self, block: int) -> IntArray:
        """Present clients of a block, in increasing order."""
        first = block * BLOCK
        return np.asarray(first + np.flatnonzero(self._mask[first : first + BLOCK]))


@dataclass(frozen=True)
class ConsecutiveClients:
    """Clients with consecutive numbers, such as those of a cell.

    Args:
        first: number of the first client.
        count: number of clients.
    """

    first: int
    count: int

    def below(self, bounds: ArrayLike) -> IntArray:
        """Number of these clients whose number is below each of ``bounds``, [bounds]."""
        return np.asarray(np.clip(np.asarray(bounds) - self.first, 0, self.count))

    def at(self, ranks: IntArray) -> IntArray:
        """The clients with the given ranks."""
        return self.first + ranks


def some(size: int, count: int, stream: Stream) -> IntArray:
    """Draw a uniform random subset of 0, ..., size - 1, sorted, in O(count)."""
    if count == size:
        return np.arange(size)
    # Only the set must be uniform, not its order: no shuffle is needed.
    return np.sort(stream.generator().choice(size, count, replace=False, shuffle=False))
