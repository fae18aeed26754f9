"""A path loss model with other lines of sight or other shadowing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray
from channels.path_loss.path_loss import PathLoss, check_setting
from channels.validation import shown


@dataclass(frozen=True)
class Variant(PathLoss):
    """A model whose links all have a line of sight or none, or whose shadowing is given.

    >>> import channels
    >>> blocked = channels.Variant(channels.Uma(), line_of_sight=False, shadowing_db=0.0)
    >>> blocked.los_probability([10.0, 100.0]).tolist()
    [0.0, 0.0]

    Args:
        model: the model.
        line_of_sight: whether links have a line of sight; None for the model's probability.
        shadowing_db: standard deviation of shadowing, from 0 to 30 dB; None for the model's.
    """

    model: PathLoss
    line_of_sight: bool | None = None
    shadowing_db: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, PathLoss):
            raise TypeError(f"model is {shown(self.model)}: give a path loss model, e.g. Umi().")
        if not (self.line_of_sight is None or isinstance(self.line_of_sight, bool)):
            raise TypeError(
                f"line_of_sight is {shown(self.line_of_sight)}: give True, False, or None for the "
                "model's probability."
            )
        if self.shadowing_db is not None:
            check_setting("shadowing_db", self.shadowing_db, 0, 30, "dB")

    @property
    def carrier_ghz(self) -> float | None:
        """Carrier frequency of the model; None if it has none."""
        return getattr(self.model, "carrier_ghz", None)

    @property
    def range_m(self) -> tuple[float, float]:
        """See :class:`PathLoss`."""
        return self.model.range_m

    def at_heights(self, base_station_m: float | None, client_m: float | None) -> PathLoss:
        """See :class:`PathLoss`."""
        return replace(self, model=self.model.at_heights(base_station_m, client_m))

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        probability = self.model.los_probability(distance_m)
        if self.line_of_sight is None:
            return probability
        return np.full_like(probability, float(self.line_of_sight))

    def loss_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        return self.model.loss_db(distance_m, line_of_sight)

    def shadowing_std_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        deviation = self.model.shadowing_std_db(distance_m, line_of_sight)
        if self.shadowing_db is None:
            return deviation
        return np.full_like(deviation, self.shadowing_db)

    @property
    def sight_distance_m(self) -> float:
        """See :class:`PathLoss`."""
        return self.model.sight_distance_m

    def shadowing_distance_m(self, line_of_sight: BoolArray) -> FloatArray:
        """See :class:`PathLoss`."""
        return self.model.shadowing_distance_m(line_of_sight)
