"""Time division: the clients of a cell upload in turn, each with the whole band; (17)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from channels import Access, EqualSlots, ReadyOrder
from wirelessfl.air.uplinks.uplink import NO_FAILURES, Uplink


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

    @property
    def access(self) -> Access:
        """``channels.EqualSlots`` or ``channels.ReadyOrder``."""
        law = self.rates or "shannon"
        return EqualSlots(law) if self.order == "slots" else ReadyOrder(law)

    @property
    def equal_shares(self) -> Access | None:
        """``channels.EqualSlots`` if clients send in another order."""
        return None if self.order == "slots" else EqualSlots(self.rates or "shannon")
