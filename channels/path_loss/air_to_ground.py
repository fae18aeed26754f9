"""Flying base stations: path loss by elevation angle (Al-Hourani, Kandeepan, Lardner, 2014)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from channels.path_loss.path_loss import PathLoss, check_carrier, check_setting
from channels.validation import shown

LIGHT_M_PER_S = 299_792_458.0
Surroundings = Literal["suburban", "urban", "dense-urban", "highrise"]


class _Constants(NamedTuple):
    """S-curve of the line of sight, and losses in excess of free space in dB."""

    a: float
    b: float
    los_db: float
    nlos_db: float


SURROUNDINGS: dict[str, _Constants] = {
    "suburban": _Constants(4.88, 0.43, 0.1, 21.0),
    "urban": _Constants(9.61, 0.16, 1.0, 20.0),
    "dense-urban": _Constants(12.08, 0.11, 1.6, 23.0),
    "highrise": _Constants(27.23, 0.08, 2.3, 34.0),
}
"""Constants of the model by surroundings; the losses hold for 2 GHz."""


@dataclass(frozen=True)
class AirToGround(PathLoss):
    """Free space with an excess loss, whose line of sight depends on the angle of elevation.

    P_LOS = 1 / (1 + a exp(-b (theta - a))) at an elevation of theta degrees, and the loss is
    20 log10(4 pi f d / c) + eta at the 3D distance d, with eta_LOS or eta_NLOS (Al-Hourani et al.,
    Optimal LAP altitude for maximum coverage, IEEE Wireless Commun. Lett. 3(6), 2014, (2) to (5)).
    The excess losses are means: without shadowing. A higher base station has more lines of sight,
    and a longer path: in the model, the altitude of the largest cell is at 20.3, 42.4, 54.6 and
    75.5 degrees of elevation in the four surroundings.

    >>> import channels
    >>> model = channels.AirToGround(base_station_height_m=101.5)
    >>> model.los_probability([1.0, 100.0, 1000.0]).round(3).tolist()
    [1.0, 0.968, 0.053]

    Args:
        carrier_ghz: f, carrier frequency in GHz, from 0.5 to 100.
        base_station_height_m: altitude of the base station, from 10 to 20000 metres.
        client_height_m: from 0 to 22.5 metres, below the base station.
        surroundings: "suburban", "urban", "dense-urban" or "highrise".
    """

    carrier_ghz: float = 2.0
    base_station_height_m: float = 100.0
    client_height_m: float = 1.5
    surroundings: Surroundings = "urban"

    def __post_init__(self) -> None:
        check_carrier(self.carrier_ghz)
        check_setting("base_station_height_m", self.base_station_height_m, 10, 20_000, "metres")
        check_setting("client_height_m", self.client_height_m, 0, 22.5, "metres")
        if self.client_height_m >= self.base_station_height_m:
            raise ValueError(
                f"client_height_m is {self.client_height_m:g}, and base_station_height_m "
                f"{self.base_station_height_m:g}: give a base station above its clients."
            )
        if self.surroundings not in SURROUNDINGS:
            raise ValueError(
                f"surroundings is {shown(self.surroundings)}: choose {', '.join(SURROUNDINGS)}."
            )

    @property
    def range_m(self) -> tuple[float, float]:
        """See :class:`PathLoss`; 1 m, nearly below the base station, to 100 km."""
        return 1.0, 100_000.0

    @property
    def _height_m(self) -> float:
        return self.base_station_height_m - self.client_height_m

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        a, b, _, _ = SURROUNDINGS[self.surroundings]
        elevation = np.degrees(np.arctan2(self._height_m, self.distances(distance_m)))
        return np.asarray(1 / (1 + a * np.exp(-b * (elevation - a))))

    def loss_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`."""
        flat, sight = self.links(distance_m, line_of_sight)
        _, _, clear, blocked = SURROUNDINGS[self.surroundings]
        wave = 4 * math.pi * self.carrier_ghz * 1e9 / LIGHT_M_PER_S
        free = 20 * np.log10(wave * np.hypot(flat, self._height_m))
        return np.asarray(free + np.where(sight, clear, blocked))

    def shadowing_std_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; 0."""
        return np.zeros_like(self.links(distance_m, line_of_sight)[0])
