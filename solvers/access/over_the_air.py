"""Over-the-air sums: all clients of a cell send at once, precoded for a weighted mean."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from channels import Access, ChannelDraw, Decision, Load, Network, Service, Simultaneous, Stream
from channels.air_sums import air_sum
from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from channels.cells import smallest_by_cell
from channels.precoders import Convention, transmit_scales
from solvers.access.least_error import cell_alignments
from solvers.beamforming import BeamformerBackend, optimize_beamformer
from solvers.load_rows import cell_rows, channel_rows

MOST_ALIGNED = 2000
"""Largest number of clients of a cell with ``mmse``, whose solver needs a matrix of all pairs."""
AirConvention = Literal["published", "physical", "mmse", "one-bit", "majority"]
"""Definition of power and noise: channel inversion, least mean squared error (``mmse``), signs over
inverted channels (``one-bit``) or signs by energy without channel knowledge (``majority``)."""


@dataclass(frozen=True)
class OverTheAir(Access):
    """An element per symbol and subcarrier, (34), with the powers that the precoders (23) send.

    In the ``physical`` convention the weakest client sends at its maximum power, and the others at
    less, so that all arrive equally strong. In the ``published`` one a client sends at most the
    fraction q_i^2 of its power, see :mod:`channels.precoders`. With ``mmse``, power and noise are
    as in ``physical``, and precoders and beamformers have the least mean squared error
    (:func:`solvers.align_transmitters`): several clients may send at their maximum power. Powers
    are those of updates of equal root mean square, 1 in the ``published`` convention; beamformers
    are those of these updates. Signs are sent as in ``physical`` with ``one-bit``; with
    ``majority`` a client sends at the fraction q_i / max q of its power, without beamformers.

    >>> import channels
    >>> import solvers
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> load = channels.Load(0.0, 12_600.0)
    >>> service = solvers.OverTheAir(convention="physical").serve(load, draw)
    >>> service.seconds.round(4).tolist(), service.decision.beamformers.shape
    ([0.0015, 0.0015, 0.0015, 0.0015], (2, 10))

    Args:
        times: symbols and subcarriers.
        convention: definition of power and noise, and whether precoders invert the channels.
        backend: beamforming method; None for random directions, of which each block has its own.
            It has no effect with ``mmse`` and ``majority``.
        starts: number of random starts with ``mmse``; None for the default.
        correlation: correlation of the updates of any two clients that ``mmse`` assumes.
        unbiased_sum: whether ``mmse`` keeps what all updates have in common without bias.
    """

    costly = True
    flat = True

    times: Simultaneous = field(default_factory=Simultaneous)
    convention: AirConvention = "published"
    backend: BeamformerBackend | None = None
    starts: int | None = None
    correlation: float = 0.0
    unbiased_sum: bool = False

    def seconds(self, load: Load, draw: ChannelDraw) -> FloatArray:
        """See :class:`channels.Access`; needs no beamformers.

        Raises:
            ValueError: a cell has more clients than ``mmse`` can serve, or interference differs
                between the clients of a cell.
        """
        draw.check_flat("a sum over the air")
        if draw.network.watts_by_client:
            raise ValueError(
                "interference_watts has a value per client, and an edge server hears all clients "
                "at once: give a value per cell."
            )
        most = int(draw.network.cell_sizes.max(initial=0))
        if self.convention == "mmse" and most > MOST_ALIGNED:
            raise ValueError(
                f"a cell has {most} clients, and convention is 'mmse': choose 'physical', or at "
                f"most {MOST_ALIGNED} clients per cell and round."
            )
        return self.times.seconds(load, draw)

    def soonest(self, load: Load, draw: ChannelDraw, counts: IntArray) -> BoolArray:
        """See :class:`channels.Access`; no client with a channel of zero, which has no precoder.

        The seconds of ``load.jointly`` do not depend on who is chosen.
        """
        seconds = np.where(draw.gain > 0, self.seconds(load, draw), np.inf)
        return smallest_by_cell(seconds, draw.network.cell_of, counts)

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`channels.Access`; ``load.weights`` are the weights of the mean.

        Raises:
            ValueError: a client that sends has a zero channel, or no finite SNR; or a cell has more
                clients than ``mmse`` can serve.
            SolverUnavailableError: the beamforming method's package is not installed.
        """
        return self.with_powers(load, draw).serve(load, draw)

    def with_powers(self, load: Load, draw: ChannelDraw) -> Simultaneous:
        """This access with beamformers and powers for a draw.

        It serves all loads of the draw's clients in which the same ones send, with the same
        weights, as :meth:`serve` does.

        Raises:
            ValueError, SolverUnavailableError: as :meth:`serve`.
        """
        network, blocks = draw.network, draw.h.shape[:-2]
        self.seconds(load, draw)  # refuses cells that are too large
        sends = np.broadcast_to(load.vectors > 0, (*blocks, network.clients))
        weights = np.ones(network.clients) if load.weights is None else load.weights
        weights = np.where(sends, weights, 0.0)
        total = network.over_cells(np.add, weights)[..., network.cell_of]
        weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        beamformers: ComplexArray | None
        if self.convention == "mmse":
            beamformers, power = self._aligned(draw, weights)
        elif self.convention == "majority":
            beamformers, power = None, vote_power(weights, network)
        else:
            beamformers, power = self._inverted(draw, weights, inversion(self.convention))
        decision = Decision(powers_w=power * network.transmit_power_w, beamformers=beamformers)
        return replace(self.times, power=power, decision=decision)

    def _aligned(self, draw: ChannelDraw, weights: FloatArray) -> tuple[ComplexArray, FloatArray]:
        """Beamformers [..., cells, antennas] and fractions of power [..., clients]."""
        limits = np.sqrt(draw.snr / self.times.elements_per_symbol)
        receive, transmit = cell_alignments(
            draw, weights, limits, self.starts, self.correlation, self.unbiased_sum
        )
        return receive, np.asarray(np.abs(transmit / limits) ** 2)

    def _inverted(
        self, draw: ChannelDraw, weights: FloatArray, convention: Convention
    ) -> tuple[ComplexArray, FloatArray]:
        """Beamformers [..., cells, antennas] and fractions of power [..., clients]."""
        scales = transmit_scales(
            weights,
            1.0,
            snr_db=draw.snr_db,
            convention=convention,
            elements_per_symbol=int(self.times.elements_per_symbol),
        )
        weights, scales = (np.broadcast_to(x, draw.h.shape[:-1]) for x in (weights, scales))
        beamformers = self._beamformers(draw, scales)
        cell_of = draw.network.cell_of
        power = np.zeros(draw.h.shape[:-1])
        for block in np.ndindex(power.shape[:-1]):
            for cell in np.unique(cell_of):
                at = (*block, cell_of == cell)
                air = air_sum(
                    draw.h[at],
                    beamformers[(*block, cell)],
                    weights[at],
                    scales[at],
                    convention=convention,
                )
                power[at] = np.abs(air.precoders) ** 2
        return beamformers, np.asarray(power * self.times.elements_per_symbol / draw.snr)

    def _beamformers(self, draw: ChannelDraw, scales: FloatArray) -> ComplexArray:
        """Beamformers [..., cells, antennas]."""
        blocks = draw.h.shape[:-2]
        if self.backend is None or self.convention != "published" or not blocks:
            return cell_beamformers(draw, scales, self.backend)
        # In this convention a receiver uses the same ones, which depend on the size of the batch in
        # their last bits: solve one block at a time, as a receiver does.
        beamformers = [
            cell_beamformers(ChannelDraw(draw.network, draw.h[block]), scales[block], self.backend)
            for block in np.ndindex(blocks)
        ]
        return np.stack(beamformers).reshape(*blocks, *beamformers[0].shape)


def inversion(convention: AirConvention) -> Convention:
    """Definition of power and noise in a convention that inverts the channels."""
    return "published" if convention == "published" else "physical"


def vote_power(weights: FloatArray, network: Network) -> FloatArray:
    """Fractions [..., clients] of the maximum power with which clients vote by energy.

    They are q_i / max q over the cell, so that votes count by their weights [..., clients].
    """
    highest = network.over_cells(np.maximum, weights)[..., network.cell_of]
    return np.divide(weights, highest, out=np.zeros_like(weights), where=weights > 0)


def cell_beamformers(
    draw: ChannelDraw, scales: FloatArray, backend: BeamformerBackend | None
) -> ComplexArray:
    """Receive beamformers [..., cells, antennas] of all cells and blocks, in one batch.

    Args:
        draw: channels of the clients, h [..., clients, antennas].
        scales: [..., clients], scales of the signals, see :func:`channels.transmit_scales`; a
            client of scale 0 does not send.
        backend: beamforming method; None for random directions.
    """
    network, blocks = draw.network, draw.h.shape[:-2]
    if backend is None:
        size = int(np.prod(blocks, dtype=np.int64)) * network.cells
        parts = Stream(0, ("beamformers",)).normals(0, np.arange(size), 2 * network.antennas)
        shape = (*blocks, network.cells, network.antennas)
        return parts.astype(np.float64).view(np.complex128).reshape(shape)
    needs = cell_rows(network, scales)
    needs[~needs.any(-1)] = 1.0  # no client sends to this cell: any direction is fine
    batch = channel_rows(draw)
    solution = optimize_beamformer(batch, backend=backend, scales=needs)
    return np.asarray(solution.value, dtype=draw.h.dtype)
