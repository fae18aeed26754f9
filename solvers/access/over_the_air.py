"""Over-the-air sums: all clients of a cell send at once, precoded to invert their channels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from channels import Access, ChannelDraw, Decision, Load, Service, Simultaneous, Stream
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.precoders import Convention, transmit_scales
from solvers.beamforming import BeamformerBackend, optimize_beamformer


@dataclass(frozen=True)
class OverTheAir(Access):
    """An element per symbol and subcarrier, (34), with the powers that the precoders (23) send.

    In the ``physical`` convention the weakest client sends at its maximum power, and the others at
    less, so that all arrive equally strong. In the ``published`` one a client sends at most the
    fraction q_i^2 of its power, see :mod:`channels.precoders`. Powers are those of updates of equal
    root mean square, 1 in the ``published`` convention; beamformers are those of these updates.

    Args:
        times: symbols and subcarriers.
        convention: definition of power and noise.
        backend: beamforming method; None for random directions, of which each block has its own.
    """

    costly = True

    times: Simultaneous = field(default_factory=Simultaneous)
    convention: Convention = "published"
    backend: BeamformerBackend | None = None

    def seconds(self, load: Load, draw: ChannelDraw) -> FloatArray:
        """See :class:`channels.Access`; needs no beamformers."""
        return self.times.seconds(load, draw)

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`channels.Access`; ``load.weights`` are the weights of the mean.

        Raises:
            ValueError: a client that sends has a zero channel, or no finite SNR.
            SolverUnavailableError: the beamforming method's package is not installed.
        """
        network, blocks = draw.network, draw.h.shape[:-2]
        sends = np.broadcast_to(load.vectors > 0, (*blocks, network.clients))
        weights = np.ones(network.clients) if load.weights is None else load.weights
        weights = np.where(sends, weights, 0.0)
        total = network.over_cells(np.add, weights)[..., network.cell_of]
        weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        per_symbol = self.times.elements_per_symbol
        snr = draw.snr
        scales = transmit_scales(
            weights,
            1.0,
            snr_db=draw.snr_db,
            convention=self.convention,
            elements_per_symbol=per_symbol,
        )
        beamformers = self._beamformers(draw, np.broadcast_to(scales, draw.h.shape[:-1]))
        norms = np.linalg.norm(beamformers, axis=-1, keepdims=True)
        directions = (beamformers / norms)[..., network.cell_of, :]
        heard = np.abs((draw.h.astype(np.complex128) * directions.conj()).sum(-1))
        # nu, in units of sigma_0: the largest common gain that all power limits allow.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(scales > 0, heard / scales, np.inf)
            cells = [ratio[..., network.cell_of == cell] for cell in range(network.cells)]
            nu = np.stack([part.min(-1, initial=np.inf) for part in cells], axis=-1)
            amplitude = np.where(scales > 0, weights * nu[..., network.cell_of] / heard, 0.0)
        power = amplitude**2 * per_symbol / snr
        decision = Decision(powers_w=power * network.transmit_power_w, beamformers=beamformers)
        return replace(self.times, power=power, decision=decision).serve(load, draw)

    def _beamformers(self, draw: ChannelDraw, scales: FloatArray) -> ComplexArray:
        """Beamformers [..., cells, antennas]."""
        network, backend = draw.network, self.backend
        if backend is None or self.convention == "physical":
            return cell_beamformers(draw.h, scales, network.cell_of, network.cells, backend)
        # In this convention a receiver uses the same ones, which depend on the size of the batch in
        # their last bits: solve one block at a time, as a receiver does.
        blocks = draw.h.reshape(-1, *draw.h.shape[-2:]), scales.reshape(-1, scales.shape[-1])
        each = [
            cell_beamformers(h, scale, network.cell_of, network.cells, backend)
            for h, scale in zip(*blocks, strict=True)
        ]
        return np.stack(each).reshape(*draw.h.shape[:-2], *each[0].shape)


def cell_beamformers(
    h: ComplexArray,
    scales: FloatArray,
    cell_of: IntArray,
    cells: int,
    backend: BeamformerBackend | None,
) -> ComplexArray:
    """Receive beamformers [..., cells, antennas] of all cells and blocks, in one batch.

    Args:
        h: [..., clients, antennas], channels.
        scales: [..., clients], scales of the signals, see :func:`channels.transmit_scales`; a
            client of scale 0 does not send.
        cell_of: [clients], cell of each client, in increasing order.
        cells: number of cells.
        backend: beamforming method; None for random directions.
    """
    blocks, antennas = h.shape[:-2], h.shape[-1]
    if backend is None:
        size = int(np.prod(blocks, dtype=np.int64)) * cells
        parts = Stream(0, ("beamformers",)).normals(0, np.arange(size), 2 * antennas)
        return parts.astype(np.float64).view(np.complex128).reshape(*blocks, cells, antennas)
    counts = np.bincount(cell_of, minlength=cells)
    starts = np.cumsum(counts) - counts
    # Smaller cells are padded with clients of scale 0.
    batch = np.ones((*blocks, cells, int(counts.max(initial=1)), antennas), h.dtype)
    needs = np.zeros(batch.shape[:-1])
    place = np.arange(len(cell_of)) - starts[cell_of]
    batch[..., cell_of, place, :], needs[..., cell_of, place] = h, scales
    needs[~needs.any(-1)] = 1.0  # no client sends to this cell: any direction is fine
    return np.asarray(optimize_beamformer(batch, backend=backend, scales=needs).value)
