"""Layouts as settings: where cells and clients are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

import channels
from channels.layouts import Layout
from wirelessfl.errors import ConfigError
from wirelessfl.guard import returns
from wirelessfl.needs import BUILT, DRAWN, RADIO, Needs
from wirelessfl.registry import Choice, Kind
from wirelessfl.returned import instance

COMMON_BLOCKS = Needs(
    lambda run, _: not run.regime.of_tasks or run.schedule.work != "requests",
    'conflicts with schedule "{run.schedule.title}", whose uploads have no common block: choose '
    'schedule "rounds"',
)


@dataclass(frozen=True)
class LayoutModel(Choice, ABC):
    """Base class of all layouts; those with positions derive from ``Placed``."""

    positions: ClassVar[bool]
    """Whether cells and clients have positions, which give the mean channel gains."""

    @abstractmethod
    def build(self) -> Layout | None:
        """Create the layout; None without positions."""


@dataclass(frozen=True)
class Placed(LayoutModel, ABC):
    """Base class of layouts with positions.

    Args:
        antenna_gain_db: gain of the antenna elements of both ends together, in dB.
        reuse_factor: number of bands among which neighbouring cells are divided; cells of one band
            interfere. None: no interference.
    """

    positions: ClassVar[bool] = True

    antenna_gain_db: Annotated[
        float, Field(ge=-30, le=60, description="antenna gain of both ends together, dB")
    ] = 0.0
    reuse_factor: Annotated[
        int | None,
        Field(
            ge=1,
            le=1000,
            description="number of bands of neighbouring cells; cells of one band interfere "
            "(default: no interference)",
        ),
        COMMON_BLOCKS,
    ] = None

    @returns(instance(Layout))
    @abstractmethod
    def build(self) -> Layout:
        """Create the layout.

        Raises:
            ValueError: a setting is out of range.
        """


LAYOUTS: Kind[LayoutModel] = Kind(
    "layout",
    __package__,
    LayoutModel,
    default="section-vi-c",
    needs=(*RADIO, DRAWN),
    table=BUILT,
    text="positions of cells and clients",
    heading="network",
)
"""All layouts."""


@dataclass(frozen=True)
class SectionVIC(LayoutModel):
    """No positions: the SNRs of Section VI-C of the HIST paper, or snr_db and path_gain_db."""

    name: ClassVar[str] = "section-vi-c"
    positions: ClassVar[bool] = False

    def build(self) -> None:
        """See ``LayoutModel``."""


@dataclass(frozen=True)
class Hexagonal(Placed):
    """Edge servers on a hexagonal grid, and uniformly distributed clients.

    Args:
        inter_site_distance_m: distance of neighbouring edge servers in metres.
    """

    name: ClassVar[str] = "hexagonal"

    inter_site_distance_m: Annotated[
        float, Field(ge=1, le=100_000, description="distance of neighbouring edge servers, m")
    ] = 500.0

    def build(self) -> Layout:
        """See ``Placed``."""
        return channels.Hexagonal(self.inter_site_distance_m)


@dataclass(frozen=True)
class Disc(Placed):
    """Round cells with uniformly distributed clients.

    Args:
        radius_m: radius of a cell in metres.
    """

    name: ClassVar[str] = "disc"

    radius_m: Annotated[float, Field(ge=1, le=100_000, description="radius of a cell, m")] = 500.0

    def build(self) -> Layout:
        """See ``Placed``."""
        return channels.Disc(self.radius_m)


@dataclass(frozen=True)
class Ring(Placed):
    """All clients of a cell at the same distance from its edge server.

    Args:
        distance_m: distance of each client to its edge server in metres.
    """

    name: ClassVar[str] = "ring"

    distance_m: Annotated[
        float, Field(ge=1, le=100_000, description="distance of each client to its edge server, m")
    ] = 100.0

    def build(self) -> Layout:
        """See ``Placed``."""
        return channels.Ring(self.distance_m)


@dataclass(frozen=True)
class File(Placed):
    """Positions from a CSV file.

    Args:
        layout_file: CSV file with the columns kind (base_station or client), x_m, y_m and
            optionally cell, see ``channels.FileLayout``; required.
    """

    name: ClassVar[str] = "file"

    layout_file: Annotated[
        Path | None,
        Field(
            description="CSV file with the columns kind (base_station or client), x_m, y_m and "
            "optionally cell (required)"
        ),
    ] = None

    def build(self) -> Layout:
        """See ``Placed``.

        Raises:
            ConfigError: no file is given.
        """
        if self.layout_file is None:
            raise ConfigError("layout is 'file', which needs layout_file: give it.")
        return channels.FileLayout(str(self.layout_file))
