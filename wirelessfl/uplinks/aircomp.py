"""Over-the-air computation: a cell's clients transmit together; the server gets their mean (V)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from channels import (
    Access,
    AirSum,
    ChannelDraw,
    Simultaneous,
    air_sum,
    snr_linear,
    transmit_scales,
)
from channels.aircomp import noise, root_mean_square, through_the_air
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.links import SUBCARRIER_HZ, SYMBOL_SECONDS
from channels.precoders import Convention, check_convention
from solvers import OverTheAir, SolverUnavailableError
from solvers.access.over_the_air import cell_beamformers
from solvers.beamforming import Anneal, BeamformerBackend, MirrorProx, Sca, Sdr
from wirelessfl.errors import ConfigError
from wirelessfl.training.payloads import Received
from wirelessfl.training.shards import Shards
from wirelessfl.uplinks.base import AirRound, Reception, Uplink

Beamformer = Literal["anneal", "mirror_prox", "sca", "sdr", "random"]
"""Beamforming methods. Branch and bound is excluded: its result depends on the machine's load."""

_BACKENDS: dict[str, Callable[[int | None], BeamformerBackend]] = {
    backend.name: backend for backend in (Anneal, MirrorProx, Sca, Sdr)
}


@dataclass(frozen=True)
class AirComp(Uplink):
    """Over-the-air computation: clients transmit at once, and the server receives a noisy sum.

    Each client sends one element of its update per symbol, precoded so that the signals add up to
    the weighted mean at the edge server, (22) to (25). Updates are sent in the unit that the
    algorithm defines: FedAvg and HIST send the negative accumulated gradient, (x_H - x_0) / gamma,
    so the noise enters the model multiplied by gamma, (27).

    Args:
        convention: definition of power and noise, see :mod:`channels.precoders`.
        beamformer: method of :func:`solvers.optimize_beamformer`, or a random direction.
        beamformer_starts: number of random starts; None for the method's default.
        elements_per_symbol: 1, or 2 on I and Q (``physical`` only).
        csi_error: variance of the server's channel estimation error, as a fraction of the client's
            mean channel power.
        phase_error_deg: standard deviation of the residual phase of a client's signal, in degrees.
        subcarrier_hz: subcarrier spacing Delta_f of (34), in Hz.
        symbol_seconds: symbol duration t_s of (34), in seconds.

    Raises:
        ValueError: the convention does not allow ``elements_per_symbol``, or the beamformer's
            solver is not installed.
    """

    name = "aircomp"
    gives = "sum"
    coherence = "edge-round"

    convention: Annotated[
        Convention, Field(description="definition of power and noise, see docs/conventions.md")
    ] = "published"
    beamformer: Annotated[
        Beamformer, Field(description="receive beamforming method; random draws a direction")
    ] = "anneal"
    beamformer_starts: Annotated[
        int | None,
        Field(ge=1, description="random starts of the beamformer (default: the method's default)"),
    ] = None
    elements_per_symbol: Annotated[
        int,
        Field(ge=1, le=2, description="real elements per symbol; 2 needs --convention physical"),
    ] = 1
    csi_error: Annotated[
        float,
        Field(ge=0, description="variance of channel estimation errors over mean channel power"),
    ] = 0.0
    phase_error_deg: Annotated[
        float,
        Field(ge=0, le=360, description="standard deviation of the residual phase, in degrees"),
    ] = 0.0
    subcarrier_hz: Annotated[float, Field(gt=0, description="subcarrier spacing, in Hz")] = (
        SUBCARRIER_HZ
    )
    symbol_seconds: Annotated[float, Field(gt=0, description="symbol duration, in seconds")] = (
        SYMBOL_SECONDS
    )

    def __post_init__(self) -> None:
        check_convention(self.convention, self.elements_per_symbol)
        if self.beamformer in ("sca", "sdr") and find_spec("cvxpy") is None:
            raise ValueError(
                f"beamformer is {self.beamformer!r}: it needs cvxpy. Run pip install cvxpy, or "
                "choose beamformer 'anneal'."
            )

    def unused(self) -> Mapping[str, str]:
        """``random`` has no starts; ``published`` power allows one element per symbol."""
        found: dict[str, str] = {}
        if self.beamformer == "random":
            reason = 'conflicts with beamformer="random": choose beamformer "anneal"'
            found["beamformer_starts"] = reason
        if self.convention == "published":
            found["elements_per_symbol"] = (
                'conflicts with convention="published": choose convention "physical"'
            )
        return found

    @property
    def side_elements(self) -> int:
        """1 in the physical convention: each client's scale is sent error-free with its update."""
        return int(self.convention == "physical")

    @property
    def perfect(self) -> bool:
        """Whether the servers know the channels exactly, including phases."""
        return not (self.csi_error or self.phase_error_deg)

    @property
    def backend(self) -> BeamformerBackend | None:
        """The beamforming method; None for random directions."""
        if self.beamformer == "random":
            return None
        return _BACKENDS[self.beamformer](self.beamformer_starts)

    @property
    def access(self) -> Access:
        """``solvers.OverTheAir``."""
        times = Simultaneous(
            elements_per_symbol=self.elements_per_symbol,
            subcarrier_hz=self.subcarrier_hz,
            symbol_seconds=self.symbol_seconds,
        )
        return OverTheAir(times, self.convention, self.backend)

    def receive(self, air: AirRound) -> Reception:
        """Start an upload over the air.

        Raises:
            ConfigError: the clients do not upload at the same time.
        """
        if air.draw is None:
            raise ConfigError(
                "uplink='aircomp' needs simultaneous uploads, and here each client uploads at a "
                'different time: choose uplink "tdma", "ofdma" or "fixed".'
            )
        return AirReception(self, air, air.draw)


class AirReception(Reception):
    """One upload over the air.

    If the servers know the channels exactly, updates arrive with their exact weights. Then the sums
    are accumulated chunk by chunk, and noise is added once all scales are known. Otherwise the gain
    of a client depends on the beamformer, and in the physical convention on the scales of all
    clients. Then this process holds its clients' updates (clients x elements) until the end.
    """

    def __init__(self, uplink: AirComp, air: AirRound, draw: ChannelDraw) -> None:
        super().__init__(air)
        self.uplink, self.draw = uplink, draw
        self._rms: dict[str, FloatArray] = {}
        self._held: dict[str, list[tuple[slice | IntArray, Tensor]]] = {}
        self._metrics: dict[str, float] = {}

    def add(self, part: slice | IntArray, payloads: dict[str, Tensor]) -> None:
        """Add the payloads of the clients in ``part``: [clients, elements] by payload."""
        sent = {name: self._on_the_air(part, updates) for name, updates in payloads.items()}
        for name, updates in sent.items():
            rms = self._rms.setdefault(name, np.zeros(len(self.air.clients)))
            rms[part] = root_mean_square(updates) * self._fill(self.air.node[part])
            if not self.uplink.perfect:
                self._held.setdefault(name, []).append((part, updates.clone()))
        super().add(part, sent)

    def _on_the_air(self, part: slice | IntArray, updates: Tensor) -> Tensor:
        """Return the updates, with zeros at elements that are not sent."""
        if self.air.exchanged is None:
            return updates
        return updates * self.air.exchanged[self.air.node[part]]

    def _fill(self, node: IntArray | int) -> FloatArray:
        """Factor that converts a root mean square over all elements to one over sent elements."""
        if self.air.exchanged is None:
            return np.ones(())
        elements = self.air.exchanged.shape[1]
        counts: FloatArray = self.air.exchanged.sum(1).double().cpu().numpy()
        return np.asarray(np.sqrt(elements / np.maximum(counts, 1))[node])

    def _while_sending(self, rms: FloatArray, elements: int) -> FloatArray:
        """Root mean squares [clients] over each client's own elements, from those over its node's.

        A client is silent while others of its node send elements that it does not train. The power
        limit holds while it transmits, and that is the time for which energy is counted.
        """
        lengths, air = self.air.lengths, self.air
        if lengths is None:
            return rms
        sent = elements / self._fill(air.node) ** 2
        return np.asarray(rms * np.sqrt(np.rint(sent) / np.maximum(lengths, 1)))

    def finish(self, shards: Shards, payloads: Sequence[str], like: Tensor) -> None:
        """Sum over the processes, and pass the sums through the channel.

        Raises:
            ConfigError: a client's signal does not reach the server, or the beamformer's solver is
                not installed.
        """
        super().finish(shards, payloads, like)
        rms = {}
        for name in payloads:
            found = torch.from_numpy(self._rms.get(name, np.zeros(len(self.air.clients))))
            rms[name] = shards.sum(found).numpy() / self.air.units.get(name, 1.0)
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
        """Over-the-air sum of a payload at each node; beamformers are optimised in one batch."""
        air, uplink, draw = self.air, self.uplink, self.draw.of(self.air.clients)
        weights = air.weights_of(name)
        scales = transmit_scales(
            weights,
            self._while_sending(rms, self._sums[name].shape[1]),
            snr_db=draw.snr_db,
            convention=uplink.convention,
            elements_per_symbol=uplink.elements_per_symbol,
        )
        members = [np.flatnonzero(air.node == node) for node in range(air.nodes)]
        beamformers = self._beamformers(name, draw, scales)
        power = snr_linear(draw.network.path_gain_db)
        airs = []
        for node, rows in enumerate(members):
            try:
                found = air_sum(
                    draw.h[rows],
                    beamformers[node],
                    weights[rows],
                    scales[rows],
                    convention=uplink.convention,
                    csi_error=uplink.csi_error * power[rows],
                    phase_error=float(np.deg2rad(uplink.phase_error_deg)),
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

    def _beamformers(self, name: str, draw: ChannelDraw, scales: FloatArray) -> ComplexArray:
        """Beamformers [nodes, antennas]; those of the plan where they are for the same scales."""
        air, uplink = self.air, self.uplink
        if uplink.beamformer == "random":
            rngs = (air.stream.child("node", n, "beamformer").generator() for n in range(air.nodes))
            parts = np.stack([d.standard_normal((draw.h.shape[-1], 2)) for d in rngs])
            return np.asarray(parts.view(np.complex128)[..., 0])  # the norm does not matter
        planned = air.beamformers
        # In the published convention scales depend on who sends, and not on the updates.
        if planned is not None and uplink.convention == "published" and name not in air.silent:
            return planned
        try:
            return cell_beamformers(draw, scales, uplink.backend)
        except (SolverUnavailableError, ValueError) as error:
            raise ConfigError(f"beamformer is {uplink.beamformer!r}: {error}") from error

    def _receive(
        self, name: str, airs: list[AirSum], rms: FloatArray, shards: Shards, like: Tensor
    ) -> tuple[float, float]:
        """Add noise and misalignment to the exact sums; return realised and predicted errors.

        Errors are mean squared errors per element sent, in the payload's unit, averaged over the
        nodes that at least one client sends the payload to.
        """
        air, per_symbol = self.air, self.uplink.elements_per_symbol
        unit, mean = air.units.get(name, 1.0), self._sums[name]
        error = self._misalignment(name, airs, shards, like)
        realised, predicted = np.zeros(air.nodes), np.zeros(air.nodes)
        heard = set(air.node.tolist())  # nodes without senders receive nothing, not even noise
        for node, over_air in enumerate(airs):
            if node not in heard:
                continue
            added = noise(air.stream.child("node", node, name), mean.shape[1])
            error[node] += error.new_tensor(unit * np.sqrt(over_air.noise_variance) * added)
            if air.exchanged is not None:
                error[node] *= air.exchanged[node]
            fill = float(self._fill(node)) ** 2
            realised[node] = float(error[node].double().square().mean()) * fill / unit**2
            mean_rms = np.sqrt(float(mean[node].double().square().mean()) * fill) / unit
            node_rms = rms[air.node == node]
            predicted[node] = over_air.predicted_error(node_rms, mean_rms, per_symbol)
            if not np.isfinite(node_rms).all():
                realised[node] = np.nan
        self._sums[name] = mean + error
        to = np.bincount(air.node, air.weights_of(name), air.nodes) > 0
        if not to.any():
            return float("nan"), float("nan")
        return float(realised[to].mean()), float(predicted[to].mean())

    def _misalignment(self, name: str, airs: list[AirSum], shards: Shards, like: Tensor) -> Tensor:
        """Error sum_i (c_i - q_i) x_i [nodes, elements], which is 0 if channels are known."""
        error = torch.zeros_like(like)
        if self.uplink.perfect:
            return error
        off = np.concatenate([over_air.gains - over_air.weights for over_air in airs])
        for part, updates in self._held.pop(name, []):
            for node in np.unique(self.air.node[part]):
                here = self.air.node[part] == node
                held = updates[torch.from_numpy(here).to(updates.device)]
                packed = slice(None) if self.air.exchanged is None else self.air.exchanged[node]
                error[node, packed] += through_the_air(
                    held[:, packed], off[part][here], self.uplink.elements_per_symbol
                )
        return shards.sum(error)
