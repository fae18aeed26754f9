"""Path loss of street canyons (urban micro cells)."""

from __future__ import annotations

from dataclasses import dataclass

import channels.path_loss
from wirelessfl.path_loss.base import ClientHeight, StationHeight, Tr38901


@dataclass(frozen=True)
class Umi(Tr38901):
    """UMi of 3GPP TR 38.901: street canyons (urban micro cells)."""

    base_station_height_m: StationHeight = 10.0
    client_height_m: ClientHeight = 1.5

    def model(self) -> channels.path_loss.PathLoss:
        """See ``Tr38901``."""
        return channels.path_loss.Umi(
            self.carrier_ghz, self.base_station_height_m, self.client_height_m
        )
