"""Uniformly random clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from channels.arrays import IntArray
from wirelessfl.selection.candidates import Candidates
from wirelessfl.selection.selection import Selection
from wirelessfl.server.present import some


@dataclass(frozen=True)
class RandomSelection(Selection):
    """Clients of each cell uniformly at random; unbiased."""

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
