"""The interface of a path loss model as a setting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from channels.path_loss import PathLoss, Variant
from wirelessfl.guard import returns
from wirelessfl.registry import Choice
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
