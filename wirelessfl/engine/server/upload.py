"""An upload to the nodes of a server: senders, uplink and received payloads.

Weights of clients in the means of their nodes, and of nodes in the mean of the cloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from channels import ChannelDraw
from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from channels.streams import Name, Stream
from channels.validation import compact
from wirelessfl.air.uplinks import AirRound, Uplink
from wirelessfl.air.uplinks.uplink import Reception
from wirelessfl.algorithms.algorithm import Algorithm
from wirelessfl.training.payloads import Received


@dataclass(frozen=True, eq=False)
class Senders:
    """Clients whose payloads are merged together, and how they trained.

    Args:
        clients: [senders], client numbers; clients of a node are consecutive.
        rule: the algorithm, with the step size of their training.
        local_steps: H, local steps of each client; their mean if they differ.
        stream: random stream of their uploads.
        tracking: [senders] boolean, clients that send tracking terms; None for all.
        staleness: [senders], merges since each client received its model; None in rounds.
    """

    clients: IntArray
    rule: Algorithm
    local_steps: float
    stream: Stream
    tracking: BoolArray | None = None
    staleness: IntArray | None = None

    @property
    def payloads(self) -> list[str]:
        """Names of the payloads."""
        return [payload.name for payload in self.rule.payloads]


@dataclass(frozen=True, eq=False)
class Upload:
    """Uploads of some clients to the nodes of a server, once or in several edge rounds.

    Args:
        senders: the clients.
        uplink: how their payloads cross the air.
        air: description of an upload for the uplink.
        share: by payload, [nodes, 1], weight of its senders relative to all present clients.
    """

    senders: Senders
    uplink: Uplink
    air: AirRound
    share: Mapping[str, torch.Tensor]

    def exchanging(self, elements: torch.Tensor | None, lengths: IntArray | None = None) -> Upload:
        """Return this upload restricted to these elements [nodes, P]; None for all.

        ``lengths`` [senders] is the number of elements of each sender, see ``AirRound``.
        """
        return replace(self, air=replace(self.air, exchanged=elements, lengths=lengths))

    def open(
        self,
        *names: Name,
        draw: ChannelDraw | None = None,
        beamformers: ComplexArray | None = None,
    ) -> Reception:
        """Start the reception of an upload.

        Args:
            names: path of the upload's random stream below the senders' stream.
            draw: channel draw of this upload; None if clients upload at different times.
            beamformers: [nodes, antennas], receive beamformers of the plan; None if there are none.
        """
        stream = self.air.stream.child(*names)
        air = replace(self.air, draw=draw, stream=stream, beamformers=beamformers)
        return self.uplink.receive(air)

    def received(self, reception: Reception) -> Received:
        """Received payloads, with the facts about the senders that the algorithm needs."""
        return replace(
            reception.result(),
            local_steps=self.senders.local_steps,
            share=self.share,
            weights=self.air.weights.tolist(),
            staleness=self.senders.staleness,
        )


BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of clients in means: uniform, or by number of samples.

    Args:
        node_of: [clients], node that each client reports to, from 0; stored in the smallest type.
        samples: [clients], number of samples of each client, used as weight; None for uniform
            weights.
    """

    node_of: NDArray[np.integer[Any]]
    samples: FloatArray | None = None

    def __post_init__(self) -> None:
        smallest = np.min_scalar_type(int(self.node_of.max()))
        object.__setattr__(self, "node_of", compact(self.node_of.astype(smallest)))

    @cached_property
    def nodes(self) -> int:
        """Number of nodes: the server of a star, or the edge servers."""
        return int(self.node_of.max()) + 1

    def nodes_of(self, clients: IntArray) -> IntArray:
        """Node that each client reports to, [clients]."""
        return np.asarray(self.node_of[clients], dtype=np.int64)

    def of(self, clients: IntArray) -> FloatArray:
        """Weight of each client [clients]: its number of samples, or 1."""
        return np.ones(len(clients)) if self.samples is None else self.samples[clients]

    def in_means(self, clients: IntArray) -> FloatArray:
        """Weight of each client in the mean of its node [clients]; they sum to 1 per node."""
        node = self.nodes_of(clients)
        return np.asarray(self.of(clients) / self.sums(clients)[node])

    def at_nodes(self, clients: IntArray) -> list[float]:
        """Weight of each node [nodes]; 0 for nodes that none of ``clients`` report to."""
        sums: list[float] = self.sums(clients).tolist()
        return [float(total > 0) for total in sums] if self.samples is None else sums

    def share(self, clients: IntArray, whole: FloatArray) -> FloatArray:
        """Weight of ``clients`` at each node relative to ``whole`` [nodes]; 0 if ``whole`` is 0."""
        return np.asarray(self.sums(clients) / np.where(whole > 0, whole, 1.0))

    def sums(self, clients: IntArray) -> FloatArray:
        """Sum of the weights of ``clients`` at each node [nodes]."""
        sums = np.bincount(self.nodes_of(clients), self.of(clients), self.nodes)
        return np.asarray(sums, dtype=np.float64)

    def sums_where(self, chosen: BoolArray) -> FloatArray:
        """Sum of the weights of the clients ``chosen`` [clients] at each node [nodes].

        Blocks of clients keep intermediate results small.
        """
        firsts = range(0, len(chosen), BLOCK)
        blocks = (first + np.flatnonzero(chosen[first : first + BLOCK]) for first in firsts)
        return np.asarray(sum(map(self.sums, blocks), np.zeros(self.nodes)))
