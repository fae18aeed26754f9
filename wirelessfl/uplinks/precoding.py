"""Over-the-air sums of an upload: beamformers, precoders and gains at each node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels import AirSum, ChannelDraw, air_sum, aligned_sum, snr_linear, transmit_scales
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.precoders import Convention
from solvers import SolverUnavailableError
from solvers.access.least_error import cell_alignments
from solvers.access.over_the_air import AirConvention, cell_beamformers
from solvers.beamforming import BeamformerBackend
from wirelessfl.errors import ConfigError
from wirelessfl.uplinks.uplink import AirRound


@dataclass(frozen=True)
class Precoding:
    """How the clients' signals are precoded and received, and what the servers do not know.

    Args:
        convention: definition of power and noise, and whether precoders invert the channels.
        elements_per_symbol: 1, or 2 on I and Q.
        csi_error: variance of the channel estimation error over the client's mean channel power.
        phase_error: standard deviation of the residual phase, in radians.
        beamformer: name of the beamforming method, for errors.
        backend: beamforming method; None for random directions. Without effect with ``mmse``.
        starts: number of random starts with ``mmse``; None for the default.
        correlation: correlation of the updates of any two clients that ``mmse`` assumes.
        unbiased_sum: whether ``mmse`` keeps what all updates have in common without bias.
    """

    convention: AirConvention
    elements_per_symbol: int
    csi_error: float
    phase_error: float
    beamformer: str
    backend: BeamformerBackend | None
    starts: int | None
    correlation: float
    unbiased_sum: bool

    @property
    def perfect(self) -> bool:
        """Whether the servers know the channels exactly, including phases."""
        return not (self.csi_error or self.phase_error)

    @property
    def exact(self) -> bool:
        """Whether updates arrive with their exact weights."""
        return self.perfect and self.convention != "mmse"

    def sums(
        self, air: AirRound, draw: ChannelDraw, name: str, rms: FloatArray, sending: FloatArray
    ) -> list[AirSum]:
        """Over-the-air sum of a payload at each node; beamformers are optimised in one batch.

        Args:
            air: the upload.
            draw: channels of its clients.
            name: the payload.
            rms: [clients], root mean square over the elements that the client's node exchanges.
            sending: [clients], root mean square over the elements that the client itself sends.

        Raises:
            ConfigError: a client's signal does not reach the server, or the beamformer's solver is
                not installed.
        """
        weights = air.weights_of(name)
        if self.convention == "mmse":
            return self._aligned(air, draw, weights, rms, sending)
        return self._inverted(air, draw, name, weights, sending, self.convention)

    def _inverted(
        self,
        air: AirRound,
        draw: ChannelDraw,
        name: str,
        weights: FloatArray,
        sending: FloatArray,
        convention: Convention,
    ) -> list[AirSum]:
        scales = transmit_scales(
            weights,
            sending,
            snr_db=draw.snr_db,
            convention=convention,
            elements_per_symbol=self.elements_per_symbol,
        )
        # In the published convention scales depend on who sends, and not on the updates.
        planned = air.beamformers
        if self.backend is None or convention != "published" or name in air.silent:
            planned = None
        beamformers = self._beamformers(air, draw, scales) if planned is None else planned
        airs = []
        for node, rows in enumerate(_members(air)):
            try:
                found = air_sum(
                    draw.h[rows],
                    beamformers[node],
                    weights[rows],
                    scales[rows],
                    convention=convention,
                    csi_error=self._csi_error(draw)[rows],
                    phase_error=self.phase_error,
                    stream=air.stream.child("node", node),
                    clients=air.clients[rows],
                )
            except ValueError as error:
                raise ConfigError(
                    f"uplink 'aircomp', cell {node} (clients {air.clients[rows[0]]} to "
                    f"{air.clients[rows[-1]]}): {error}"
                ) from error
            airs.append(found)
        return airs

    def _beamformers(self, air: AirRound, draw: ChannelDraw, scales: FloatArray) -> ComplexArray:
        """Beamformers [nodes, antennas]."""
        if self.backend is None:
            rngs = (air.stream.child("node", n, "beamformer").generator() for n in range(air.nodes))
            parts = np.stack([d.standard_normal((draw.h.shape[-1], 2)) for d in rngs])
            return np.asarray(parts.view(np.complex128)[..., 0])  # the norm does not matter
        try:
            return cell_beamformers(draw, scales, self.backend)
        except (SolverUnavailableError, ValueError) as error:
            raise ConfigError(f"beamformer is {self.beamformer!r}: {error}") from error

    def _aligned(
        self,
        air: AirRound,
        draw: ChannelDraw,
        weights: FloatArray,
        rms: FloatArray,
        sending: FloatArray,
    ) -> list[AirSum]:
        heard = (weights > 0) & (rms > 0)
        # The limit is on the power while a client sends, the error that of the node's elements.
        silent = np.divide(rms, sending, out=np.ones_like(rms), where=heard)
        limits = silent * np.sqrt(draw.snr / self.elements_per_symbol)
        try:
            receive, transmit = cell_alignments(
                draw,
                weights * rms,
                limits,
                self.starts,
                self.correlation,
                self.unbiased_sum,
            )
        except ValueError as error:
            raise ConfigError(f"uplink 'aircomp', convention 'mmse': {error}") from error
        precoders = np.divide(transmit, rms, out=np.zeros_like(transmit), where=heard)
        return [
            aligned_sum(
                draw.h[rows],
                receive[node],
                weights[rows],
                precoders[rows],
                csi_error=self._csi_error(draw)[rows],
                phase_error=self.phase_error,
                stream=air.stream.child("node", node),
                clients=air.clients[rows],
            )
            for node, rows in enumerate(_members(air))
        ]

    def _csi_error(self, draw: ChannelDraw) -> FloatArray:
        """Variance [clients] of the error of a channel coefficient."""
        return np.asarray(self.csi_error * snr_linear(draw.network.path_gain_db))


def _members(air: AirRound) -> list[IntArray]:
    """The rows of each node's clients."""
    return [np.flatnonzero(air.node == node) for node in range(air.nodes)]
