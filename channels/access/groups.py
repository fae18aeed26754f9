"""Seconds of clients in cells with fewer clients than a draw has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.loads import Load
from channels.network import ChannelDraw


def seconds_in_groups(
    seconds: Callable[[Load, ChannelDraw], FloatArray],
    load: Load,
    draw: ChannelDraw,
    counts: IntArray,
) -> FloatArray:
    """Seconds of each client among ``counts`` clients of its cell.

    The clients of a cell are divided into groups of this size, and all groups are evaluated at once
    as cells of their own. Clients of the cell fill up its last group.

    Args:
        seconds: seconds [..., clients] of a load on a draw.
        load: what each client does.
        draw: channels of the clients, h [..., clients, antennas].
        counts: [cells], number of clients in a group; all of a cell that has fewer.

    Returns:
        [..., clients]; inf in cells of which no client is wanted.
    """
    network = draw.network
    sizes = network.cell_sizes
    group = np.minimum(counts, sizes)
    number = np.where(group > 0, -(-sizes // np.maximum(group, 1)), 0)  # of groups, rounded up
    places = number * group
    cell = np.repeat(np.arange(network.cells), places)
    place = np.arange(len(cell)) - np.repeat(np.cumsum(places) - places, places)
    rows = network.cell_starts[cell] + place % sizes[cell]
    shape = (*np.broadcast_shapes(load.shape[:-1], draw.h.shape[:-2]), network.clients)
    ends = np.full(shape, np.inf)
    if not len(rows):
        return ends
    cells = np.repeat(np.arange(network.cells), number)
    groups = network.regrouped(rows, cells, group[cells])
    noise_rise = None if draw.noise_rise is None else draw.noise_rise[..., cells]
    external_rise = None if draw.external_rise is None else draw.external_rise[..., rows]
    spectrum = None if draw.spectrum is None else draw.spectrum[..., rows, :]
    h = draw.h[..., rows, :]
    part = ChannelDraw(groups, h, noise_rise, external_rise, None, spectrum)
    first = place < sizes[cell]
    latencies = np.broadcast_to(seconds(load.of_rows(rows), part), (*shape[:-1], len(rows)))
    ends[..., rows[first]] = latencies[..., first]
    return ends
