"""One-bit votes over the air: by energy without channel knowledge, or by the sign of a sum."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import torch

from channels import ChannelDraw, wrong_vote_probability
from channels.arrays import FloatArray, IntArray
from channels.votes import RESOURCES, energy_difference, powers_of_sides
from solvers.access.over_the_air import vote_power
from wirelessfl.air.uplinks.air_sums import AirReception, Precoding
from wirelessfl.air.uplinks.uplink import Reception, Transmission
from wirelessfl.training.rules import Received
from wirelessfl.training.workers.shards import Shards

Vote = Literal["majority", "one-bit"]
"""Conventions in which clients send the signs of their elements."""
TIE = 1e-6
"""Weighted sum of votes below which neither side has a majority: weights are float32."""


class VoteReception(Reception):
    """An upload of signs: the mean of a node is the sign of each element's vote times a scale.

    The scale is the weighted mean of the clients' mean magnitudes, sum_i q_i mean |x_i| over the
    elements that the node exchanges: of all multiples of sign(x_i), mean |x_i| sign(x_i) is the
    nearest to x_i. Each client sends its magnitude error-free, as one number of 32 bits.

    Metrics are the mean squared error per element, with the part that the sign loses, and the
    fraction of elements whose vote differs from the clients' weighted majority (ties left out),
    realised and expected.

    Args:
        air: the upload.
        draw: channel draw that includes its clients.
    """

    def __init__(self, air: Transmission, draw: ChannelDraw) -> None:
        super().__init__(air)
        self.draw = draw.of(air.clients)
        self.votes = Reception(air)
        self._magnitudes: dict[str, FloatArray] = {}
        self._metrics: dict[str, float] = {}

    def add(self, part: slice | IntArray, payloads: dict[str, torch.Tensor]) -> None:
        """Add the payloads of the clients in ``part``: [clients, elements] by payload."""
        sent = {name: self.air.on_the_air(part, updates) for name, updates in payloads.items()}
        fill = self.air.fill(self.air.node[part]) ** 2
        for name, updates in sent.items():
            magnitudes = self._magnitudes.setdefault(name, np.zeros(len(self.air.clients)))
            magnitudes[part] = updates.abs().double().mean(1).cpu().numpy() * fill
        super().add(part, sent)
        # Diverged elements have no sign; their magnitudes are not finite either.
        signs = {name: updates.sign().nan_to_num() for name, updates in sent.items()}
        self.votes.add(part, signs)
        self._send(part, signs)

    def finish(self, shards: Shards, payloads: Sequence[str], like: torch.Tensor) -> None:
        """Sum over the processes, and decide the votes.

        Raises:
            ConfigError: a client's signal does not reach the server.
        """
        super().finish(shards, payloads, like)
        self.votes.finish(shards, payloads, like)
        sums = self.votes.result().mean
        for name in payloads:
            votes = torch.where(sums[name].abs() < TIE, 0.0, sums[name])
            decided, expected = self._decide(name, votes, shards, like)
            self._deliver(name, votes, decided.sign(), expected, shards)

    def result(self) -> Received:
        """Received payloads, and their errors."""
        exact = super().result()
        return Received(exact.mean, exact.each, exact.clients, exact.node, self._metrics)

    @abstractmethod
    def _send(self, part: slice | IntArray, signs: dict[str, torch.Tensor]) -> None:
        """Add the signs of the clients in ``part``: [clients, elements] by payload."""

    @abstractmethod
    def _decide(
        self, name: str, votes: torch.Tensor, shards: Shards, like: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What the servers compare with 0, and the expected signs, both [nodes, elements].

        Args:
            name: the payload.
            votes: [nodes, elements], weighted sums of the clients' signs.
            shards: the processes.
            like: [nodes, elements], gives the shape.
        """

    def _deliver(
        self,
        name: str,
        votes: torch.Tensor,
        decided: torch.Tensor,
        expected: torch.Tensor,
        shards: Shards,
    ) -> None:
        """Replace the exact mean by the decided signs times the scale, and measure the errors."""
        air, mean = self.air, self._sums[name]
        sizes = torch.from_numpy(self._magnitudes.get(name, np.zeros(len(air.clients))))
        weights = air.weights_of(name)
        scales = np.bincount(air.node, weights * shards.sum(sizes).numpy(), air.nodes)
        scale = mean.new_tensor(scales)[:, None]
        received = decided * scale
        if air.exchanged is not None:
            received = torch.where(air.exchanged, received, 0.0)
        heard = np.flatnonzero(np.bincount(air.node, weights, air.nodes) > 0)
        fill = np.broadcast_to(air.fill(np.arange(air.nodes)) ** 2, air.nodes)
        unit, errors = air.units.get(name, 1.0), []
        for node in heard:
            exact, of_vote = mean[node].double(), expected[node].double() * scales[node]
            realised = float((received[node] - exact).square().mean()) * fill[node]
            shrunk = float((exact.square() - 2 * exact * of_vote).mean()) * fill[node]
            majority = votes[node] != 0
            share = 1 / max(int(majority.sum()), 1)
            wrong = float(((decided[node] != votes[node].sign()) & majority).sum()) * share
            chance = 0.5 * (1 - votes[node].sign() * expected[node])[majority]
            predicted = scales[node] ** 2 + shrunk
            errors.append(
                (
                    realised / unit**2,
                    predicted / unit**2,
                    wrong,
                    float(chance.double().sum()) * share,
                )
            )
        means = np.mean(errors, 0) if errors else np.full(4, np.nan)
        for title, value in zip(("air_error", "air_error_votes"), means.reshape(2, 2), strict=True):
            self._metrics |= {title: float(value[0]), f"{title}_predicted": float(value[1])}
        self._sums[name] = received


class EnergyVotes(VoteReception):
    """Majority votes by energy, see :mod:`channels.votes`; this process holds the signs.

    A client sends at its full power times q_i / max q of its node: with equal weights all send at
    full power. Expected votes are those of Rayleigh fading with the clients' mean gains, and so
    without the channels of this upload.
    """

    def __init__(self, air: Transmission, draw: ChannelDraw) -> None:
        super().__init__(air, draw)
        self._signs: dict[str, torch.Tensor] = {}

    def _send(self, part: slice | IntArray, signs: dict[str, torch.Tensor]) -> None:
        for name, votes in signs.items():
            self._held(name, votes)[part] = votes.to(torch.int8).cpu()

    def _held(self, name: str, like: torch.Tensor) -> torch.Tensor:
        """Signs [clients, elements], 0 until the client has sent."""
        if name not in self._signs:
            shape = len(self.air.clients), like.shape[1]
            self._signs[name] = torch.zeros(shape, dtype=torch.int8)
        return self._signs[name]

    def _decide(
        self, name: str, votes: torch.Tensor, shards: Shards, like: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        signs = shards.sum(self._held(name, like)).numpy()
        del self._signs[name]
        air, weights = self.air, self.air.weights_of(name)
        powers = RESOURCES * self.draw.snr * vote_power(weights, self.draw.network)
        gains = powers * self.draw.path_gain

        def decide() -> tuple[FloatArray, FloatArray]:
            difference, expected = np.zeros((2, *votes.shape))
            for node in np.unique(air.node):
                rows = air.node == node
                at: slice | FloatArray = slice(None)
                if air.exchanged is not None:
                    at = air.exchanged[node].cpu().numpy()
                sent = signs[rows][:, at]
                stream = air.stream.child("node", int(node), name)
                difference[node, at] = energy_difference(
                    sent, self.draw.h[rows], np.sqrt(powers[rows]), stream
                )
                sides = powers_of_sides(sent, gains[rows])
                lost = wrong_vote_probability(*sides, antennas=self.draw.h.shape[-1])
                expected[node, at] = 1 - 2 * lost
            return difference, expected

        # In one process, so that a last bit of another machine decides no vote.
        difference, expected = shards.by_first(decide)
        return votes.new_tensor(difference), votes.new_tensor(expected)


class CoherentVotes(VoteReception):
    """Signs over inverted channels: the server takes the sign of their weighted sum.

    One-bit over-the-air aggregation (Zhu, Du, Gunduz, Huang, arXiv:2001.05713) with a beamformer:
    the signs are sent as in the convention ``physical``, on I, or with two elements per symbol on I
    and Q. Given the votes v_i, the sum is shrink sum_i q_i v_i plus noise, so an element's vote is
    wrong with probability Q(shrink |sum_i q_i v_i| / sigma), where sigma^2 is the predicted error
    of the sum, (air-noise) with known channels.

    Args:
        precoding: how the signs are precoded and received, of convention ``physical``.
        air: the upload.
        draw: channel draw that includes its clients.
    """

    def __init__(self, precoding: Precoding, air: Transmission, draw: ChannelDraw) -> None:
        super().__init__(air, draw)
        self.sums = AirReception(precoding, replace(air, units={}), draw)

    def _send(self, part: slice | IntArray, signs: dict[str, torch.Tensor]) -> None:
        self.sums.add(part, signs)

    def finish(self, shards: Shards, payloads: Sequence[str], like: torch.Tensor) -> None:
        """See :class:`VoteReception`."""
        self.sums.finish(shards, payloads, like)
        super().finish(shards, payloads, like)

    def _decide(
        self, name: str, votes: torch.Tensor, shards: Shards, like: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        deviation = torch.from_numpy(np.sqrt(2 * self.sums.noise[name]))[:, None]
        amplitude = self.sums.expected_sum(name, votes).double().cpu()
        ratio = torch.where(amplitude == 0, 0.0, amplitude / deviation)
        return self.sums.result().mean[name], torch.erf(ratio).to(votes)
