"""Clients that participate in a round, and those of them that send tracking terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from channels import Network
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.server.present import PresentClients, RankedClients, some
from wirelessfl.training.rules import ClientRule

Select = Callable[[IntArray, IntArray, IntArray], IntArray]
"""Returns the numbers of the clients that take part, from the numbers and cells of the candidates
[candidates], and from the number of participants per cell [cells]."""


@dataclass(frozen=True)
class Participants:
    """The clients of one round, in the order of the network.

    Args:
        clients: [senders], client numbers.
        tracking: [senders] boolean, clients that send tracking terms.
    """

    clients: IntArray
    tracking: BoolArray

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


def able_clients(
    clients: int, joules: FloatArray, limit: float, present: RankedClients | None
) -> RankedClients | None:
    """The present clients that have spent less than ``limit`` joules.

    Args:
        clients: number of clients of the network.
        joules: [clients], energy that each has spent.
        limit: energy that a client may spend.
        present: clients that are present; None for all.

    Returns:
        ``present`` itself if all clients can take part.
    """
    able = joules < limit
    if able.all():
        return present
    if present is not None:
        here = np.zeros(clients, dtype=np.bool_)
        here[present.at(np.arange(int(present.below([clients])[0])))] = True
        able &= here
    return PresentClients(able)


def _shares(sizes: IntArray, total: int, stream: Stream) -> IntArray:
    """Split ``total`` in proportion to ``sizes``; random rounding keeps the means exact.

    This is systematic sampling, with one random offset for the running sums.
    """
    ends = np.cumsum(sizes) * total / sizes.sum()
    # Remove the rounding error of the division first: 2.9999999999 must count as 3.
    cuts = np.floor(np.round(ends, 9) + stream.generator().random())
    return np.asarray(np.diff(cuts, prepend=0), dtype=np.int64)
