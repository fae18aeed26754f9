"""Parallel wired links with a fixed rate: the run-time model of the FAdamGC paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from channels import Access, FixedRate
from wirelessfl.air.uplinks.uplink import Uplink
from wirelessfl.base.needs import COHORTS


@dataclass(frozen=True)
class Fixed(Uplink):
    """A fixed-rate link per client, equal in both directions (Chen et al., 2025, Section 6).

    A round takes (elements down + elements up) * 32 bit / rate, plus the time of the local steps.
    """

    name = "fixed"
    radio: ClassVar[bool] = False

    rate_mbps: Annotated[
        float,
        Field(
            ge=1e-6,
            description=(
                "uplink and downlink rate per client, in Mbit/s; --downlink-mbps "
                "overrides the latter"
            ),
        ),
    ] = 100.0
    wait: Annotated[
        Literal["mean", "slowest"],
        Field(
            description=(
                "duration of uploads of unequal numbers of vectors (selective "
                "tracking): the cell's mean (as published), or the slowest "
                "client's"
            )
        ),
        COHORTS,
    ] = "mean"

    @property
    def downlink_bps(self) -> float:
        """Downlink rate in bit/s, equal to the uplink rate."""
        return 1e6 * self.rate_mbps

    @property
    def access(self) -> Access:
        """``channels.FixedRate``."""
        return FixedRate(1e6 * self.rate_mbps, self.wait)
