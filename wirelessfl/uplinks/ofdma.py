"""Frequency division: the clients of a cell upload together, each in its own sub-band."""

from __future__ import annotations

from dataclasses import dataclass

from channels import (
    Access,
    EqualBands,
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

    def shared_seconds_per_bit(self, bandwidth_hz: float, snr: FloatArray) -> FloatArray:
        """1 / R_i, with the band divided equally among the uploading clients."""
        return 1 / rate_bps(bandwidth_hz / len(snr), len(snr) * snr, 1.0)
