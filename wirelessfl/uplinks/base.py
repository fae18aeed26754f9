"""The interface of an uplink: what the server receives, and the seconds and joules it took.

An uplink knows nothing of models: it carries numbers ("elements") from clients to the nodes they
report to. Its dataclass fields are its settings, like those of an algorithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from channels import ChannelDraw
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.registry import Choice
from wirelessfl.training.payloads import Received
from wirelessfl.training.shards import Shards

Coherence = Literal["round", "edge-round"]


@dataclass(frozen=True)
class AirRound:
    """What is merged together: the clients of some nodes send, each to its node.

    Args:
        nodes: number of nodes.
        node: [clients], node of each sender; senders of a node stand together.
        clients: [clients], their numbers in the network.
        weights: [clients], weights of the mean at each node, > 0; see ``weights_of``.
        each: payloads whose every single one is wanted.
        units: by payload, what an analog uplink divides it by; 1 where none is given.
        stream: randomness of this upload.
        exchanged: [nodes, elements], which elements the clients of a node send; None: all.
        draw: the channel at this time, of these clients at least; None where they do not upload at
            the same time.
        silent: by payload, [clients], who does not send it; none where it is not in here.
    """

    nodes: int
    node: IntArray
    clients: IntArray
    weights: FloatArray
    each: frozenset[str]
    units: Mapping[str, float]
    stream: Stream
    exchanged: Tensor | None = None
    draw: ChannelDraw | None = None
    silent: Mapping[str, BoolArray] = field(default_factory=dict)

    def weights_of(self, payload: str) -> FloatArray:
        """[clients], weights of the mean of ``payload``: 1 in all at each node where any sends."""
        if payload not in self.silent:
            return self.weights
        weights = np.where(self.silent[payload], 0.0, self.weights)
        sums = np.bincount(self.node, weights, self.nodes)
        return np.asarray(weights / np.where(sums > 0, sums, 1.0)[self.node])


class Reception:
    """Error-free weighted means, added up chunk by chunk so that no more than a chunk is held.

    Payloads that are wanted one by one are held whole.
    """

    def __init__(self, air: AirRound) -> None:
        self.air = air
        self._sums: dict[str, Tensor] = {}
        self._each: dict[str, Tensor] = {}

    def add(self, part: slice | IntArray, payloads: dict[str, Tensor]) -> None:
        """Take in what the clients in ``part`` send: [clients, elements] by payload."""
        node = self.air.node[part].tolist()
        for name, sent in payloads.items():
            weights = self.air.weights_of(name)[part].tolist()
            if name not in self._sums:
                self._sums[name] = sent.new_zeros(self.air.nodes, sent.shape[1])
            sums = self._sums[name]
            # Client by client, so that the sums do not depend on the chunks.
            for receiver, weight, row in zip(node, weights, sent, strict=True):
                if weight > 0:
                    sums[receiver].add_(row, alpha=weight)
            if name in self.air.each:
                self._held_each(name, sent)[part] = sent

    def finish(self, shards: Shards, payloads: Sequence[str], like: Tensor) -> None:
        """All has been sent: take in what the clients of other processes sent.

        Args:
            shards: the processes; each has added its own clients.
            payloads: names of all payloads.
            like: [nodes, elements], for processes without a client.
        """
        for name in payloads:
            if name not in self._sums:
                self._sums[name] = torch.zeros_like(like)
            shards.sum(self._sums[name])
            if name in self.air.each:
                shards.sum(self._held_each(name, like))

    def _held_each(self, name: str, like: Tensor) -> Tensor:
        """Room for the payload of every client, [clients, elements]; zero where none is in yet."""
        if name not in self._each:
            self._each[name] = like.new_zeros(len(self.air.clients), like.shape[1])
        return self._each[name]

    def result(self) -> Received:
        """What the nodes have received."""
        return Received(self._sums, self._each, self.air.clients, self.air.node)


@dataclass(frozen=True)
class Uplink(Choice, ABC):
    """Base of every uplink."""

    gives: ClassVar[Literal["each", "sum"]] = "each"
    """Whether a node gets every client's payload, or only their weighted sum."""
    coherence: ClassVar[Coherence] = "round"
    """How long a channel draw lasts, unless the network's settings say otherwise."""
    radio: ClassVar[bool] = True
    """Whether uploads cross the network's radio channel."""
    of_rounds: ClassVar[tuple[str, ...]] = ()
    """Settings that matter only where clients of a cell upload together, in rounds."""

    @property
    def downlink_bps(self) -> float | None:
        """Rate of the link down to each client, unless the network has one; None: takes no time."""
        return None

    def charged(self, vectors: FloatArray, cell_of: IntArray) -> FloatArray:
        """Vectors [clients] whose seconds each client's upload is charged with: its own.

        Args:
            vectors: [clients], how many each of those sends who take part.
            cell_of: [clients], the cell of each.
        """
        return vectors

    @property
    def side_elements(self) -> int:
        """Numbers that a client sends error-free beside each payload; their bytes count."""
        return 0

    @abstractmethod
    def seconds_per_bit(self, draw: ChannelDraw) -> FloatArray:
        """Seconds from the upload's start until a client's own is in, per bit.

        Args:
            draw: the channels of those who upload; ``draw.network`` is the part of the network
                that they are, in which a cell may be empty.

        Returns:
            [..., clients], or [clients] where the channel does not matter.
        """

    @abstractmethod
    def airtime_per_bit(self, draw: ChannelDraw) -> FloatArray:
        """Seconds a client itself transmits, per bit, [..., clients]; this costs energy."""

    @property
    def shareable(self) -> bool:
        """Whether clients may begin and end their uploads at any time, next to each other."""
        return type(self).shared_seconds_per_bit is not Uplink.shared_seconds_per_bit

    def shared_seconds_per_bit(self, bandwidth_hz: float, snr: FloatArray) -> FloatArray:
        """Seconds a bit while just these clients upload, each having begun when it was ready.

        Args:
            bandwidth_hz: of the whole band.
            snr: [uploading], received SNR of each over the whole band.
        """
        raise NotImplementedError(f"uplink {self.name!r} has simultaneous uploads only")

    def shared_airtime(self, bandwidth_hz: float, snr: float, bits: float, seconds: float) -> float:
        """Seconds that a client itself transmitted in such an upload, which took ``seconds``."""
        return seconds

    def receive(self, air: AirRound) -> Reception:
        """Open one upload; error-free unless an uplink says otherwise."""
        return Reception(air)
