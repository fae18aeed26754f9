"""The macro-cell model of LTE studies (3GPP TR 36.814 V9.0.0, Table A.2.1.1-3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from channels.arrays import FloatArray
from channels.path_loss.path_loss import OneLoss

SHADOWING_DB = 8.0


@dataclass(frozen=True)
class Tr36814(OneLoss):
    """128.1 + 37.6 log10(distance in km) dB with shadowing of 8 dB, at 2 GHz (3GPP TR 36.814).

    The model of many papers on wireless federated learning, e.g. Yang et al., "Energy Efficient
    Federated Learning Over Wireless Communication Networks". It does not distinguish lines of
    sight. Distances start at 35 m, the minimum distance of the TR's macro cells.

    >>> import channels
    >>> channels.Tr36814().loss_db([100.0, 1000.0], False).round(1).tolist()
    [90.5, 128.1]
    """

    carrier_ghz: ClassVar[float] = 2.0

    @property
    def range_m(self) -> tuple[float, float]:
        """See :class:`PathLoss`."""
        return 35.0, math.inf

    @property
    def std_db(self) -> float:
        """See :class:`OneLoss`."""
        return SHADOWING_DB

    def median_db(self, distance_m: FloatArray) -> FloatArray:
        """See :class:`OneLoss`."""
        return np.asarray(128.1 + 37.6 * np.log10(distance_m / 1000))
