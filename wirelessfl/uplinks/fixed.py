"""Wired links of a fixed rate, in parallel: the run-time model of the FAdamGC paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from channels import ChannelDraw
from channels.arrays import FloatArray, IntArray
from wirelessfl.uplinks.base import Uplink


@dataclass(frozen=True)
class Fixed(Uplink):
    """Every client has a link of its own, down and up, of the same rate (Chen et al., Section 6).

    A round takes (numbers down + numbers up) 32 bit / rate, and the local steps.

    Args:
        rate_mbps: rate of a client's link each way; ``downlink_mbps`` gives another one down.
        wait: where some clients send more than others (selective tracking), a round takes the mean
            of its cell's uploads, which is what the published minutes are, or that of the slowest.
    """

    name = "fixed"
    radio: ClassVar[bool] = False
    of_rounds: ClassVar[tuple[str, ...]] = ("wait",)

    rate_mbps: Annotated[
        float, Field(ge=1e-6, description="rate of a client's link, each way, in Mbit/s")
    ] = 100.0
    wait: Annotated[
        Literal["mean", "slowest"],
        Field(description="uploads of unequal size: charge their mean (published), or the largest"),
    ] = "mean"

    @property
    def downlink_bps(self) -> float:
        """The same rate down."""
        return 1e6 * self.rate_mbps

    def seconds_per_bit(self, draw: ChannelDraw) -> FloatArray:
        """1 / rate for every client."""
        return np.full(draw.network.clients, 1e-6 / self.rate_mbps)

    def airtime_per_bit(self, draw: ChannelDraw) -> FloatArray:
        """None: nothing is on the air."""
        return np.zeros(draw.network.clients)

    def shared_seconds_per_bit(self, bandwidth_hz: float, snr: FloatArray) -> FloatArray:
        """1 / rate, independent of other uploads."""
        return np.full(len(snr), 1e-6 / self.rate_mbps)

    def shared_airtime(self, bandwidth_hz: float, snr: float, bits: float, seconds: float) -> float:
        """None: nothing is on the air."""
        return 0.0

    def charged(self, vectors: FloatArray, cell_of: IntArray) -> FloatArray:
        """The mean of those of the cell who take part, or each client's own."""
        if self.wait == "slowest":
            return vectors
        mean = np.bincount(cell_of, vectors) / np.maximum(np.bincount(cell_of), 1)
        return np.asarray(mean[cell_of])
