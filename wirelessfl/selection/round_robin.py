"""Clients in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from channels.arrays import IntArray
from wirelessfl.selection.candidates import Candidates
from wirelessfl.selection.selection import Selection


@dataclass(frozen=True)
class RoundRobin(Selection):
    """Clients of each cell that took part longest ago, each in turn; unbiased over many rounds."""

    unbiased: ClassVar[bool] = True

    def select(self, candidates: Candidates) -> IntArray:
        """Sort by the last round of participation, then by client number."""
        return candidates.smallest(candidates.ledger.chosen[candidates.clients])
