"""Rural macro cells (3GPP TR 38.901 V16.1.0, Tables 7.4.1-1 and 7.4.2-1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray
from channels.path_loss.path_loss import (
    LIGHT_M_PER_S,
    PathLoss,
    check_carrier,
    check_setting,
    together,
)

LONGEST_LOS_M = 10_000.0


@dataclass(frozen=True)
class Rma(PathLoss):
    """RMa of 3GPP TR 38.901 V16.1.0; horizontal distances of 10 m to 5 km, LOS to 10 km.

    d_BP = 2 pi h_BS h_UT f_c / c, with the heights themselves. Shadowing: 4 dB LOS up to d_BP and
    6 dB beyond, 8 dB NLOS.

    >>> import channels
    >>> channels.Rma(carrier_ghz=0.7).loss_db([100.0, 1000.0], False).round(1).tolist()
    [78.7, 116.4]

    Args:
        carrier_ghz: f_c, carrier frequency in GHz, from 0.5 to 30.
        base_station_height_m: h_BS, from 10 to 150 metres.
        client_height_m: h_UT, from 1 to 10 metres.
        building_height_m: h, average height of buildings, from 5 to 50 metres.
        street_width_m: W, average width of streets, from 5 to 50 metres.
    """

    carrier_ghz: float = 3.5
    base_station_height_m: float = 35.0
    client_height_m: float = 1.5
    building_height_m: float = 5.0
    street_width_m: float = 20.0

    def __post_init__(self) -> None:
        check_carrier(self.carrier_ghz, 30.0)
        check_setting("base_station_height_m", self.base_station_height_m, 10, 150, "metres")
        check_setting("client_height_m", self.client_height_m, 1, 10, "metres")
        check_setting("building_height_m", self.building_height_m, 5, 50, "metres")
        check_setting("street_width_m", self.street_width_m, 5, 50, "metres")

    @property
    def range_m(self) -> tuple[float, float]:
        """See :class:`PathLoss`; the range that holds with and without a line of sight."""
        return 10.0, 5000.0

    @property
    def breakpoint_m(self) -> float:
        """Breakpoint distance in metres."""
        heights = self.base_station_height_m * self.client_height_m
        return 2 * math.pi * heights * self.carrier_ghz * 1e9 / LIGHT_M_PER_S

    def links(
        self, distance_m: ArrayLike, line_of_sight: ArrayLike
    ) -> tuple[FloatArray, BoolArray]:
        """See :class:`PathLoss`; links with a line of sight may be longer."""
        distance, sight = together(distance_m, line_of_sight)
        return self.distances(distance, np.where(sight, LONGEST_LOS_M, self.range_m[1])), sight

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table 7.4.2-1."""
        distance = self.distances(distance_m, LONGEST_LOS_M)
        return np.asarray(np.exp(-(distance - 10) / 1000))

    def loss_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table 7.4.1-1."""
        flat, sight = self.links(distance_m, line_of_sight)
        distance = np.hypot(flat, self.base_station_height_m - self.client_height_m)
        knee = self.breakpoint_m
        far = self._free_db(knee) + 40 * np.log10(distance / knee)
        loss = np.where(flat <= knee, self._free_db(distance), far)
        return np.where(sight, loss, np.maximum(loss, self._nlos_db(distance)))

    def _free_db(self, distance_m: ArrayLike) -> FloatArray:
        """PL_1 at a 3D distance."""
        distance = np.asarray(distance_m, dtype=np.float64)
        height = self.building_height_m
        free = 20 * np.log10(40 * math.pi * distance * self.carrier_ghz / 3)
        roofs = min(0.03 * height**1.72, 10) * np.log10(distance) - min(0.044 * height**1.72, 14.77)
        return np.asarray(free + roofs + 0.002 * math.log10(height) * distance)

    def _nlos_db(self, distance_m: FloatArray) -> FloatArray:
        """PL' without a line of sight at a 3D distance."""
        height, station = self.building_height_m, self.base_station_height_m
        fixed = 161.04 - 7.1 * math.log10(self.street_width_m) + 7.5 * math.log10(height)
        fixed -= (24.37 - 3.7 * (height / station) ** 2) * math.log10(station)
        fixed += 20 * math.log10(self.carrier_ghz)
        fixed -= 3.2 * math.log10(11.75 * self.client_height_m) ** 2 - 4.97
        slope = 43.42 - 3.1 * math.log10(station)
        return np.asarray(fixed + slope * (np.log10(distance_m) - 3))

    def shadowing_std_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table 7.4.1-1."""
        flat, sight = self.links(distance_m, line_of_sight)
        return np.where(sight, np.where(flat <= self.breakpoint_m, 4.0, 6.0), 8.0)

    @property
    def sight_distance_m(self) -> float:
        """See :class:`PathLoss`; Table 7.6.3.1-2."""
        return 60.0

    def shadowing_distance_m(self, line_of_sight: BoolArray) -> FloatArray:
        """See :class:`PathLoss`; Table 7.5-6."""
        return np.where(line_of_sight, 37.0, 120.0)
