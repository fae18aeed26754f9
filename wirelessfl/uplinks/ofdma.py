"""Frequency division: the clients of a cell upload together, each in its own sub-band."""

from __future__ import annotations

from dataclasses import dataclass

from channels import (
    Access,
    ChannelDraw,
    EqualBands,
    airtime_seconds_per_bit,
    ofdma_seconds_per_bit,
    rate_bps,
)
from channels.arrays import FloatArray
from wirelessfl.uplinks.base import Uplink


@dataclass(frozen=True)
class Ofdma(Uplink):
    """Frequency division: the clients of a cell share the band equally (HIST paper, footnote 2).

    Each of n_j clients concentrates its power in 1/n_j of the band.
    """

    name = "ofdma"

    @property
    def access(self) -> Access:
        """``channels.EqualBands``."""
        return EqualBands()

    def seconds_per_bit(self, draw: ChannelDraw) -> FloatArray:
        """1 / R_i with R_i = (B/n_j) log2(1 + n_j SNR ||h_i||^2)."""
        return ofdma_seconds_per_bit(draw)

    def airtime_per_bit(self, draw: ChannelDraw) -> FloatArray:
        """Equal to ``seconds_per_bit``: a client transmits for its whole upload."""
        return airtime_seconds_per_bit(draw, "ofdma")

    def shared_seconds_per_bit(self, bandwidth_hz: float, snr: FloatArray) -> FloatArray:
        """1 / R_i, with the band divided equally among the uploading clients."""
        return 1 / rate_bps(bandwidth_hz / len(snr), len(snr) * snr, 1.0)
