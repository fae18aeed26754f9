"""Log-distance path loss with settings of one's own."""

from __future__ import annotations

import math
from dataclasses import dataclass

from channels.arrays import FloatArray
from channels.fading import path_loss_db
from channels.path_loss.path_loss import OneLoss, check_setting


@dataclass(frozen=True)
class LogDistance(OneLoss):
    """reference_db + 10 exponent log10(distance / reference_m) dB, see :func:`path_loss_db`.

    The model does not distinguish lines of sight, and ignores heights.

    >>> import channels
    >>> model = channels.LogDistance(exponent=2.0, reference_db=40.0, shadowing_db=0.0)
    >>> model.exponent * 10 * 2 + model.reference_db  # dB at 100 m
    80.0

    Args:
        exponent: path-loss exponent, from 1 to 10; 2 in free space.
        reference_db: loss at ``reference_m``, from 0 to 200 dB.
        reference_m: reference distance, from 0.01 to 10000 metres. Distances start there or at one
            metre, whichever is smaller.
        shadowing_db: standard deviation of shadowing, from 0 to 30 dB.
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

    @property
    def std_db(self) -> float:
        """See :class:`OneLoss`."""
        return self.shadowing_db

    def median_db(self, distance_m: FloatArray) -> FloatArray:
        """See :class:`OneLoss`."""
        return path_loss_db(
            distance_m,
            exponent=self.exponent,
            reference_db=self.reference_db,
            reference_m=self.reference_m,
        )
