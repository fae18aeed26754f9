"""Time division: the clients of a cell upload in turn, each with the whole band; (17)."""

from __future__ import annotations

from dataclasses import dataclass

from channels import (
    Access,
    EqualSlots,
    rate_bps,
)
from channels.arrays import FloatArray
from wirelessfl.uplinks.base import Uplink


@dataclass(frozen=True)
class Tdma(Uplink):
    """Time division: the clients of a cell take turns on the whole band (HIST paper, (17)).

    With n_j clients in a cell, an upload takes n_j / R_i seconds per bit.
    """

    name = "tdma"

    @property
    def access(self) -> Access:
        """``channels.EqualSlots``."""
        return EqualSlots()

    def shared_seconds_per_bit(self, bandwidth_hz: float, snr: FloatArray) -> FloatArray:
        """n / R_i: the n uploading clients have equal slots."""
        return len(snr) / rate_bps(bandwidth_hz, snr, 1.0)

    def shared_airtime(self, bandwidth_hz: float, snr: float, bits: float, seconds: float) -> float:
        """bits / R_i: only the client's own slots count."""
        return float(bits / rate_bps(bandwidth_hz, snr, 1.0))
