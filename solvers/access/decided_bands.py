"""What accesses with decided bands have in common: which clients of a cell would end soonest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from channels.access import Access
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.loads import Load
from channels.network import ChannelDraw
from solvers.bands import select_clients
from solvers.load_rows import by_client, heard_bits


class DecidedBands(Access):
    """Base class of accesses that divide the band of a cell as suits its clients."""

    coupled = True
    flat = True

    def soonest(self, load: Load, draw: ChannelDraw, counts: IntArray) -> BoolArray:
        """See :class:`channels.Access`; those that end soonest at full power and speed."""
        load.check_fits(draw)
        return _soonest(load, draw, load.ready_seconds(draw.network), counts)


def _soonest(
    load: Load, draw: ChannelDraw, ready_seconds: FloatArray, counts: IntArray
) -> BoolArray:
    """The clients of each cell whose updates all arrive soonest in the bands that suit them best.

    Returns:
        [..., clients] boolean; all that can send, where a cell has fewer than its count.
    """
    network = draw.network
    if draw.noise_rise is not None:  # in_bands, with the chosen clients as senders
        senders = np.maximum(np.minimum(counts, network.cell_sizes), 1)
        draw = replace(draw, noise_rise=1 + senders * (draw.noise_rise - 1))
    bits, stuck = heard_bits(load, draw)
    shape = np.broadcast_shapes(bits.shape, ready_seconds.shape)
    able = np.broadcast_to(~stuck, shape)
    chosen = able.copy()
    if not network.clients:
        return chosen

    def rows(values: FloatArray, fill: float = 0.0) -> FloatArray:
        return np.asarray(network.by_cell(np.broadcast_to(values, shape), fill=fill).real)

    # Clients that cannot send, and places without a client, have bits and no channel.
    sizes = rows(np.where(able, bits, 1.0), 1.0)
    ready, snr_hz = rows(ready_seconds), rows(np.where(able, draw.snr_hz, 0.0))
    limits = np.broadcast_to(counts, sizes.shape[:-1])
    taking = rows(able.astype(np.float64)) > 0
    few = taking.sum(-1) <= limits  # all that can send take part
    band = np.broadcast_to(network.bandwidth_hz, few.shape)
    for count in np.unique(limits[~few]):
        which = ~few & (limits == count)
        if count == 0:
            taking[which] = False
            continue
        solution = select_clients(
            sizes[which], ready[which], snr_hz[which], band[which], count=int(count)
        )
        if solution.value is None or not np.isfinite(solution.objective).all():
            raise ValueError(f"clients of the load: {solution.message}.")
        taking[which] = solution.value.chosen
    return by_client(network, taking.astype(np.float64)) > 0
