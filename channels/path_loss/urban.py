"""What the urban models of TR 38.901, UMi and UMa, have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray
from channels.path_loss.path_loss import LIGHT_M_PER_S, PathLoss, check_carrier, check_setting

ENVIRONMENT_M = 1.0
"""Effective environment height h_E in metres (Table 7.4.1-1, NOTE 1)."""


@dataclass(frozen=True)
class Urban(PathLoss):
    """Dual-slope path loss with an effective breakpoint distance (TR 38.901 V16.1.0, 7.4).

    d_BP = 4 (h_BS - h_E) (h_UT - h_E) f_c / c with h_E = 1 m. LOS, with d the 3D distance:

    PL_1 = A + a log10(d) + 20 log10(f_c) for 2D distances up to d_BP, and beyond
    PL_2 = A + 40 log10(d) + 20 log10(f_c) - b log10(d_BP^2 + (h_BS - h_UT)^2).

    NLOS is the larger of that and the NLOS formula of the subclass, which has the ranges.
    """

    carrier_ghz: float = 3.5
    base_station_height_m: float = 10.0
    client_height_m: float = 1.5

    heights_m: ClassVar[tuple[float, float]]
    """Range of ``base_station_height_m``."""
    client_heights_m: ClassVar[tuple[float, float]] = (1.5, 22.5)
    los: ClassVar[tuple[float, float, float]]
    """A, a and b of the LOS formulas."""
    decay_m: ClassVar[float]
    """Decay of the LOS probability, in metres."""
    std_db: ClassVar[tuple[float, float]]
    """Standard deviation of shadowing with and without a line of sight."""
    correlation_m: ClassVar[tuple[float, float]]
    """Correlation distance of shadowing with and without a line of sight (Table 7.5-6)."""

    def __post_init__(self) -> None:
        check_carrier(self.carrier_ghz)
        check_setting(
            "base_station_height_m", self.base_station_height_m, *self.heights_m, "metres"
        )
        check_setting("client_height_m", self.client_height_m, *self.client_heights_m, "metres")

    @property
    def range_m(self) -> tuple[float, float]:
        """See :class:`PathLoss`; 10 m to 5 km."""
        return 10.0, 5000.0

    @property
    def breakpoint_m(self) -> float:
        """Effective breakpoint distance in metres."""
        heights = self.base_station_height_m - ENVIRONMENT_M, self.client_height_m - ENVIRONMENT_M
        return 4 * heights[0] * heights[1] * self.carrier_ghz * 1e9 / LIGHT_M_PER_S

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table 7.4.2-1 for outdoor clients of at most 13 m."""
        distance = self.distances(distance_m)
        near = np.minimum(18 / distance, 1.0)
        return np.asarray(near + np.exp(-distance / self.decay_m) * (1 - near))

    def loss_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table 7.4.1-1."""
        flat, sight = self.links(distance_m, line_of_sight)
        height: float = self.base_station_height_m - self.client_height_m
        distance = np.hypot(flat, height)
        constant, slope, knee = self.los
        fixed = constant + 20 * np.log10(self.carrier_ghz)
        near = fixed + slope * np.log10(distance)
        far = fixed + 40 * np.log10(distance)
        far = far - knee * np.log10(self.breakpoint_m**2 + height**2)
        loss = np.where(flat <= self.breakpoint_m, near, far)
        return np.asarray(np.where(sight, loss, np.maximum(loss, self.nlos_db(distance))))

    @abstractmethod
    def nlos_db(self, distance_m: FloatArray) -> FloatArray:
        """PL' without a line of sight at a 3D distance, in dB."""

    def shadowing_std_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table 7.4.1-1."""
        _, sight = self.links(distance_m, line_of_sight)
        clear, blocked = self.std_db
        return np.where(sight, clear, blocked)

    def shadowing_distance_m(self, line_of_sight: BoolArray) -> FloatArray:
        """See :class:`PathLoss`; Table 7.5-6."""
        return np.where(line_of_sight, *self.correlation_m)
