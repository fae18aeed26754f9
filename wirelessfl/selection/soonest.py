"""The clients that end a round soonest."""

from __future__ import annotations

from dataclasses import dataclass

from channels.arrays import IntArray
from wirelessfl.selection.candidates import Candidates
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
            chosen = candidates.access.soonest(candidates.load, candidates.draw, candidates.counts)
        return candidates.where(chosen)
