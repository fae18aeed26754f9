"""The clients that take part in a round, drawn from those that are present."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from channels import Network
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from channels.validation import compact
from wirelessfl.base.errors import ConfigError
from wirelessfl.training.rules import ClientRule

BLOCK = 1024
"""Clients per block, for each of which the number of present clients is stored."""


class RankedClients(Protocol):
    """A set of clients, ranked by their numbers from 0."""

    def below(self, bounds: ArrayLike) -> IntArray:
        """Number of clients in the set whose number is below each of ``bounds``, [bounds]."""

    def at(self, ranks: IntArray) -> IntArray:
        """The clients with the given ranks, which are sorted."""


class PresentClients:
    """The present clients of a server. A change takes the same time for any number of clients.

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

    def add(self, client: int) -> None:
        """Add a client that is not present."""
        self._change(client, 1)

    def remove(self, client: int) -> None:
        """Remove a client that is present."""
        self._change(client, -1)

    def _change(self, client: int, by: int) -> None:
        if not self._mask.flags.writeable:
            self._mask = self._mask.copy()
        self._mask[client] = by > 0
        self._counts[client // BLOCK] += by
        self._number += by

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
        blocks = [ranks[:0]]
        for block in np.flatnonzero(stops > starts).tolist():
            some = ranks[starts[block] : stops[block]] - (ends[block] - self._counts[block])
            blocks.append(self._block(block)[some])
        return np.concatenate(blocks)

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


@dataclass(frozen=True, eq=False)
class ListedClients:
    """A few clients.

    Args:
        numbers: [listed], their numbers, sorted.
    """

    numbers: IntArray

    def below(self, bounds: ArrayLike) -> IntArray:
        """Number of these clients whose number is below each of ``bounds``, [bounds]."""
        return np.asarray(np.searchsorted(self.numbers, bounds))

    def at(self, ranks: IntArray) -> IntArray:
        """The clients with the given ranks."""
        return self.numbers[ranks]


def some(size: int, count: int, stream: Stream) -> IntArray:
    """Draw a uniform random subset of 0, ..., size - 1, sorted, in O(count)."""
    if count == size:
        return np.arange(size)
    # Only the set must be uniform, not its order: no shuffle is needed.
    return np.sort(stream.generator().choice(size, count, replace=False, shuffle=False))


Select = Callable[[IntArray, IntArray, IntArray], IntArray]
"""Returns the numbers of the clients that take part, from the numbers and cells of the candidates
[candidates], and from the number of participants per cell [cells]."""


@dataclass(frozen=True)
class Participants:
    """The clients of one round, in the order of their network: by cell, then by number.

    Args:
        clients: [senders], client numbers.
        tracking: [senders] boolean, clients that send tracking terms.
    """

    clients: IntArray
    tracking: BoolArray

    def of_rows(self, rows: BoolArray | IntArray) -> Participants:
        """Some of them, or all in another order."""
        return Participants(self.clients[rows], self.tracking[rows])

    def vectors(self, rule: ClientRule) -> FloatArray:
        """Number of vectors that each client sends [senders]."""
        for_all = sum(payload.senders == "all" for payload in rule.payloads)
        return for_all + (len(rule.payloads) - for_all) * self.tracking.astype(np.float64)


def draw_participants(
    network: Network,
    per_round: int | None,
    tracking: int | None,
    stream: Stream,
    present: RankedClients | None = None,
    select: Select | None = None,
) -> Participants:
    """Choose S of n clients, and draw S_tilde of these uniformly for tracking.

    A cell's number of participants is proportional to its number of clients, and its number of
    tracking clients to its number of participants. Fractions are rounded at random in each
    round, so that all clients participate equally often on average. A cell may have no tracking
    client in a round.

    Args:
        network: cells and clients.
        per_round: S, total over all cells; None for all clients.
        tracking: S_tilde, total over all cells; None for all S.
        stream: random stream of this round.
        present: clients that are present; None for all. If fewer than S are present, all of them
            participate, and a cell may have no participant.
        select: chooses the participants; it may return fewer than wanted. None to draw them
            uniformly without replacement.

    Raises:
        ConfigError: all clients are present, and S is too small for a participant in every cell.
    """
    # Indices refer to the present clients, cell by cell: no array over all clients is needed.
    sizes = network.cell_sizes
    if present is not None:
        sizes = np.diff(present.below([*network.cell_starts, network.clients]))
    sampled = trackers = sizes
    if per_round is not None:
        small = int(sizes.argmin())
        if present is None and sizes[small] * per_round < network.clients:
            raise ConfigError(
                f"clients_per_round is {per_round}: cell {small} of {len(sizes)} has only "
                f"{sizes[small]} of the {network.clients} clients, and would have no participant "
                "in some rounds. Raise clients_per_round."
            )
        total = min(per_round, int(sizes.sum()))
        sampled = trackers = _shares(sizes, total, stream.child("participants of cells"))
    clients = None
    if select is not None:
        every = np.arange(int(sizes.sum()))
        numbers = every if present is None else present.at(every)
        clients = np.sort(select(numbers, np.repeat(np.arange(len(sizes)), sizes), sampled))
        ends = np.searchsorted(clients, network.cell_starts)
        sampled = trackers = np.diff([*ends, len(clients)])
    if tracking is not None:
        total = min(tracking, int(sampled.sum()))
        trackers = _shares(sampled, total, stream.child("trackers of cells"))
    indices, tracks = [], []
    for cell, first in enumerate(np.cumsum(sizes) - sizes):
        cell_stream = stream.child("participants", cell)
        if clients is None:
            indices.append(first + some(sizes[cell], sampled[cell], cell_stream))
        tracks.append(np.zeros(sampled[cell], dtype=np.bool_))
        tracks[cell][some(sampled[cell], trackers[cell], cell_stream.child("trackers"))] = True
    if clients is None:
        ranks = np.concatenate(indices)
        clients = ranks if present is None else present.at(ranks)
    return Participants(clients, np.concatenate(tracks))


def _shares(sizes: IntArray, total: int, stream: Stream) -> IntArray:
    """Split ``total`` in proportion to ``sizes``; random rounding keeps the means exact.

    This is systematic sampling, with one random offset for the running sums.
    """
    ends = np.cumsum(sizes) * total / sizes.sum()
    # Remove the rounding error of the division first: 2.9999999999 must count as 3.
    cuts = np.floor(np.round(ends, 9) + stream.generator().random())
    return np.asarray(np.diff(cuts, prepend=0), dtype=np.int64)
