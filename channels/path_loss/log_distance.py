"""Log-distance path loss with settings of one's own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from channels.fading import path_loss_db
from channels.path_loss.base import PathLoss, check_setting


@dataclass(frozen=True)
class LogDistance(PathLoss):
    """reference_db + 10 exponent log10(distance / reference_m) dB, see :func:`path_loss_db`.

    The model does not distinguish lines of sight, and ignores heights.

    Args:
        exponent: path-loss exponent, from 1 to 10; 2 in free space.
        reference_db: loss at ``reference_m``, from 0 to 200 dB.
        reference_m: reference distance, from 0.01 to 10000 metres. Distances start there or at one
            metre, whichever is smaller.
        shadowing_db: standard deviation of shadowing, from 0 to 30 dB.

    Raises:
        ValueError: a setting is out of range.
        TypeError: a setting is not a number.
    """

    exponent: float = 3.76
    reference_db: float = 15.3
    reference_m: float = 1.0
    shadowing_db: float = 8.0

    def __post_init__(self) -> None:
        check_setting("exponent", self.exponent, 1, 10, "(without a unit)")
        check_setting("reference_db", self.reference_db, 0, 200, "dB")
        check_setting("reference_m", self.reference_m, 0.01, 10_000, "metres")
        check_setting("shadowing_db", self.shadowing_db, 0, 30, "dB")

    @property
    def range_m(self) -> tuple[float, float]:
        """See :class:`PathLoss`."""
        return min(self.reference_m, 1.0), math.inf

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; 0."""
        return np.zeros_like(self.distances(distance_m))

    def loss_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        distance, _ = self.links(distance_m, line_of_sight)
        return path_loss_db(
            distance,
            exponent=self.exponent,
            reference_db=self.reference_db,
            reference_m=self.reference_m,
        )

    def shadowing_std_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        return np.full_like(self.links(distance_m, line_of_sight)[0], self.shadowing_db)
