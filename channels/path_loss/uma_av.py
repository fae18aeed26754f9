"""Urban macro cells with flying clients (3GPP TR 36.777 V15.0.0, Annex B)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from channels.path_loss.path_loss import PathLoss, check_carrier, check_setting

ALWAYS_M = 100.0
"""Height above which all clients have a line of sight."""


@dataclass(frozen=True)
class UmaAv(PathLoss):
    """UMa-AV of 3GPP TR 36.777 V15.0.0, Tables B-1 to B-3; horizontal distances of 10 m to 4 km.

    LOS: 28 + 22 log10(d) + 20 log10(f_c), d the 3D distance. NLOS:
    -17.5 + (46 - 7 log10(h_UT)) log10(d) + 20 log10(40 pi f_c / 3). Shadowing: 4.64 exp(-0.0066
    h_UT) dB LOS, 6 dB NLOS. Above 100 m all clients have a line of sight, and the NLOS formulas
    extrapolate. Clients below 22.5 m have the model of :class:`Uma`.

    >>> import channels
    >>> model = channels.UmaAv(client_height_m=50.0)
    >>> model.los_probability([80.0, 500.0, 1000.0]).round(3).tolist()
    [1.0, 0.889, 0.772]

    Args:
        carrier_ghz: f_c, carrier frequency in GHz, from 0.5 to 100.
        base_station_height_m: h_BS, from 20 to 50 metres; the table holds for 25 m.
        client_height_m: h_UT, from 22.5 to 300 metres.
    """

    carrier_ghz: float = 3.5
    base_station_height_m: float = 25.0
    client_height_m: float = 50.0

    def __post_init__(self) -> None:
        check_carrier(self.carrier_ghz)
        check_setting("base_station_height_m", self.base_station_height_m, 20, 50, "metres")
        check_setting(
            *("client_height_m", self.client_height_m, 22.5, 300, "metres"),
            remedy=" Lower clients have the model uma.",
        )

    @property
    def range_m(self) -> tuple[float, float]:
        """See :class:`PathLoss`."""
        return 10.0, 4000.0

    def los_probability(self, distance_m: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table B-1."""
        distance = self.distances(distance_m)
        if self.client_height_m > ALWAYS_M:
            return np.ones_like(distance)
        height = math.log10(self.client_height_m)
        decay, near = 4300 * height - 3800, max(460 * height - 700, 18.0)
        share = np.minimum(near / distance, 1.0)
        return np.asarray(share + np.exp(-distance / decay) * (1 - share))

    def loss_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table B-2."""
        flat, sight = self.links(distance_m, line_of_sight)
        steps = np.log10(np.hypot(flat, self.base_station_height_m - self.client_height_m))
        clear = 28 + 22 * steps + 20 * math.log10(self.carrier_ghz)
        slope = 46 - 7 * math.log10(self.client_height_m)
        carrier = 20 * math.log10(40 * math.pi * self.carrier_ghz / 3)
        return np.where(sight, clear, -17.5 + slope * steps + carrier)

    def shadowing_std_db(self, distance_m: ArrayLike, line_of_sight: ArrayLike) -> FloatArray:
        """See :class:`PathLoss`; Table B-3."""
        _, sight = self.links(distance_m, line_of_sight)
        return np.where(sight, 4.64 * math.exp(-0.0066 * self.client_height_m), 6.0)
