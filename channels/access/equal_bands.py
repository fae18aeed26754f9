"""Frequency division with equal bands: the clients of a cell send at once, each in its own band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.access.access import Access, sent, times
from channels.arguments import checked
from channels.arrays import FloatArray
from channels.links import ofdma_seconds_per_bit, rate_at
from channels.loads import Decision, Load, Rates, Service
from channels.modulation import RateLaw, check_law
from channels.network import ChannelDraw


@dataclass(frozen=True)
class EqualBands(Access):
    """Each of a cell's n_j clients has the band B / n_j at full power (HIST, footnote 2).

    >>> import numpy as np
    >>> import channels
    >>> rates = channels.EqualBands().rates(np.array([3.0, 3.0]), 1e6)
    >>> (rates.bps / 1e6).round(3).tolist(), rates.duty.tolist()
    ([1.404, 1.404], [1.0, 1.0])

    Args:
        law: how rates follow from SNRs, see :func:`channels.spectral_efficiency`.
    """

    law: RateLaw = "shannon"

    def __post_init__(self) -> None:
        check_law(self.law)

    @checked()
    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`Access`; a client transmits during its whole upload."""
        load.check_fits(draw)
        upload = times(load.bits, ofdma_seconds_per_bit(draw, law=self.law))
        network = draw.network
        bands = (network.bandwidth_hz / np.maximum(network.cell_sizes, 1))[network.cell_of]
        decision = Decision(bands_hz=np.broadcast_to(bands, upload.shape))
        return sent(load, draw, upload, upload, decision)

    def seconds(self, load: Load, draw: ChannelDraw) -> FloatArray:
        """See :class:`Access`; needs no joules."""
        upload = times(load.bits, ofdma_seconds_per_bit(draw, law=self.law))
        return np.asarray(load.ready_seconds(draw.network) + upload)

    def rates(self, snr: FloatArray, bandwidth_hz: float) -> Rates:
        """See :class:`Access`: the band is divided equally among the uploading clients."""
        count = max(1, len(snr))
        return Rates(rate_at(bandwidth_hz / count, count * snr, self.law), np.ones(len(snr)))
