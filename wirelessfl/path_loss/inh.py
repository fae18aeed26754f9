"""Path loss of indoor offices."""

from __future__ import annotations

from dataclasses import dataclass

import channels.path_loss
from wirelessfl.path_loss.base import ClientHeight, StationHeight, Tr38901


@dataclass(frozen=True)
class InH(Tr38901):
    """InH of 3GPP TR 38.901: indoor offices."""

    base_station_height_m: StationHeight = 3.0
    client_height_m: ClientHeight = 1.0

    def model(self) -> channels.path_loss.PathLoss:
        """See ``Tr38901``."""
        return channels.path_loss.InH(
            self.carrier_ghz, self.base_station_height_m, self.client_height_m
        )
