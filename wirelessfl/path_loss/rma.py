"""Path loss of rural macro cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

import channels.path_loss
from wirelessfl.path_loss.base import StationHeight, Tr38901


@dataclass(frozen=True)
class Rma(Tr38901):
    """RMa of 3GPP TR 38.901: rural macro cells.

    Args:
        building_height_m: average height of buildings in metres.
        street_width_m: average width of streets in metres.
    """

    base_station_height_m: StationHeight = 35.0
    building_height_m: Annotated[float, Field(gt=0, description="height of buildings, m")] = 5.0
    street_width_m: Annotated[float, Field(gt=0, description="width of streets, m")] = 20.0

    def model(self) -> channels.path_loss.PathLoss:
        """See ``Tr38901``."""
        return channels.path_loss.Rma(
            self.carrier_ghz,
            self.base_station_height_m,
            self.client_height_m,
            self.building_height_m,
            self.street_width_m,
        )
