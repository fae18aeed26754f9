"""The clients that end a round soonest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.arrays import IntArray
from wirelessfl.selection.candidates import AT_ONCE, Candidates, blocks_of
from wirelessfl.selection.selection import Selection
from wirelessfl.uplinks.checked import serving


@dataclass(frozen=True)
class Soonest(Selection):
    """Clients of each cell with which its last update arrives soonest; biased to fast clients.

    Exactly, for training and upload in the channels of this round, see ``Access.soonest``. A client
    without a channel is chosen only if links need none.
    """

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
