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

    Args:
        rate_mbps: rate of a client's link in each direction, in Mbit/s; ``downlink_mbps`` overrides
            the downlink rate.
        wait: duration of uploads if some clients send more vectors than others (selective
            tracking): that of the cell's mean number of vectors ("mean", as in the published run
            times), or of each client's own ("slowest"). A client's vectors have the length of its
            submodel in either case.
    """

    name = "fixed"
    radio: ClassVar[bool] = False

    rate_mbps: Annotated[
        float, Field(ge=1e-6, description="uplink and downlink rate per client, in Mbit/s")
    ] = 100.0
    wait: Annotated[
        Literal["mean", "slowest"],
        Field(
            description="duration of uploads of unequal numbers of vectors: the mean (as "
            "published), or the slowest"
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
