"""Urban micro cells in street canyons (3GPP TR 38.901 V16.1.0, Tables 7.4.1-1 and 7.4.2-1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from channels.arrays import FloatArray
from channels.path_loss.urban import Urban


@dataclass(frozen=True)
class Umi(Urban):
    """UMi street canyon of 3GPP TR 38.901 V16.1.0, outdoors; horizontal distances of 10 m to 5 km.

    The LOS formulas are those of :class:`Urban` with A = 32.4, a = 21 and b = 9.5. NLOS:
    22.4 + 35.3 log10(d) + 21.3 log10(f_c) - 0.3 (h_UT - 1.5). Shadowing: 4 dB LOS, 7.82 dB NLOS.

    >>> import channels
    >>> channels.Umi(carrier_ghz=28.0).base_station_height_m
    10.0

    Args:
        carrier_ghz: f_c, carrier frequency in GHz, from 0.5 to 100.
        base_station_height_m: h_BS, from 5 to 20 metres. The table holds for 10 m; other heights
            extrapolate it.
        client_height_m: h_UT, from 1.5 to 22.5 metres.
    """

    heights_m: ClassVar[tuple[float, float]] = (5.0, 20.0)
    los: ClassVar[tuple[float, float, float]] = (32.4, 21.0, 9.5)
    decay_m: ClassVar[float] = 36.0
    std_db: ClassVar[tuple[float, float]] = (4.0, 7.82)
    correlation_m: ClassVar[tuple[float, float]] = (10.0, 13.0)

    def nlos_db(self, distance_m: FloatArray) -> FloatArray:
        """See :class:`Urban`."""
        fixed = 22.4 + 21.3 * np.log10(self.carrier_ghz) - 0.3 * (self.client_height_m - 1.5)
        return np.asarray(fixed + 35.3 * np.log10(distance_m))
