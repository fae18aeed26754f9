"""The clients whose last update is oldest."""

from __future__ import annotations

from dataclasses import dataclass

from channels.arrays import IntArray
from wirelessfl.selection.candidates import Candidates
from wirelessfl.selection.selection import Selection


@dataclass(frozen=True)
class Age(Selection):
    """Clients of each cell whose last update to arrive is oldest; biased where uploads fail.

    Age of update (Yang, Arafa, Quek and Poor, arXiv:1910.14648): unlike in round robin, a client
    whose upload fails is chosen again. Among clients of equal age, better channels come first.
    """

    def select(self, candidates: Candidates) -> IntArray:
        """Sort by the last round of which an update arrived, then by channel."""
        ties = (lambda places: -candidates.snr_hz(places)) if candidates.radio else None
        return candidates.smallest(candidates.ledger.heard[candidates.clients], ties)
