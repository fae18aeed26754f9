"""The clients of a load by cell, as solvers take them, and back."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from channels.arrays import BoolArray, ComplexArray, FloatArray
from channels.loads import Load
from channels.network import ChannelDraw, Network

Values = TypeVar("Values", FloatArray, ComplexArray)


def by_client(network: Network, values: Values) -> Values:
    """Values [..., clients] of [..., cells, clients of the largest cell]; see ``by_cell``."""
    if _even(network):
        return values.reshape(*values.shape[:-2], network.clients)
    places = np.arange(network.clients) - network.cell_starts[network.cell_of]
    found: Values = values[..., network.cell_of, places]
    return found


def cell_rows(network: Network, values: FloatArray) -> FloatArray:
    """Real values [..., clients], or one number, by cell; places without a client have 0."""
    lead = np.shape(values)[:-1]
    if not network.clients:  # solvers want a place for at least one
        return np.zeros((*lead, network.cells, 1))
    values = np.broadcast_to(values, (*lead, network.clients)).real
    if _even(network):  # without looking for the clients of each cell
        return np.array(values).reshape(*lead, network.cells, -1)
    return np.asarray(network.by_cell(values))


def _even(network: Network) -> bool:
    """Whether all cells have as many clients."""
    sizes = network.cell_sizes
    return bool(network.clients) and bool((sizes == sizes[0]).all())


def channel_rows(draw: ChannelDraw) -> ComplexArray:
    """Channels [..., cells, clients of the largest cell, antennas]; 1 where there is no client."""
    network = draw.network
    if not network.clients:
        return np.ones((*draw.h.shape[:-2], network.cells, 1, network.antennas), np.complex128)
    return np.asarray(network.by_cell(draw.h, fill=1.0), dtype=np.complex128)


def heard_bits(load: Load, draw: ChannelDraw) -> tuple[FloatArray, BoolArray]:
    """Bits of clients that can send, and which clients have bits and rate 0, [..., clients]."""
    snr_hz = draw.snr_hz
    bits = np.broadcast_to(load.bits, np.broadcast_shapes(load.bits.shape, snr_hz.shape))
    stuck = (bits > 0) & (snr_hz == 0)
    return np.where(stuck, 0.0, bits), stuck
