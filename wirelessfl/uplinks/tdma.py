"""Time division: the clients of a cell upload in turn, each with the whole band; (17)."""

from __future__ import annotations

from dataclasses import dataclass

from channels import ChannelDraw, airtime_seconds_per_bit, rate_bps, tdma_seconds_per_bit
from channels.arrays import FloatArray
from wirelessfl.uplinks.base import Uplink


@dataclass(frozen=True)
class Tdma(Uplink):
    """n_j / R_i seconds a bit: all n_j clients of a cell hold slots of one frame."""

    name = "tdma"

    def seconds_per_bit(self, draw: ChannelDraw) -> FloatArray:
        """n_j / R_i."""
        return tdma_seconds_per_bit(draw)

    def airtime_per_bit(self, draw: ChannelDraw) -> FloatArray:
        """1 / R_i: a client is silent in the others' slots."""
        return airtime_seconds_per_bit(draw, "tdma")

    def shared_seconds_per_bit(self, bandwidth_hz: float, snr: FloatArray) -> FloatArray:
        """n / R_i: those who upload at present hold equal slots."""
        return len(snr) / rate_bps(bandwidth_hz, snr, 1.0)

    def shared_airtime(self, bandwidth_hz: float, snr: float, bits: float, seconds: float) -> float:
        """bits / R_i, however long the others' slots were."""
        return float(bits / rate_bps(bandwidth_hz, snr, 1.0))
