"""Indoor offices (3GPP TR 38.901 V16.1.0, Tables 7.4.1-1 and 7.4.2-1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray
from channels.path_loss.path_loss import PathLoss, check_carrier, check_setting

LONGEST_M = 150.0
"""Longest 3D distance."""


@dataclass(frozen=True)
class InH(PathLoss):
    """InH office of 3GPP TR 38.901 V16.1.0, with the LOS probability of mixed offices.

    LOS: 32.4 + 17.3 log10(d) + 20 log10(f_c). NLOS: the larger of that and
    17.3 + 38.3 log10(d) + 24.9 log10(f_c). Shadowing: 3 dB LOS, 8.03 dB NLOS. Horizontal distances
    start at 1 m; 3D distances end at 150 m.

    >>> import channels
    >>> channels.InH(carrier_ghz=3.5).loss_db([10.0, 50.0], True).round(1).tolist()
    [60.7, 72.7]

    Args:
        carrier_ghz: f_c, carrier frequency in GHz, from 0.5 to 100.
        base_station_height_m: height at the ceiling, from 1 to 10 metres.
        client_height_m: from 0.5 to 10 metres.
    """

    carrier_ghz: float = 3.5
    base_station_height_m: float = 3.0
    client_height_m: float = 1.0

    def __post_init__(self) -> None:
        check_carrier(self.carrier_ghz)
        check_setting("base_station_height_m", self.base_station_height_m, 1, 10, "metres")
        check_setting("client_height_m", self.client_height_m, 0.5, 10, "metres")

    @property
    def range_m(self) -> tuple[float, float]:
        """See :class:`PathLoss`."""
        height = self.base_station_height_m - self.client_height_m
        return 1.0, math.sqrt(LONGEST_M**2 - height**2)

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table 7.4.2-1, mixed office."""
        distance = self.distances(distance_m)
        near = np.exp(-np.maximum(distance - 1.2, 0.0) / 4.7)
        return np.where(distance < 6.5, near, 0.32 * np.exp(-(distance - 6.5) / 32.6))

    def loss_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table 7.4.1-1."""
        flat, sight = self.links(distance_m, line_of_sight)
        steps = np.log10(np.hypot(flat, self.base_station_height_m - self.client_height_m))
        carrier = math.log10(self.carrier_ghz)
        loss = 32.4 + 17.3 * steps + 20 * carrier
        return np.where(sight, loss, np.maximum(loss, 17.3 + 38.3 * steps + 24.9 * carrier))

    def shadowing_std_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table 7.4.1-1."""
        _, sight = self.links(distance_m, line_of_sight)
        return np.where(sight, 3.0, 8.03)

    @property
    def sight_distance_m(self) -> float:
        """See :class:`PathLoss`; Table 7.6.3.1-2."""
        return 10.0

    def shadowing_distance_m(self, line_of_sight: BoolArray) -> FloatArray:
        """See :class:`PathLoss`; Table 7.5-6."""
        return np.where(line_of_sight, 10.0, 6.0)
