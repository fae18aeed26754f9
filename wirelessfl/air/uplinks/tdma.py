"""Time division: the clients of a cell upload in turn, each with the whole band; (17)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from channels import Access, EqualSlots, ReadyOrder
from solvers import WaterFilled
from wirelessfl.air.uplinks.uplink import NO_FAILURES, Uplink
from wirelessfl.base.needs import Suits

SHANNON = Suits(
    lambda _, choice: choice.rates != "mcs" or choice.power_loading != "water-filling",
    'rates="mcs" conflicts with power_loading="water-filling", which maximises Shannon\'s rates: '
    "choose one of them",
)


@dataclass(frozen=True)
class Tdma(Uplink):
    """Time division: the clients of a cell take turns on the whole band (HIST paper, (17)).

    An upload in equal slots takes n_j / R_i seconds per bit, and one in order of readiness 1 / R_i.
    """

    name = "tdma"

    order: Annotated[
        Literal["slots", "ready"],
        Field(
            description=(
                "equal slots (HIST), or one upload after another in order of readiness (ready)"
            )
        ),
    ] = "slots"
    rates: Annotated[
        Literal["shannon", "mcs"] | None,
        Field(description="Shannon's capacity, or modulation and coding (default: shannon)"),
        NO_FAILURES,
    ] = None
    power_loading: Annotated[
        Literal["equal", "water-filling"] | None,
        Field(
            description="power of the subcarriers of channels that differ over the band: equal, or "
            "as water-filling maximises the rate (default: equal)"
        ),
        SHANNON,
    ] = None

    @property
    def access(self) -> Access:
        """``channels.EqualSlots`` or ``ReadyOrder``, or ``solvers.WaterFilled`` of one of them."""
        law = self.rates or "shannon"
        access = EqualSlots(law) if self.order == "slots" else ReadyOrder(law)
        return WaterFilled(access) if self.power_loading == "water-filling" else access

    @property
    def equal_shares(self) -> Access | None:
        """``channels.EqualSlots`` if clients send in another order."""
        return None if self.order == "slots" else EqualSlots(self.rates or "shannon")
