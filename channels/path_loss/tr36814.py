"""The macro-cell model of LTE studies (3GPP TR 36.814 V9.0.0, Table A.2.1.1-3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from channels.path_loss.base import PathLoss

SHADOWING_DB = 8.0


@dataclass(frozen=True)
class Tr36814(PathLoss):
    """128.1 + 37.6 log10(distance in km) dB with shadowing of 8 dB, at 2 GHz (3GPP TR 36.814).

    The model of many papers on wireless federated learning, e.g. Yang et al., "Energy Efficient
    Federated Learning Over Wireless Communication Networks". It does not distinguish lines of
    sight. Distances start at 35 m, the minimum distance of the TR's macro cells.
    """

    @property
    def range_m(self) -> tuple[float, float]:
        """See :class:`PathLoss`."""
        return 35.0, math.inf

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; 0."""
        return np.zeros_like(self.distances(distance_m))

    def loss_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        distance, _ = self.links(distance_m, line_of_sight)
        return np.asarray(128.1 + 37.6 * np.log10(distance / 1000))

    def shadowing_std_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        return np.full_like(self.links(distance_m, line_of_sight)[0], SHADOWING_DB)
