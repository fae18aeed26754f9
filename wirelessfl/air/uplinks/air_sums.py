"""Over-the-air sums: beamformers, precoders, what nodes receive, and its error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from channels import (
    AirSum,
    ChannelDraw,
    air_sum,
    aligned_sum,
    estimation_error,
    transmit_scales,
)
from channels.aircomp import noise, root_mean_square, through_the_air
from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from channels.precoders import Convention
from channels.time_offsets import steps
from solvers import SolverUnavailableError
from solvers.access.least_error import cell_alignments
from solvers.access.over_the_air import cell_beamformers
from solvers.beamforming import BeamformerBackend
from wirelessfl.air.uplinks.uplink import Reception, Transmission
from wirelessfl.base.errors import ConfigError
from wirelessfl.training.rules import Received
from wirelessfl.training.workers.shards import Shards


@dataclass(frozen=True)
class Precoding:
    """How the clients' signals are precoded and received, and what the servers do not know.

    Args:
        convention: definition of power and noise, and whether precoders invert the channels.
        elements_per_symbol: 1, or 2 on I and Q.
        csi_error: variance of the channel estimation error over the client's mean channel power;
            None for that of an estimate from pilots.
        phase_error: standard deviation of the residual phase, in radians.
        time_offset: largest delay of a client, in symbols.
        beamformer: name of the beamforming method, for errors.
        backend: beamforming method; None for random directions. Without effect with ``mmse``.
        starts: number of random starts with ``mmse``; None for the default.
        correlation: correlation of the updates of any two clients that ``mmse`` assumes.
        unbiased_sum: whether ``mmse`` keeps what all updates have in common without bias.
        pilot_symbols: pilot symbols of each client.
    """

    convention: Literal["published", "physical", "mmse"]
    elements_per_symbol: int
    csi_error: float | None
    phase_error: float
    time_offset: float
    beamformer: str
    backend: BeamformerBackend | None
    starts: int | None
    correlation: float
    unbiased_sum: bool
    pilot_symbols: int = 0

    @property
    def perfect(self) -> bool:
        """Whether the servers know the channels exactly, including phases and delays."""
        estimated = self.csi_error is None and self.pilot_symbols > 0
        return not (self.csi_error or self.phase_error or self.time_offset or estimated)

    @property
    def exact(self) -> bool:
        """Whether updates arrive with their exact weights."""
        return self.perfect and self.convention != "mmse"

    def sums(
        self, air: Transmission, draw: ChannelDraw, name: str, rms: FloatArray, sending: FloatArray
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
        air: Transmission,
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
                sums = air_sum(
                    draw.h[rows],
                    beamformers[node],
                    weights[rows],
                    scales[rows],
                    convention=convention,
                    csi_error=self._csi_error(draw)[rows],
                    phase_error=self.phase_error,
                    time_offset=self.time_offset,
                    stream=air.stream.child("node", node),
                    clients=air.clients[rows],
                )
            except ValueError as error:
                raise ConfigError(
                    f"uplink 'aircomp', cell {node} (clients {air.clients[rows[0]]} to "
                    f"{air.clients[rows[-1]]}): {error}"
                ) from error
            airs.append(sums)
        return airs

    def _beamformers(
        self, air: Transmission, draw: ChannelDraw, scales: FloatArray
    ) -> ComplexArray:
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
        air: Transmission,
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
                time_offset=self.time_offset,
                stream=air.stream.child("node", node),
                clients=air.clients[rows],
            )
            for node, rows in enumerate(_members(air))
        ]

    def _csi_error(self, draw: ChannelDraw) -> FloatArray:
        """Variance [clients] of the error of a channel coefficient."""
        power = draw.path_gain
        if self.csi_error is not None:
            return np.asarray(self.csi_error * power)
        if not self.pilot_symbols:
            return np.zeros(power.shape)
        return np.asarray(estimation_error(self.pilot_symbols, draw.snr * power) * power)


def _members(air: Transmission) -> list[IntArray]:
    """The rows of each node's clients."""
    return [np.flatnonzero(air.node == node) for node in range(air.nodes)]


class AirReception(Reception):
    """One upload over the air.

    If the precoders invert channels that the servers know exactly, updates arrive with their exact
    weights. Then the sums are accumulated chunk by chunk, and noise is added once all scales are
    known. Otherwise the gain of a client depends on the beamformer, which depends on the scales of
    all clients (except in the published convention). Then this process holds its clients' updates
    (clients x elements) until the end.

    Args:
        precoding: how signals are precoded and received.
        air: the upload.
        draw: channel draw that includes its clients.
    """

    def __init__(self, precoding: Precoding, air: Transmission, draw: ChannelDraw) -> None:
        super().__init__(air)
        self.precoding, self.draw = precoding, draw
        self._rms: dict[str, FloatArray] = {}
        self._held: dict[str, list[tuple[slice | IntArray, torch.Tensor]]] = {}
        self._metrics: dict[str, float] = {}
        self.noise: dict[str, FloatArray] = {}
        """By payload, [nodes], variance of a received element over noise and channel errors."""
        self.shrink: dict[str, FloatArray] = {}
        """By payload, [nodes], expected gain of a client over its weight."""

    def add(self, part: slice | IntArray, payloads: dict[str, torch.Tensor]) -> None:
        """Add the payloads of the clients in ``part``: [clients, elements] by payload."""
        sent = {name: self.air.on_the_air(part, updates) for name, updates in payloads.items()}
        for name, updates in sent.items():
            rms = self._rms.setdefault(name, np.zeros(len(self.air.clients)))
            rms[part] = root_mean_square(updates) * self.air.fill(self.air.node[part])
            if not self.precoding.exact:
                self._held.setdefault(name, []).append((part, updates.clone()))
        super().add(part, sent)

    def _while_sending(self, rms: FloatArray, elements: int) -> FloatArray:
        """Root mean squares [clients] over each client's own elements, from those over its node's.

        A client is silent while others of its node send elements that it does not train. The power
        limit holds while it transmits, and that is the time for which energy is counted.
        """
        lengths, air = self.air.lengths, self.air
        if lengths is None:
            return rms
        sent = elements / air.fill(air.node) ** 2
        return np.asarray(rms * np.sqrt(np.rint(sent) / np.maximum(lengths, 1)))

    def finish(self, shards: Shards, payloads: Sequence[str], like: torch.Tensor) -> None:
        """Sum over the processes, and pass the sums through the channel.

        Raises:
            ConfigError: a client's signal does not reach the server, or the beamformer's solver is
                not installed.
        """
        super().finish(shards, payloads, like)
        rms = {}
        for name in payloads:
            squares = torch.from_numpy(self._rms.get(name, np.zeros(len(self.air.clients))))
            rms[name] = shards.sum(squares).numpy() / self.air.units.get(name, 1.0)
        # After divergence the sums are not finite either; they are delivered unchanged.
        airs = shards.by_first(
            lambda: [self._airs(name, np.nan_to_num(rms[name], posinf=0.0)) for name in payloads]
        )
        for number, name in enumerate(payloads):
            realised, predicted = self._receive(name, airs[number], rms[name], shards, like)
            title = "air_error" if number == 0 else f"air_error_{name}"
            self._metrics |= {title: realised, f"{title}_predicted": predicted}

    def result(self) -> Received:
        """Received payloads, and their mean squared errors per element."""
        exact = super().result()
        return Received(exact.mean, exact.each, exact.clients, exact.node, self._metrics)

    def _airs(self, name: str, rms: FloatArray) -> list[AirSum]:
        """Over-the-air sum of a payload at each node."""
        sending = self._while_sending(rms, self._sums[name].shape[1])
        return self.precoding.sums(self.air, self.draw.of(self.air.clients), name, rms, sending)

    def _receive(
        self, name: str, airs: list[AirSum], rms: FloatArray, shards: Shards, like: torch.Tensor
    ) -> tuple[float, float]:
        """Add noise and misalignment to the exact sums; return realised and predicted errors.

        Errors are mean squared errors per element sent, in the payload's unit, averaged over the
        nodes that at least one client sends the payload to.
        """
        air, per_symbol = self.air, self.precoding.elements_per_symbol
        unit, mean = air.units.get(name, 1.0), self._sums[name]
        late = self._late(name, shards)
        error, biased = self._misalignment(name, airs, shards, like)
        realised, predicted = np.zeros(air.nodes), np.zeros(air.nodes)
        self.noise[name] = np.zeros(air.nodes)
        self.shrink[name] = np.array([over_air.shrink for over_air in airs])
        heard = set(air.node.tolist())  # nodes without senders receive nothing, not even noise
        for node, over_air in enumerate(airs):
            if node not in heard:
                continue
            added = noise(air.stream.child("node", node, name), mean.shape[1])
            error[node] += error.new_tensor(unit * np.sqrt(over_air.noise_variance) * added)
            if air.exchanged is not None:
                error[node] *= air.exchanged[node]
            fill = float(air.fill(node)) ** 2
            realised[node] = float(error[node].double().square().mean()) * fill / unit**2
            # The expected gains of precoders that invert the channels are ``shrink`` q_i.
            off, part = (mean, 1 - over_air.shrink) if biased is None else (biased, 1.0)
            bias = part * (np.sqrt(float(off[node].double().square().mean()) * fill) / unit)
            rows = air.node == node
            sizes, changes = (rms[rows], None) if late is None else late[:, rows] / unit
            predicted[node] = over_air.predicted_error(sizes, bias, per_symbol, changes)
            self.noise[name][node] = over_air.predicted_error(sizes, 0.0, per_symbol, changes)
            if not np.isfinite(sizes).all():
                realised[node] = np.nan
        self._sums[name] = mean + error
        to = np.bincount(air.node, air.weights_of(name), air.nodes) > 0
        if not to.any():
            return float("nan"), float("nan")
        return float(realised[to].mean()), float(predicted[to].mean())

    def _late(self, name: str, shards: Shards) -> FloatArray | None:
        """Root mean squares [2, clients] of x_i + E tau d_i and of d_i; None without delays."""
        if not self.precoding.time_offset:
            return None
        sizes = np.zeros((2, len(self.air.clients)))
        for part, updates in self._held.get(name, []):
            for _, here, packed in self._by_node(part, updates):
                changes = self._steps(packed)
                moved = packed + self.precoding.time_offset / 2 * changes
                rows = np.arange(len(self.air.clients))[part][here]
                sizes[:, rows] = root_mean_square(moved), root_mean_square(changes)
        return np.asarray(shards.sum(torch.from_numpy(sizes)).numpy())

    def expected_sum(self, name: str, sums: torch.Tensor) -> torch.Tensor:
        """Expectation [nodes, elements] over errors and delays, if precoders invert the channels.

        Args:
            name: the payload, whose upload is finished.
            sums: [nodes, elements], weighted sums of what clients send.
        """
        expected = sums.clone()
        if self.precoding.time_offset:
            for node in range(self.air.nodes):
                packed = sums[node, self._columns(node)]
                late = self.precoding.time_offset / 2 * self._steps(packed)
                expected[node, self._columns(node)] = packed + late
        return expected * expected.new_tensor(self.shrink[name])[:, None]

    def _misalignment(
        self, name: str, airs: list[AirSum], shards: Shards, like: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Error sum_i c_i (x_i + tau_i d_i) - q_i x_i [nodes, elements], and its expectation.

        The error is 0 if known channels are inverted without delays. The expectation is over
        channel errors and delays; it is None if it is a multiple of the mean: if precoders invert
        the channels without delays.
        """
        if self.precoding.exact:
            return torch.zeros_like(like), None
        held = self._held.pop(name, [])
        off = [over_air.gains - over_air.weights for over_air in airs]
        error = self._weighted(held, np.concatenate(off), like)
        if self.precoding.time_offset:
            late = [over_air.gains * over_air.delays for over_air in airs]
            error += self._weighted(held, np.concatenate(late), like, late=True)
        error = shards.sum(error)
        if self.precoding.convention != "mmse" and not self.precoding.time_offset:
            return error, None
        if self.precoding.perfect:
            return error, error.clone()
        gains = [over_air.shrink * over_air.aligned + 0j for over_air in airs]
        off = [gain - over_air.weights for gain, over_air in zip(gains, airs, strict=True)]
        expected = self._weighted(held, np.concatenate(off), like)
        if self.precoding.time_offset:
            late = [self.precoding.time_offset / 2 * gain for gain in gains]
            expected += self._weighted(held, np.concatenate(late), like, late=True)
        return error, shards.sum(expected)

    def _weighted(
        self,
        held: list[tuple[slice | IntArray, torch.Tensor]],
        gains: ComplexArray,
        like: torch.Tensor,
        *,
        late: bool = False,
    ) -> torch.Tensor:
        """Received sums [nodes, elements] of held updates with gains [clients], without noise.

        Args:
            held: parts of the clients, and their updates.
            gains: [clients], complex.
            like: [nodes, elements], gives the shape.
            late: whether the differences d_i of the updates are summed in their place.
        """
        total = torch.zeros_like(like)
        for part, updates in held:
            for node, here, packed in self._by_node(part, updates):
                total[node, self._columns(node)] += through_the_air(
                    self._steps(packed) if late else packed,
                    gains[part][here],
                    self.precoding.elements_per_symbol,
                )
        return total

    def _by_node(
        self, part: slice | IntArray, updates: torch.Tensor
    ) -> Iterator[tuple[int, BoolArray, torch.Tensor]]:
        """The nodes of the clients in ``part``, which of them they have, and the elements sent."""
        for node in np.unique(self.air.node[part]):
            here = self.air.node[part] == node
            rows = updates[torch.from_numpy(here).to(updates.device)]
            yield int(node), here, rows[:, self._columns(node)]

    def _columns(self, node: int) -> slice | torch.Tensor:
        """The elements that a node exchanges."""
        return slice(None) if self.air.exchanged is None else self.air.exchanged[node]

    def _steps(self, updates: torch.Tensor) -> torch.Tensor:
        """Differences of elements to those of the previous symbol."""
        differences: torch.Tensor = steps(updates, self.precoding.elements_per_symbol)
        return differences
