"""The radio as settings: layouts, path losses and fading models of ``channels`` as choices.

``adopt`` makes a choice of a dataclass of ``channels``: its fields and defaults are those of the
dataclass, and ``FIELDS`` adds their limits and descriptions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import BeforeValidator, Field

import channels
from channels.arrays import ComplexArray, IntArray
from channels.layouts import Layout
from channels.mobility import FASTEST_KMH, Mobility
from channels.path_loss import PathLoss, Variant
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import UnfitError, described, implementing, instance, returns
from wirelessfl.base.needs import BUILT, DRAWN, POSITIONS, RADIO, ROUNDS, Needs, beside
from wirelessfl.base.registry import Choice, Kind, adopt

FIELDS = {
    "inter_site_distance_m": Field(
        ge=1, le=100_000, description="distance of neighbouring edge servers, m"
    ),
    "radius_m": Field(ge=1, le=100_000, description="radius of a cell, m"),
    "distance_m": Field(
        ge=1, le=100_000, description="distance of each client to its edge server, m"
    ),
    "exponent": Field(ge=1, le=10, description="path-loss exponent"),
    "reference_db": Field(ge=0, le=200, description="path loss at the reference distance, dB"),
    "reference_m": Field(gt=0, description="reference distance, m"),
    "carrier_ghz": Field(gt=0, description="carrier frequency, GHz"),
    "base_station_height_m": Field(gt=0, description="height of the edge servers' antennas, m"),
    "client_height_m": Field(gt=0, description="height of the clients, m"),
    "surroundings": Field(description="buildings around the clients"),
    "line_of_sight": Field(
        description="line of sight, by the model's probability or for all or no links"
    ),
    "shadowing_db": Field(
        ge=0, le=30, description="standard deviation of shadowing, dB (default: the model's)"
    ),
    "building_height_m": Field(gt=0, description="height of buildings, m"),
    "street_width_m": Field(gt=0, description="width of streets, m"),
}
"""Limits and descriptions of the fields of layouts and path losses, in the order of settings."""
COMMON_BLOCKS = Needs(
    lambda run, _: (
        not run.regime.of_tasks or (run.schedule.work != "requests" and run.uplink.gives == "sum")
    ),
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
    """Base class of layouts with positions."""

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
    interferers: Annotated[
        Literal["one", "active"] | None,
        Field(
            description="who is heard in other cells: one random client, or those that take part "
            "(default: one)"
        ),
        ROUNDS,
        beside("reuse_factor"),
    ] = None
    association: Annotated[
        Literal["placed", "nearest", "strongest", "fastest"] | Path | None,
        Field(
            description="cell of each client: placed by the layout, nearest, strongest, fastest "
            "(shortest round), or a CSV file with a cell per line (default: placed)"
        ),
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
    __name__,
    LayoutModel,
    default="section-vi-c",
    needs=(*RADIO, DRAWN),
    table=BUILT,
    text="positions of cells and clients",
    heading="network",
)
"""All layouts."""
_layout = partial(adopt, Placed, FIELDS)


@dataclass(frozen=True)
class SectionVIC(LayoutModel):
    """No positions: the SNRs of Section VI-C of the HIST paper, or snr_db and path_gain_db."""

    name: ClassVar[str] = "section-vi-c"
    positions: ClassVar[bool] = False

    def build(self) -> None:
        """See ``LayoutModel``."""


Hexagonal = _layout(
    channels.Hexagonal,
    "hexagonal",
    "Edge servers on a hexagonal grid, and uniformly distributed clients.",
)
Disc = _layout(channels.Disc, "disc", "Round cells with uniformly distributed clients.")
Ring = _layout(
    channels.Ring, "ring", "All clients of a cell at the same distance from its edge server."
)


@dataclass(frozen=True)
class File(Placed):
    """Positions from a CSV file."""

    name: ClassVar[str] = "file"

    layout_file: Annotated[
        Path | None,
        Field(
            description="CSV file with the columns kind (base_station or client), x_m, y_m and "
            "optionally z_m, cell and interference_watts (required)"
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


@dataclass(frozen=True)
class PathLossModel(Choice, ABC):
    """Base class of all path loss models."""

    def __post_init__(self) -> None:
        self.build()  # raises if a setting is out of range

    @returns(instance(PathLoss))
    @abstractmethod
    def build(self) -> PathLoss:
        """Create the model.

        Raises:
            ValueError: a setting is out of range.
        """


PATH_LOSSES: Kind[PathLossModel] = Kind(
    "path_loss",
    __name__,
    PathLossModel,
    default="umi",
    needs=(*RADIO, DRAWN, POSITIONS),
    table=BUILT,
    text="path loss and shadowing",
    heading="network",
)
"""All path loss models."""
SIGHT = {"random": None, "always": True, "never": False}
_SHADOWING = {"shadowing_db": (float | None, None)}
_SIGHT_AND_SHADOWING = {
    "line_of_sight": (Literal["random", "always", "never"], "random"),
    **_SHADOWING,
}


def _variant(
    model: PathLoss, shadowing_db: float | None, line_of_sight: str = "random"
) -> PathLoss:
    return Variant(model, SIGHT[line_of_sight], shadowing_db)


_tr38901 = partial(adopt, PathLossModel, FIELDS, more=_SIGHT_AND_SHADOWING, wrap=_variant)
Uma = _tr38901(channels.Uma, "uma", "UMa of 3GPP TR 38.901: urban macro cells.")
Umi = _tr38901(channels.Umi, "umi", "UMi of 3GPP TR 38.901: street canyons (urban micro cells).")
Rma = _tr38901(channels.Rma, "rma", "RMa of 3GPP TR 38.901: rural macro cells.")
InH = _tr38901(channels.InH, "inh", "InH of 3GPP TR 38.901: indoor offices.")
UmaAv = _tr38901(
    channels.UmaAv, "uma-av", "UMa-AV of 3GPP TR 36.777: urban macro cells with flying clients."
)
AirToGround = _tr38901(
    channels.AirToGround,
    "air-to-ground",
    "Flying edge servers, by elevation (Al-Hourani et al., 2014).",
)
Tr36814 = adopt(
    PathLossModel,
    FIELDS,
    channels.Tr36814,
    "tr36814",
    "3GPP TR 36.814, macro cells at 2 GHz: 128.1 + 37.6 log10(distance in km) dB.",
    more=_SHADOWING,
    wrap=_variant,
)
LogDistance = adopt(
    PathLossModel,
    FIELDS
    | {"shadowing_db": Field(ge=0, le=30, description="standard deviation of shadowing, dB")},
    channels.LogDistance,
    "log-distance",
    "Log-distance: reference_db + 10 exponent log10(distance / reference_m) dB.",
)


def _channels(
    value: Any,
    fading: Fading,
    stream: Stream,
    index: int,
    clients: IntArray,
    root: ComplexArray,
) -> ComplexArray:
    """Check for finite channels of all clients and antennas."""
    required = f"a complex NumPy array of shape {[len(clients), len(root)]}, [clients, antennas]"
    if not isinstance(value, np.ndarray) or value.dtype.kind != "c":
        raise UnfitError(described(value), required)
    if value.shape != (len(clients), len(root)):
        raise UnfitError(described(value), required)
    if not np.isfinite(value).all():
        raise UnfitError("channels that are not finite", f"{required}, finite")
    return value


class Fading(channels.Fading, Protocol):
    """A fading model whose channels are checked."""

    @returns(_channels)
    def draw(
        self, stream: Stream, index: int, clients: IntArray, root: ComplexArray
    ) -> ComplexArray:
        """See :class:`channels.Fading`."""


@dataclass(frozen=True)
class FadingModel(Choice, ABC):
    """Base class of all fading models."""

    @returns(implementing(Fading))
    @abstractmethod
    def build(self) -> channels.Fading:
        """Create the distribution of the channel vectors."""


FADINGS: Kind[FadingModel] = Kind(
    "fading",
    __name__,
    FadingModel,
    default="rayleigh",
    needs=(*RADIO, DRAWN),
    table=BUILT,
    text="block fading",
    heading="network",
)
"""All fading models."""
Rayleigh = adopt(
    FadingModel, {}, channels.Rayleigh, "rayleigh", "Rayleigh block fading: no line-of-sight path."
)


@dataclass(frozen=True)
class Rician(FadingModel):
    """Rician block fading: a line-of-sight path and scattered paths."""

    name: ClassVar[str] = "rician"

    rician_k_db: Annotated[float, Field(ge=-100, le=100, description="Rician K factor, dB")] = 6.0

    def build(self) -> channels.Fading:
        """Create ``channels.Rician``."""
        return channels.Rician(self.rician_k_db)


@dataclass(frozen=True)
class MobilityModel(Choice, ABC):
    """Base class of all rules by which clients move."""

    moves: ClassVar[bool] = True
    """Whether clients move."""

    def __post_init__(self) -> None:
        if self.moves:
            self.build()  # raises if a setting is out of range

    @returns(instance(Mobility))
    @abstractmethod
    def build(self) -> Mobility | None:
        """Create the rule.

        Raises:
            ValueError: a setting is out of range.
        """


MOBILITIES: Kind[MobilityModel] = Kind(
    "mobility",
    __name__,
    MobilityModel,
    default="none",
    needs=(*RADIO, DRAWN, POSITIONS, COMMON_BLOCKS),
    table=BUILT,
    text="how clients move from block to block",
    heading="network",
)
"""All rules by which clients move."""


@dataclass(frozen=True)
class Still(MobilityModel):
    """Clients stand still."""

    name: ClassVar[str] = "none"
    moves: ClassVar[bool] = False

    def build(self) -> None:
        """See ``MobilityModel``."""


ONE_SHIFT = Needs(
    lambda run, _: run.settings.network.doppler_hz is None,
    "conflicts with doppler_hz={run.settings.network.doppler_hz:g}, which is the shift of all "
    "clients: choose one of them",
)


@dataclass(frozen=True)
class Waypoint(MobilityModel):
    """Clients walk to random points of their cell, one after another, and keep their cell."""

    name: ClassVar[str] = "waypoint"

    speed_kmh: Annotated[
        tuple[Annotated[float, Field(ge=0, le=FASTEST_KMH)], ...],
        BeforeValidator(lambda value: (value,) if isinstance(value, int | float) else value),
        Field(description="speed of the clients, km/h, or LOW,HIGH for uniform speeds"),
    ] = (3.0,)
    speed_doppler: Annotated[
        Literal["none", "jakes", "ar1"],
        Field(
            description="correlation of the fading by the Doppler shift v f_c / c of each client's "
            "speed, as doppler_model"
        ),
        ONE_SHIFT,
    ] = "none"

    def build(self) -> Mobility:
        """Create ``channels.RandomWaypoint``."""
        speeds = self.speed_kmh
        ends: Any = speeds[0] if len(speeds) == 1 else speeds
        return channels.RandomWaypoint(ends, self.speed_doppler)


@dataclass(frozen=True)
class Trace(MobilityModel):
    """Positions from a CSV file."""

    name: ClassVar[str] = "trace"

    positions: Annotated[
        Path | None,
        Field(
            description="CSV file with the columns client, round or seconds, x_m, y_m and "
            "optionally z_m (required)"
        ),
    ] = None

    def build(self) -> Mobility:
        """Create ``channels.PositionTrace``.

        Raises:
            ConfigError: no file is given.
        """
        if self.positions is None:
            raise ConfigError("mobility is 'trace', which needs positions: give a file.")
        return channels.PositionTrace(str(self.positions))
