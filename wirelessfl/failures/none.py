"""No failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from channels import ChannelDraw
from channels.arrays import FloatArray
from wirelessfl.failures.failures import Failures


@dataclass(frozen=True)
class NoFailures(Failures):
    """All uploads arrive."""

    never: ClassVar[bool] = True

    def probability(self, snr: FloatArray, draws: ChannelDraw) -> FloatArray:
        """0."""
        return np.zeros(snr.shape)
