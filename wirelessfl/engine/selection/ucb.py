"""Upper confidence bounds over delays: fast clients, and those that were rarely tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from channels.arrays import IntArray
from wirelessfl.engine.selection.selection import Candidates, Selection


@dataclass(frozen=True)
class Ucb(Selection):
    """Clients of each cell with the best bound on their mean delay so far; biased to fast clients.

    UCB1 (Auer, Cesa-Bianchi and Fischer, 2002) with several plays a round: with the mean seconds
    D_i of the n_i rounds of client i, their largest D of the cell, and the cell's n = sum n_i,
    those with the largest (D - D_i) / D + sqrt(c ln n / n_i) take part. Each client is tried first.
    Neither channels nor loads are known to the server, unlike in ``soonest``.
    """

    ucb_bonus: Annotated[
        float, Field(ge=0, description="c, factor of ln n / n_i in the bound; 2 in UCB1")
    ] = 2.0

    def select(self, candidates: Candidates) -> IntArray:
        """Sort by the bound; clients without a round come first, by client number."""
        past, node, cells = candidates.history, candidates.node, len(candidates.counts)
        plays = np.maximum(past.times_chosen, 1)
        delays = past.seconds / plays
        slowest = np.full(cells, np.finfo(np.float64).tiny)
        np.maximum.at(slowest, node, delays)
        total = np.maximum(np.bincount(node, past.times_chosen, cells), 1.0)
        bound = 1 - delays / slowest[node] + np.sqrt(self.ucb_bonus * np.log(total[node]) / plays)
        return candidates.smallest(np.where(past.times_chosen > 0, -bound, -np.inf))
