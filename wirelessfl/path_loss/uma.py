"""Path loss of urban macro cells."""

from __future__ import annotations

from dataclasses import dataclass

import channels.path_loss
from wirelessfl.path_loss.base import ClientHeight, StationHeight, Tr38901


@dataclass(frozen=True)
class Uma(Tr38901):
    """UMa of 3GPP TR 38.901: urban macro cells."""

    base_station_height_m: StationHeight = 25.0
    client_height_m: ClientHeight = 1.5

    def model(self) -> channels.path_loss.PathLoss:
        """See ``Tr38901``."""
        return channels.path_loss.Uma(
            self.carrier_ghz, self.base_station_height_m, self.client_height_m
        )
