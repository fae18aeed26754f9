"""Urban macro cells (3GPP TR 38.901 V16.1.0, Tables 7.4.1-1 and 7.4.2-1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from channels.arrays import FloatArray
from channels.path_loss.urban import Urban


@dataclass(frozen=True)
class Uma(Urban):
    """UMa of 3GPP TR 38.901 V16.1.0, outdoors; horizontal distances of 10 m to 5 km.

    The LOS formulas are those of :class:`Urban` with A = 28, a = 22 and b = 9. NLOS:
    13.54 + 39.08 log10(d) + 20 log10(f_c) - 0.6 (h_UT - 1.5). Shadowing: 4 dB LOS, 6 dB NLOS.
    Clients above 13 m are refused: their environment height h_E is random, and their LOS
    probability has a further term.

    >>> import channels
    >>> channels.Uma(carrier_ghz=3.5).los_probability([10.0, 100.0]).round(3).tolist()
    [1.0, 0.348]

    Args:
        carrier_ghz: f_c, carrier frequency in GHz, from 0.5 to 100.
        base_station_height_m: h_BS, from 20 to 50 metres. The table holds for 25 m; other heights
            extrapolate it.
        client_height_m: h_UT, from 1.5 to 13 metres.
    """

    base_station_height_m: float = 25.0

    heights_m: ClassVar[tuple[float, float]] = (20.0, 50.0)
    client_heights_m: ClassVar[tuple[float, float]] = (1.5, 13.0)
    los: ClassVar[tuple[float, float, float]] = (28.0, 22.0, 9.0)
    decay_m: ClassVar[float] = 63.0
    std_db: ClassVar[tuple[float, float]] = (4.0, 6.0)
    correlation_m: ClassVar[tuple[float, float]] = (37.0, 50.0)

    def nlos_db(self, distance_m: FloatArray) -> FloatArray:
        """See :class:`Urban`."""
        fixed = 13.54 + 20 * np.log10(self.carrier_ghz) - 0.6 * (self.client_height_m - 1.5)
        return np.asarray(fixed + 39.08 * np.log10(distance_m))
