"""Time division with equal slots: the clients of a cell take turns on the whole band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.access.access import Access, sent, times
from channels.arguments import checked
from channels.arrays import FloatArray
from channels.links import airtime_seconds_per_bit, rate_at, tdma_seconds_per_bit
from channels.loads import Load, Rates, Service
from channels.modulation import RateLaw, check_law
from channels.network import ChannelDraw


@dataclass(frozen=True)
class EqualSlots(Access):
    """Each of a cell's n_j clients has every n_j-th slot: n_j / R_i seconds per bit; (17).

    >>> import numpy as np
    >>> import channels
    >>> rates = channels.EqualSlots().rates(np.array([3.0, 15.0]), 1e6)
    >>> (rates.bps / 1e6).round(3).tolist(), rates.duty.tolist()
    ([1.0, 2.0], [0.5, 0.5])

    Args:
        law: how rates follow from SNRs, see :func:`channels.spectral_efficiency`.
    """

    time_shared = True

    law: RateLaw = "shannon"

    def __post_init__(self) -> None:
        check_law(self.law)

    @checked()
    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`Access`; a client transmits only in its own slots."""
        load.check_fits(draw)
        upload = times(load.bits, tdma_seconds_per_bit(draw, law=self.law))
        airtime = airtime_seconds_per_bit(draw, "tdma", law=self.law)
        return sent(load, draw, upload, times(load.bits, airtime))

    def seconds(self, load: Load, draw: ChannelDraw) -> FloatArray:
        """See :class:`Access`; needs no airtimes."""
        upload = times(load.bits, tdma_seconds_per_bit(draw, law=self.law))
        return np.asarray(load.ready_seconds(draw.network) + upload)

    def rates(self, snr: FloatArray, bandwidth_hz: float) -> Rates:
        """See :class:`Access`: R_i / n for n clients, each transmitting 1/n of the time."""
        count = max(1, len(snr))
        bps = rate_at(bandwidth_hz, snr, self.law) / count
        return Rates(bps, np.full(len(snr), 1 / count))
