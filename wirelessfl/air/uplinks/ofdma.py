"""Frequency division: the clients of a cell upload together, each in its own sub-band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from channels import Access, EqualBands
from solvers import DeadlineCheck, EnergyWithinDeadline, LeastTimeAndEnergy, OptimalBands
from wirelessfl.air.uplinks.uplink import NO_FAILURES, Uplink
from wirelessfl.base.needs import COHORTS, Suits, beside, without

EQUAL_RATES = Suits(
    lambda _, choice: choice.rates != "mcs" or type(choice.access) is EqualBands,
    'rates="mcs" conflicts with allocation="optimal", round_deadline and energy_weight, whose '
    'solvers take Shannon\'s formula: choose allocation "equal" without them',
)


@dataclass(frozen=True)
class Ofdma(Uplink):
    """Frequency division: each client concentrates its power in its part of the band.

    Without ``round_deadline`` and ``energy_weight``, clients compute at their highest clocks and
    send at their highest powers.
    """

    name = "ofdma"

    allocation: Annotated[
        Literal["equal", "optimal"],
        Field(
            description=(
                "bands of a cell's clients: equal (HIST paper, footnote 2), or to "
                "end its last upload soonest (optimal)"
            )
        ),
        without("energy_weight", ", which decides the bands"),
        without("round_deadline", ", which decides the bands"),
    ] = "equal"
    round_deadline: Annotated[
        float | None,
        Field(
            gt=0,
            le=1e9,
            description=(
                "deadline of a global round in seconds, with downloads and "
                "backhaul; bands, powers and clocks meet it with the least energy "
                "(default: no deadline)"
            ),
        ),
        COHORTS,
    ] = None
    energy_weight: Annotated[
        float | None,
        Field(
            ge=0,
            le=1e15,
            description="W, in seconds per joule: each round minimises its seconds + W x its "
            "clients' joules (default: no weight on energy)",
        ),
        COHORTS,
    ] = None
    late: Annotated[
        Literal["error", "lost"],
        Field(
            description=(
                "if a cell misses the round deadline: end the run with an error, "
                "or leave out the fewest clients with which it meets the deadline "
                "(lost)"
            )
        ),
        COHORTS,
        beside("round_deadline"),
    ] = "error"
    rates: Annotated[
        Literal["shannon", "mcs"] | None,
        Field(description="Shannon's capacity, or modulation and coding (default: shannon)"),
        NO_FAILURES,
        EQUAL_RATES,
    ] = None

    @property
    def access(self) -> Access:
        """``LeastTimeAndEnergy``, ``EnergyWithinDeadline``, ``OptimalBands`` or ``EqualBands``."""
        if self.energy_weight is not None:
            return LeastTimeAndEnergy(self.energy_weight, late=self.late)
        if self.round_deadline is not None:
            return EnergyWithinDeadline(late=self.late)
        return EqualBands(self.rates or "shannon") if self.allocation == "equal" else OptimalBands()

    @property
    def equal_shares(self) -> Access | None:
        """``channels.EqualBands`` if bands are decided."""
        return None if isinstance(self.access, EqualBands) else EqualBands()

    @property
    def sizing(self) -> Access:
        """``OptimalBands`` if clients save energy: with these, sizes leave the most time for it."""
        saves = self.energy_weight is not None or self.round_deadline is not None
        return OptimalBands() if saves else self.access

    @property
    def deadline_check(self) -> Access | None:
        """``DeadlineCheck`` if a late client is an error."""
        misses = self.round_deadline is not None and self.late == "error"
        return DeadlineCheck() if misses else None

    @property
    def deadline_seconds(self) -> float | None:
        """``round_deadline``."""
        return self.round_deadline
