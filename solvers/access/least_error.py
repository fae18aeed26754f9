"""Transmit coefficients and beamformers of least error, for all cells of a channel draw."""

from __future__ import annotations

import numpy as np

from channels.arrays import ComplexArray, FloatArray
from channels.network import ChannelDraw
from solvers.alignment import align_transmitters
from solvers.load_rows import by_client, cell_rows, channel_rows

NOISE_VARIANCE = 0.5
"""Noise of a real element in units of sigma_0^2: the receiver takes the real part."""


def cell_alignments(
    draw: ChannelDraw,
    weights: FloatArray,
    limits: FloatArray,
    starts: int | None = None,
    correlation: float = 0.0,
    unbiased_sum: bool = False,
) -> tuple[ComplexArray, ComplexArray]:
    """Sums of least mean squared error of all cells and blocks, solved in one batch.

    In the last bits, a solution depends on the batch.

    Args:
        draw: channels of the clients, h [..., clients, antennas].
        weights: [..., clients], weights of the means times root mean squares; a client of weight 0
            does not send.
        limits: [..., clients], largest amplitudes, square roots of SNRs per real element.
        starts: starts of :func:`solvers.align_transmitters`; None for its default.
        correlation: correlation of the elements of any two clients, >= 0 and < 1.
        unbiased_sum: whether what all updates have in common arrives without bias.

    Returns:
        Receive beamformers [..., cells, antennas] in units of 1 / sigma_0, 0 for cells to which no
        client sends, and transmit coefficients [..., clients] for elements of unit variance.
    """
    network, blocks = draw.network, draw.h.shape[:-2]
    weights, limits = (np.broadcast_to(x, draw.h.shape[:-1]) for x in (weights, limits))
    needs, amplitudes = cell_rows(network, weights), cell_rows(network, limits)
    h = channel_rows(draw)
    receive: ComplexArray = np.zeros((*blocks, network.cells, network.antennas), np.complex128)
    transmit: ComplexArray = np.zeros(needs.shape, np.complex128)
    reached = (needs > 0) & (amplitudes > 0) & h.any(-1)
    heard = reached.any(-1)
    if heard.any():
        alignment = align_transmitters(
            h[heard],
            needs[heard],
            amplitudes[heard],
            NOISE_VARIANCE,
            correlation=correlation,
            unbiased_sum=unbiased_sum,
            certificate=None,
            starts=starts,
        ).value
        assert alignment is not None  # a problem in which somebody is heard has a solution
        receive[heard], transmit[heard] = alignment.receive, alignment.transmit
    return receive, by_client(network, transmit)
