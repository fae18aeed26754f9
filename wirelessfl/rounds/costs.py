"""Cost of a global round in seconds, MiB and joules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels import (
    ChannelDraw,
    Network,
    compute_joules,
    compute_seconds,
    seconds_per_parameter,
    transmit_joules,
)
from channels.arrays import FloatArray, IntArray
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.rounds.participants import Participants
from wirelessfl.rounds.settings import TrainingSettings
from wirelessfl.submodels import ClientSubmodels, ParamSpec, Submodels
from wirelessfl.units import BITS_PER_ELEMENT, MIB_PER_ELEMENT
from wirelessfl.uplinks import Uplink
from wirelessfl.uplinks.base import Coherence

MAX_AT_ONCE = 1 << 20  # clients times width levels per batch, to bound memory


@dataclass(frozen=True)
class Links:
    """Links of a run. Downlink and backhaul are error-free, and take no time if their rate is None.

    Args:
        network: cells, clients, channels.
        uplink: how updates cross the air.
        coherence: coherence interval of the channel.
        downlink_bps: rate from edge server to each client, in bit/s.
        backhaul_bps: rate between edge server and cloud in each direction, in bit/s.
    """

    network: Network
    uplink: Uplink
    coherence: Coherence = "round"
    downlink_bps: float | None = None
    backhaul_bps: float | None = None


@dataclass(frozen=True)
class Cost:
    """Cost of a global round.

    Args:
        seconds: [nodes], duration at each node; their maximum (18) is the duration of the round.
        uplink_mib: uplink traffic, mean over clients.
        downlink_mib: downlink traffic, mean over clients.
        backhaul_mib: backhaul traffic in both directions, mean over edge servers.
        joules: energy for computation and transmission, mean over clients.
    """

    seconds: FloatArray
    uplink_mib: float
    downlink_mib: float
    backhaul_mib: float
    joules: float


@dataclass(frozen=True)
class Costs:
    """Computes the costs of rounds; arrays [senders] have one entry per participating client.

    Args:
        algorithm: algorithm that defines the payloads.
        links: links that the payloads cross.
        spec: parameters of the full model.
        settings: local steps and edge rounds.
    """

    algorithm: Algorithm
    links: Links
    spec: ParamSpec
    settings: TrainingSettings

    @property
    def hierarchical(self) -> bool:
        """Whether there are edge servers between clients and cloud."""
        return self.algorithm.topology == "cells"

    @property
    def downlink_vectors(self) -> float:
        """Number of 32-bit vectors sent to a client; a compressed model counts as less than 1."""
        vectors, compression = float(len(self.algorithm.sends)), self.settings.compression
        if compression is not None:
            vectors += compression.bits_per_element(self.spec) / BITS_PER_ELEMENT - 1
        return vectors

    def seconds_per_parameter(self, draws: ChannelDraw, who: Participants) -> FloatArray:
        """Seconds per parameter in a global round; latency is linear in the number of parameters.

        Args:
            draws: channels of (at least) the participating clients, in blocks of equal duration.
            who: participating clients.

        Returns:
            [cells].
        """
        draws = draws.of(who.clients)
        vectors = who.vectors(self.algorithm)
        charged = self.links.uplink.charged(vectors, draws.network.cell_of)
        seconds_per_bit = self._upload_seconds(draws, charged)
        if self.links.downlink_bps is not None:
            seconds_per_bit = seconds_per_bit + self.downlink_vectors / self.links.downlink_bps
        edge = seconds_per_parameter(
            draws,
            model_parameters=self.spec.size,
            local_steps=self.settings.local_steps,
            seconds_per_bit=seconds_per_bit,
            bits_per_parameter=BITS_PER_ELEMENT,
        )
        seconds = self.settings.edge_rounds * edge.mean(0)
        if self.hierarchical and self.links.backhaul_bps is not None:
            seconds = seconds + 2 * BITS_PER_ELEMENT / self.links.backhaul_bps  # once, down and up
        return np.asarray(seconds)

    @np.errstate(over="ignore")  # the planner refuses infinite costs
    def of_nodes(self, draws: ChannelDraw, submodels: Submodels, who: Participants) -> Cost:
        """Cost of a round in which each client trains the submodel of its node."""
        draws, lengths = draws.of(who.clients), submodels.lengths.astype(np.float64)
        seconds = self.seconds_per_parameter(draws, who) * lengths  # (17), (18)
        length = lengths[draws.network.cell_of]
        return self._counted(draws, who, seconds, length, float(lengths.mean()))

    @np.errstate(over="ignore")
    def of_clients(
        self,
        draws: ChannelDraw,
        submodels: ClientSubmodels,
        who: Participants,
        at_nodes: Submodels,
    ) -> Cost:
        """Cost of a round in which each client has its own submodel, and nodes have the full model.

        Edge servers without a model (length 0 in ``at_nodes``) exchange nothing with the cloud.
        """
        draws, length = draws.of(who.clients), submodels.lengths.astype(np.float64)
        network = draws.network
        vectors = self.links.uplink.charged(who.vectors(self.algorithm), network.cell_of)
        elements = vectors * self._upload_elements(submodels, network.cell_of)
        client = self.client_seconds(draws, length, elements)
        cells = network.over_cells(np.maximum, client)
        seconds = self.settings.edge_rounds * cells.mean(0) + self._backhaul_seconds
        return self._counted(draws, who, seconds, length, float(at_nodes.lengths.mean()))

    def client_seconds(
        self, draws: ChannelDraw, length: FloatArray, elements: FloatArray
    ) -> FloatArray:
        """Seconds that clients with individual submodels need per edge round, the brackets in (17).

        Args:
            draws: channels of the participating clients, in blocks.
            length: [..., senders], parameters of the submodels.
            elements: [..., senders], payload elements that determine the upload's duration.

        Returns:
            [..., blocks, senders].
        """
        upload = BITS_PER_ELEMENT * self._upload_seconds(draws, elements[..., None, :])
        steps = compute_seconds(draws.network, self.settings.local_steps, length / self.spec.size)
        if self.links.downlink_bps is not None:
            bits = BITS_PER_ELEMENT * self.downlink_vectors * length
            steps = steps + bits / self.links.downlink_bps
        return np.asarray(steps[..., None, :] + upload)

    def max_seconds(self, draws: ChannelDraw, who: Participants, lengths: IntArray) -> FloatArray:
        """Upper bound [senders, levels] on the round's seconds for submodels of ``lengths``.

        With several channel draws, the bound uses each client's slowest draw.
        """
        draws = draws.of(who.clients)
        vectors = self.links.uplink.charged(who.vectors(self.algorithm), draws.network.cell_of)
        edge = np.empty((len(lengths), len(vectors)))
        some = MAX_AT_ONCE // max(1, len(vectors)) or 1
        for start in range(0, len(lengths), some):
            part = slice(start, start + some)
            length = np.repeat(lengths[part, None].astype(np.float64), len(vectors), 1)
            # Over the air, an upload may take as long as that of the full model.
            upload = (
                length
                if self.links.uplink.gives == "each"
                else np.full_like(length, self.spec.size)
            )
            edge[part] = self.client_seconds(draws, length, vectors * upload).max(-2)
        return np.asarray(self.settings.edge_rounds * edge.T + self._backhaul_seconds)

    @property
    def _backhaul_seconds(self) -> float:
        if not self.hierarchical or self.links.backhaul_bps is None:
            return 0.0
        return 2 * BITS_PER_ELEMENT * self.spec.size / self.links.backhaul_bps  # down and up

    def _upload_seconds(self, draws: ChannelDraw, bits: FloatArray) -> FloatArray:
        """Seconds [blocks, senders] of uploads of ``bits`` [senders]."""
        # An uplink whose seconds do not depend on the channel may omit the block axis.
        seconds_per_bit = self.links.uplink.seconds_per_bit(draws)
        seconds_per_bit = np.broadcast_to(seconds_per_bit, draws.h.shape[:-1])
        with np.errstate(invalid="ignore"):  # 0 bits at rate 0 take 0 seconds
            return np.where(bits > 0, bits * seconds_per_bit, 0.0)

    def _upload_elements(self, submodels: ClientSubmodels, node: IntArray) -> IntArray:
        """Number of elements that determine the duration of each upload [senders].

        Over the air, the clients of a node jointly transmit every element that any of them sends.
        """
        if self.links.uplink.gives == "each":
            return submodels.lengths
        sizes = np.bincount(node, minlength=self.links.network.cells)
        _, count = submodels.cover(node, (1.0 / sizes[node]).tolist(), self.links.network.cells)
        return np.asarray((count > 0).sum(1).numpy()[node])

    def _counted(
        self,
        draws: ChannelDraw,
        who: Participants,
        seconds: FloatArray,
        length: FloatArray,
        node_length: float,
    ) -> Cost:
        """Cost, given ``seconds`` [cells] and the number of parameters ``length`` [senders].

        ``node_length`` is the mean length over edge servers. Means are over all clients of the
        network, including those that do not participate.
        """
        clients, vectors = self.links.network.clients, who.vectors(self.algorithm)
        airtime = self.links.uplink.airtime_per_bit(draws) * BITS_PER_ELEMENT * vectors * length
        joules = transmit_joules(draws.network, airtime) + compute_joules(
            draws.network, self.settings.local_steps, length / self.spec.size
        )
        blocks = np.atleast_2d(joules)  # an uplink without channels has one block
        elements = float((vectors * (length + self.links.uplink.side_elements)).sum()) / clients
        return Cost(
            seconds=seconds,
            uplink_mib=self.settings.edge_rounds * MIB_PER_ELEMENT * elements,
            downlink_mib=self.settings.edge_rounds
            * MIB_PER_ELEMENT
            * self.downlink_vectors
            * float(length.sum())
            / clients,
            backhaul_mib=2 * MIB_PER_ELEMENT * node_length if self.hierarchical else 0.0,
            joules=self.settings.edge_rounds * float(blocks.sum(1).mean()) / clients,
        )
