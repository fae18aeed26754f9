"""The interface of a path loss model, and the checks that models share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked, is_complex, is_number
from channels.arrays import BoolArray, FloatArray
from channels.validation import as_array, common_shape, shown

LIGHT_M_PER_S = 3e8
"""Speed of light with which TR 38.901 defines breakpoint distances (Table 7.4.1-1, NOTE 1)."""
ROUNDING = 1e-9
"""Relative error of a distance that was computed from positions."""


class PathLoss(ABC):
    """Median path loss of links, the probability of a line of sight, and shadowing.

    A subclass is a frozen dataclass, whose fields are its settings. Distances are horizontal (2D)
    and in metres; a model adds the heights itself. Arrays may have any shapes that broadcast.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import channels
    >>> @dataclass(frozen=True)
    ... class FreeSpace(channels.PathLoss):
    ...     # Free space at 2.4 GHz, always with a line of sight, without shadowing
    ...     range_m = (1.0, 1e5)
    ...     def los_probability(self, distance_m):
    ...         return np.ones_like(self.distances(distance_m))
    ...     def loss_db(self, distance_m, line_of_sight):
    ...         return 40.05 + 20 * np.log10(self.distances(distance_m))
    ...     def shadowing_std_db(self, distance_m, line_of_sight):
    ...         return np.zeros_like(self.distances(distance_m))
    >>> FreeSpace().loss_db([10.0, 100.0], True).round(2).tolist()
    [60.05, 80.05]
    """

    @property
    @abstractmethod
    def range_m(self) -> tuple[float, float]:
        """Shortest and longest horizontal distance of the model, in metres."""

    @abstractmethod
    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """Probability of a line of sight; 0 if the model does not distinguish links.

        Args:
            distance_m: horizontal distances in metres.
        """

    @abstractmethod
    def loss_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """Median path loss in dB, without shadowing.

        Args:
            distance_m: horizontal distances in metres.
            line_of_sight: boolean.
        """

    @abstractmethod
    def shadowing_std_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """Standard deviation of log-normal shadowing in dB.

        Arguments and errors are those of :meth:`loss_db`.
        """

    def at_heights(self, base_station_m: float | None, client_m: float | None) -> PathLoss:
        """This model for a base station and clients at other heights.

        Args:
            base_station_m: height of the base station in metres; None for that of the model.
            client_m: height of the clients in metres; None for that of the model.

        Raises:
            ValueError: the model has no such heights, or not these.
        """
        heights = {"base_station_height_m": base_station_m, "client_height_m": client_m}
        values: dict[str, Any] = {k: float(v) for k, v in heights.items() if v is not None}
        missing = [name for name in values if not hasattr(self, name)]
        if missing:
            raise ValueError(
                f"positions have heights, and {type(self).__name__} has no {missing[0]}: give "
                "positions [n, 2], or choose another path loss."
            )
        return replace(cast(Any, self), **values) if values else self

    @property
    def sight_distance_m(self) -> float:
        """Correlation distance of lines of sight where clients move, in metres."""
        return 50.0

    def shadowing_distance_m(self, line_of_sight: BoolArray) -> FloatArray:
        """Correlation distance of shadowing where clients move, in metres: 50 by default."""
        return np.full(np.shape(line_of_sight), 50.0)

    @checked()
    def distances(self, distance_m: ArrayLike, longest_m: ArrayLike | None = None) -> FloatArray:
        """``distance_m`` as an array, if all are in the range of the model.

        Args:
            distance_m: horizontal distances in metres.
            longest_m: longest distance of each link; None for that of ``range_m``.
        """
        distance = as_array("distance_m", distance_m).astype(np.float64)
        shortest, longest = self.range_m
        limit = np.broadcast_to(longest if longest_m is None else longest_m, distance.shape)
        low, high = shortest * (1 - ROUNDING), np.asarray(limit) * (1 + ROUNDING)
        bad = ~(np.isfinite(distance) & (distance >= low) & (distance <= high))
        if bad.any():
            most = float(limit[bad].flat[0])
            interval = f"from {shortest:g} to {most:g}" if most < np.inf else f">= {shortest:g}"
            raise ValueError(
                f"distance_m contains {distance[bad].flat[0]:g}: {type(self).__name__} needs "
                f"metres {interval}. A kilometre is 1000 metres."
            )
        return np.maximum(distance, shortest)

    def links(
        self, distance_m: ArrayLike, line_of_sight: ArrayLike
    ) -> tuple[FloatArray, BoolArray]:
        """Distances and lines of sight, broadcast to one shape and checked."""
        distance, sight = together(distance_m, line_of_sight)
        return self.distances(distance), sight


class OneLoss(PathLoss):
    """A model that does not distinguish lines of sight."""

    @property
    @abstractmethod
    def std_db(self) -> float:
        """Standard deviation of shadowing in dB."""

    @abstractmethod
    def median_db(self, distance_m: FloatArray) -> FloatArray:
        """Median path loss in dB at distances in the range of the model."""

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; 0."""
        return np.zeros_like(self.distances(distance_m))

    def loss_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        return self.median_db(self.links(distance_m, line_of_sight)[0])

    def shadowing_std_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        return np.full_like(self.links(distance_m, line_of_sight)[0], self.std_db)


@checked()
def together(distance_m: ArrayLike, line_of_sight: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Distances and lines of sight as arrays of one shape."""
    distance = as_array("distance_m", distance_m).astype(np.float64)
    sight = as_array("line_of_sight", line_of_sight)
    if sight.dtype != np.bool_:
        raise ValueError(f"line_of_sight is {shown(line_of_sight)}: give True or False per link.")
    shapes = {"distance_m": distance.shape, "line_of_sight": sight.shape}
    shape = common_shape(shapes, shapes.values(), "shapes that broadcast")
    return np.broadcast_to(distance, shape), np.broadcast_to(sight, shape)


def check_setting(
    name: str, value: Any, low: float, high: float, unit: str, remedy: str = ""
) -> None:
    """Raise unless a setting is a number from ``low`` to ``high``."""
    if isinstance(value, bool) or not is_number(value) or is_complex(value):
        raise TypeError(f"{name} is {shown(value)}: give a real number in {unit}.")
    if not low <= value <= high:
        raise ValueError(f"{name} is {value:g}: give {low:g} to {high:g} {unit}.{remedy}")


def check_carrier(carrier_ghz: Any, highest_ghz: float = 100.0) -> None:
    """Raise unless a carrier is in the range of TR 38.901 (Table 7.4.1-1, NOTE 6)."""
    remedy = ""
    if is_number(carrier_ghz) and not is_complex(carrier_ghz) and carrier_ghz > 1e3:
        factor, unit = (1e9, "hertz") if carrier_ghz >= 1e8 else (1e3, "megahertz")
        remedy = f" For {carrier_ghz:g} {unit} write {carrier_ghz / factor:g}."
    check_setting("carrier_ghz", carrier_ghz, 0.5, highest_ghz, "GHz", remedy)
