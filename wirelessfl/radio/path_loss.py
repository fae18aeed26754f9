"""Path loss models as settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

import channels
from channels.path_loss import PathLoss, Variant
from wirelessfl.guard import returns
from wirelessfl.needs import BUILT, DRAWN, POSITIONS, RADIO
from wirelessfl.registry import Choice, Kind
from wirelessfl.returned import instance

Shadowing = Annotated[
    float | None,
    Field(ge=0, le=30, description="standard deviation of shadowing, dB (default: the model's)"),
]
StationHeight = Annotated[float, Field(gt=0, description="height of the edge servers' antennas, m")]
ClientHeight = Annotated[float, Field(gt=0, description="height of the clients, m")]
SIGHT = {"random": None, "always": True, "never": False}


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
    __package__,
    PathLossModel,
    default="umi",
    needs=(*RADIO, DRAWN, POSITIONS),
    table=BUILT,
    text="path loss and shadowing",
    heading="network",
)
"""All path loss models."""


@dataclass(frozen=True)
class Tr38901(PathLossModel, ABC):
    """What the models of 3GPP TR 38.901 have in common.

    Args:
        carrier_ghz: carrier frequency in GHz.
        base_station_height_m: height of the edge servers' antennas in metres.
        client_height_m: height of the clients in metres.
        line_of_sight: whether links have a line of sight: by the model's probability, or all or
            none of them.
        shadowing_db: standard deviation of shadowing in dB; None for the model's.
    """

    carrier_ghz: Annotated[float, Field(gt=0, description="carrier frequency, GHz")] = 3.5
    base_station_height_m: StationHeight = 10.0
    client_height_m: ClientHeight = 1.5
    line_of_sight: Annotated[
        Literal["random", "always", "never"],
        Field(description="line of sight, by the model's probability or for all or no links"),
    ] = "random"
    shadowing_db: Shadowing = None

    @abstractmethod
    def model(self) -> PathLoss:
        """The model with its own lines of sight and shadowing."""

    def build(self) -> PathLoss:
        """See ``PathLossModel``."""
        return Variant(self.model(), SIGHT[self.line_of_sight], self.shadowing_db)


@dataclass(frozen=True)
class Uma(Tr38901):
    """UMa of 3GPP TR 38.901: urban macro cells."""

    name: ClassVar[str] = "uma"

    base_station_height_m: StationHeight = 25.0
    client_height_m: ClientHeight = 1.5

    def model(self) -> PathLoss:
        """See ``Tr38901``."""
        return channels.Uma(self.carrier_ghz, self.base_station_height_m, self.client_height_m)


@dataclass(frozen=True)
class Umi(Tr38901):
    """UMi of 3GPP TR 38.901: street canyons (urban micro cells)."""

    name: ClassVar[str] = "umi"

    base_station_height_m: StationHeight = 10.0
    client_height_m: ClientHeight = 1.5

    def model(self) -> PathLoss:
        """See ``Tr38901``."""
        return channels.Umi(self.carrier_ghz, self.base_station_height_m, self.client_height_m)


@dataclass(frozen=True)
class Rma(Tr38901):
    """RMa of 3GPP TR 38.901: rural macro cells.

    Args:
        building_height_m: average height of buildings in metres.
        street_width_m: average width of streets in metres.
    """

    name: ClassVar[str] = "rma"

    base_station_height_m: StationHeight = 35.0
    building_height_m: Annotated[float, Field(gt=0, description="height of buildings, m")] = 5.0
    street_width_m: Annotated[float, Field(gt=0, description="width of streets, m")] = 20.0

    def model(self) -> PathLoss:
        """See ``Tr38901``."""
        return channels.Rma(
            self.carrier_ghz,
            self.base_station_height_m,
            self.client_height_m,
            self.building_height_m,
            self.street_width_m,
        )


@dataclass(frozen=True)
class InH(Tr38901):
    """InH of 3GPP TR 38.901: indoor offices."""

    name: ClassVar[str] = "inh"

    base_station_height_m: StationHeight = 3.0
    client_height_m: ClientHeight = 1.0

    def model(self) -> PathLoss:
        """See ``Tr38901``."""
        return channels.InH(self.carrier_ghz, self.base_station_height_m, self.client_height_m)


@dataclass(frozen=True)
class Tr36814(PathLossModel):
    """3GPP TR 36.814, macro cells at 2 GHz: 128.1 + 37.6 log10(distance in km) dB.

    Args:
        shadowing_db: standard deviation of shadowing in dB; None for 8 dB.
    """

    name: ClassVar[str] = "tr36814"

    shadowing_db: Shadowing = None

    def build(self) -> PathLoss:
        """See ``PathLossModel``."""
        model = channels.Tr36814()
        return channels.Variant(model, shadowing_db=self.shadowing_db)


@dataclass(frozen=True)
class LogDistance(PathLossModel):
    """Log-distance: reference_db + 10 exponent log10(distance / reference_m) dB.

    Args:
        exponent: path-loss exponent; 2 in free space.
        reference_db: loss at ``reference_m``, in dB.
        reference_m: reference distance in metres.
        shadowing_db: standard deviation of shadowing in dB.
    """

    name: ClassVar[str] = "log-distance"

    exponent: Annotated[float, Field(ge=1, le=10, description="path-loss exponent")] = 3.76
    reference_db: Annotated[
        float, Field(ge=0, le=200, description="path loss at the reference distance, dB")
    ] = 15.3
    reference_m: Annotated[float, Field(gt=0, description="reference distance, m")] = 1.0
    shadowing_db: Annotated[
        float, Field(ge=0, le=30, description="standard deviation of shadowing, dB")
    ] = 8.0

    def build(self) -> PathLoss:
        """See ``PathLossModel``."""
        return channels.LogDistance(
            exponent=self.exponent,
            reference_db=self.reference_db,
            reference_m=self.reference_m,
            shadowing_db=self.shadowing_db,
        )
