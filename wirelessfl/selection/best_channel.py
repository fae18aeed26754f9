"""The clients with the best channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from channels.arrays import IntArray
from wirelessfl.selection.candidates import Candidates
from wirelessfl.selection.selection import Selection


@dataclass(frozen=True)
class BestChannel(Selection):
    """Clients of each cell with the highest received SNR in this round; biased to near clients."""

    radio: ClassVar[bool] = True

    def select(self, candidates: Candidates) -> IntArray:
        """Sort by ``snr_hz``; clients without a channel are not chosen."""
        snr = candidates.snr_hz()
        return candidates.smallest(np.where(snr > 0, -snr, np.inf))
