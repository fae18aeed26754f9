"""Uniformly random clients.

Clients in turn.

The clients whose last update is oldest.

The clients with the best channels.

The clients that end a round soonest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from channels.arrays import IntArray
from wirelessfl.air.participants import some
from wirelessfl.air.uplinks.checked import serving
from wirelessfl.engine.selection.selection import AT_ONCE, Candidates, Selection, blocks_of


@dataclass(frozen=True)
class RandomSelection(Selection):
    """Clients of each cell uniformly at random; unbiased."""

    name = "random"

    unbiased: ClassVar[bool] = True

    def select(self, candidates: Candidates) -> IntArray:
        """Draw each cell's clients without replacement."""
        sizes = np.bincount(candidates.node, minlength=len(candidates.counts))
        firsts = np.cumsum(sizes) - sizes
        rows = [
            first + some(sizes[cell], candidates.counts[cell], candidates.stream.child(cell))
            for cell, first in enumerate(firsts)
        ]
        return np.asarray(candidates.clients[np.concatenate(rows)])


@dataclass(frozen=True)
class RoundRobin(Selection):
    """Clients of each cell that took part longest ago, each in turn; unbiased over many rounds."""

    name = "round-robin"

    unbiased: ClassVar[bool] = True

    def select(self, candidates: Candidates) -> IntArray:
        """Sort by the last round of participation, then by client number."""
        return candidates.smallest(candidates.ledger.chosen[candidates.clients])


@dataclass(frozen=True)
class Age(Selection):
    """Clients of each cell whose last update to arrive is oldest; biased where uploads fail.

    Age of update (Yang, Arafa, Quek and Poor, arXiv:1910.14648): unlike in round robin, a client
    whose upload fails is chosen again. Among clients of equal age, better channels come first.
    """

    name = "age"

    def select(self, candidates: Candidates) -> IntArray:
        """Sort by the last round of which an update arrived, then by channel."""
        ties = (lambda places: -candidates.snr_hz(places)) if candidates.radio else None
        return candidates.smallest(candidates.ledger.heard[candidates.clients], ties)


@dataclass(frozen=True)
class BestChannel(Selection):
    """Clients of each cell with the highest received SNR in this round; biased to near clients."""

    name = "best-channel"

    radio: ClassVar[bool] = True

    def select(self, candidates: Candidates) -> IntArray:
        """Sort by ``snr_hz``; clients without a channel are not chosen."""
        snr = candidates.snr_hz()
        return candidates.smallest(np.where(snr > 0, -snr, np.inf))


@dataclass(frozen=True)
class Soonest(Selection):
    """Clients of each cell with which its last update arrives soonest; biased to fast clients.

    Exactly, for training and upload in the channels of this round, see ``Access.soonest``. A client
    without a channel is chosen only if links need none.
    """

    name = "soonest"

    def select(self, candidates: Candidates) -> IntArray:
        """Ask the access; a cell with fewer clients in reach has fewer participants."""
        with serving(f"select 'soonest', round {candidates.round + 1}"):
            some = np.arange(len(candidates.clients))
            if candidates.access.ranks_alone and len(some) > AT_ONCE:
                parts = [_soonest(candidates, some[block]) for block in blocks_of(len(some))]
                some = np.concatenate(parts)
            chosen = np.zeros(len(candidates.clients), dtype=np.bool_)
            chosen[_soonest(candidates, some)] = True
        return candidates.where(chosen)


def _soonest(candidates: Candidates, places: IntArray) -> IntArray:
    """Places of the candidates that end soonest, among some of them."""
    draw = candidates.find_draw(candidates.clients[places])
    load = candidates.load.of_rows(places)
    return places[candidates.access.soonest(load, draw, candidates.counts)]
