"""Settings of cells and clients: their number, radio, devices and behaviour."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from wirelessfl.config.sections.behaviour import BehaviourSection
from wirelessfl.config.sections.devices import DevicesSection
from wirelessfl.config.sections.radio import RadioSection
from wirelessfl.config.sections.section import Section
from wirelessfl.import_paths import absolute
from wirelessfl.needs import BUILT, CELLS, GIVEN, LINKS


class CellsSection(Section):
    """Numbers of cells and clients, and wired links."""

    cells: Annotated[int | None, BUILT, CELLS] = Field(
        None, ge=1, description="number of cells (default: 4)"
    )
    clients: Annotated[int, BUILT] = Field(
        60, ge=1, le=10**14, description="total number of clients"
    )
    network: Annotated[str | None, GIVEN] = Field(
        None, description="own network, module:function (default: drawn)"
    )
    downlink_mbps: Annotated[float | None, LINKS] = Field(
        None, gt=0, description="rate to each client, Mbit/s (default: no delay)"
    )
    backhaul_mbps: Annotated[float | None, CELLS] = Field(
        None, gt=0, description="rate from edge server to cloud, Mbit/s (default: no delay)"
    )

    @field_validator("network")
    @classmethod
    def _absolute(cls, network: str | None) -> str | None:
        # A run may be resumed from another working directory.
        return absolute(network)  # type: ignore[no-any-return]


class NetworkSection(BehaviourSection, DevicesSection, RadioSection, CellsSection):
    """Cells and clients, their radio links, devices and behaviour."""
