"""Links of a fixed rate, one per client and without a radio."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from channels.access.access import Access, sent
from channels.arguments import check_number, checked
from channels.arrays import FloatArray
from channels.loads import Load, Rates, Service
from channels.network import ChannelDraw, Network


@dataclass(frozen=True)
class FixedRate(Access):
    """Every client has its own link; links use no transmit energy.

    Devices of the network with ``uplink_mbps`` have that rate, all others ``bps``.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> channels.FixedRate(1e6).serve(channels.Load(0.0, 1000.0), draw).seconds.tolist()
    [0.032, 0.032, 0.032, 0.032]

    Args:
        bps: rate of a link in bit/s, > 0.
        wait: duration of uploads of unequal numbers of vectors: that of the cell's mean number
            ("mean", as in the run times of Chen et al., 2025), or of each client's own
            ("slowest"). With "mean", :meth:`soonest` is exact for equal numbers of vectors.
    """

    bps: float
    wait: Literal["mean", "slowest"] = "slowest"

    def __post_init__(self) -> None:
        check_number("bps", self.bps, "bit/s")
        if not 0 < self.bps < np.inf:
            raise ValueError(f"bps is {self.bps}: give finite bit/s > 0.")
        if self.wait not in ("mean", "slowest"):
            raise ValueError(f'wait is {self.wait!r}: choose "mean" or "slowest".')

    @checked()
    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`Access`."""
        load.check_fits(draw)
        network, shape = draw.network, draw.h.shape[:-1]
        per_element = load.bits_per_element * load.vectors  # bits, over all vectors
        if self.wait == "mean":
            by_client = np.broadcast_to(per_element, (*per_element.shape[:-1], network.clients))
            total = network.over_cells(np.add, by_client)
            per_element = (total / np.maximum(network.cell_sizes, 1))[..., network.cell_of]
        bps = self._rates(network)
        upload = per_element * load.elements / bps
        shape = np.broadcast_shapes(np.shape(upload), shape)
        transmission = sent(load, draw, np.broadcast_to(upload, shape), np.zeros(shape))
        busy = load.bits / bps  # a link is busy, but uses no transmit energy
        return replace(transmission, airtime_seconds=np.broadcast_to(busy, shape))

    def _rates(self, network: Network) -> float | FloatArray:
        """Rates of the links [clients], or one for all."""
        column = None if network.devices is None else network.devices.by_client("uplink_mbps")
        if column is None:
            return self.bps
        mbps = column.whole()
        return np.where(np.isnan(mbps), self.bps, 1e6 * mbps)

    def rates(self, snr: FloatArray, bandwidth_hz: float) -> Rates:
        """See :class:`Access`: independent of other uploads."""
        return Rates(np.full(len(snr), self.bps), np.zeros(len(snr)))
