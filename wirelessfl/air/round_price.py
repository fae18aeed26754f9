"""What a global round costs: its loads, served by the uplink's access."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from channels import Access, ChannelDraw, Load, Network
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.delivery import before_failures
from wirelessfl.air.links import (
    AmongParticipants,
    Links,
    TrainingSettings,
    at_clients,
    takes_part,
)
from wirelessfl.air.participants import Participants
from wirelessfl.air.served import Served
from wirelessfl.air.traffic import Traffic
from wirelessfl.air.uplinks.checked import checked_access, serving
from wirelessfl.base.rows import BITS_PER_ELEMENT, MIB_PER_BIT, MIB_PER_ELEMENT
from wirelessfl.models.submodels import ClientSubmodels, ParamSpec, Submodels
from wirelessfl.training.rules import ClientRule

MAX_AT_ONCE = 1 << 20  # clients times sizes per batch, to bound memory


def cell_seconds(
    network: Network,
    seconds: FloatArray,
    edge_rounds: ArrayLike,
    backhaul_seconds: FloatArray,
    shape: tuple[int, ...] | None = None,
) -> FloatArray:
    """Seconds [..., cells] of global rounds; their maximum over the cells is the round's, (18).

    Leading axes index networks, numbers of steps or of edge rounds, or rounds.

    Args:
        network: the participating clients.
        seconds: [..., blocks, senders], seconds of an edge round in each block.
        edge_rounds: [..., 1], number of edge rounds.
        backhaul_seconds: [..., cells], seconds in which cells exchange models with the cloud.
        shape: [..., blocks, cells] of the cells of ``network``, if these are listed on one axis.
    """
    slowest = network.over_cells(np.maximum, seconds)
    if shape is not None:
        slowest = slowest.reshape(shape)
    return np.asarray(edge_rounds * slowest.mean(-2) + backhaul_seconds)


def mean_joules(joules: FloatArray, edge_rounds: ArrayLike, clients: int) -> FloatArray:
    """Joules [...] of global rounds, mean over all clients of the network.

    Args:
        joules: [..., blocks, senders], joules of an edge round in each block.
        edge_rounds: [...], number of edge rounds.
        clients: number of clients, with those that do not participate.
    """
    return np.asarray(edge_rounds * joules.sum(-1).mean(-1) / clients)


@dataclass(frozen=True, eq=False)
class Price:
    """Price of a global round.

    Args:
        uplink_mib: uplink traffic, mean over clients.
        downlink_mib: downlink traffic, mean over clients.
        backhaul_mib: backhaul traffic in both directions, mean over edge servers.
        served: the edge rounds' load, from which seconds, joules and decisions follow.
        backhaul_seconds: [nodes], seconds in which nodes exchange models with the cloud.
        clients: number of clients of the network.
        equal_shares: access with equal shares; None if the uplink does not compare them.
    """

    uplink_mib: float
    downlink_mib: float
    backhaul_mib: float
    served: Served
    backhaul_seconds: FloatArray
    clients: int
    equal_shares: Access | None = None

    @cached_property
    @np.errstate(over="ignore")  # the planner refuses infinite prices
    def seconds(self) -> FloatArray:
        """Duration at each node [nodes]; their maximum is the duration of the round."""
        draws, seconds = self.served.draws, _in_blocks(self.served.seconds, self.served.draws)
        return cell_seconds(draws.network, seconds, self.edge_rounds, self.backhaul_seconds)

    @property
    def edge_rounds(self) -> int:
        """Number of edge rounds."""
        return self.served.edge_rounds

    @cached_property
    def equal(self) -> Price | None:
        """The price of the same round with equal shares; None unless the uplink compares."""
        if self.equal_shares is None:
            return None
        served = self.served
        joins = np.atleast_2d(takes_part(served.service, served.load, served.draws.network))
        served = replace(served, access=AmongParticipants(self.equal_shares, joins))
        return replace(self, served=served, equal_shares=None)

    @cached_property
    @np.errstate(over="ignore")
    def joules(self) -> float:
        """Energy for computation and transmission, mean over all clients of the network."""
        blocks = np.atleast_2d(self.served.service.joules)  # one block, if all are equal
        return float(mean_joules(blocks, self.edge_rounds, self.clients))

    @property
    def client_joules(self) -> FloatArray:
        """The same of each participating client, [senders]."""
        blocks = np.atleast_2d(self.served.service.joules)
        return np.asarray(self.edge_rounds * blocks.mean(0))

    @property
    def client_seconds(self) -> FloatArray:
        """Time from the start of each edge round until a client has sent, [senders], their sum."""
        blocks = _in_blocks(self.served.seconds, self.served.draws)
        return np.asarray(self.edge_rounds * blocks.mean(0))

    @property
    def silent(self) -> int:
        """Number of updates that clients do not send, in all edge rounds."""
        return self.served.count(self.served.silent)

    @property
    def lost(self) -> int:
        """Number of updates that failed or would miss the round's deadline, in all edge rounds."""
        served = self.served
        if served.arrived is None:
            return 0
        return served.count(~served.arrived) - self.silent - (self.late or 0)

    @property
    def late(self) -> int | None:
        """Number of updates that miss the cut-off, in all edge rounds; None without a cut-off."""
        late = self.served.late
        return None if late is None else self.served.count(np.atleast_2d(late))


@dataclass(frozen=True)
class Pricing:
    """Loads of rounds, and what serving them costs; senders are the participating clients.

    Args:
        rule: the clients' rule, which defines the payloads.
        hierarchical: whether there are edge servers between clients and cloud.
        links: links that the payloads cross.
        spec: parameters of the full model.
        settings: local steps and edge rounds.
        weights: [clients], weights of the clients in their cell's mean; None for equal weights.
    """

    rule: ClientRule
    hierarchical: bool
    links: Links
    spec: ParamSpec
    settings: TrainingSettings
    weights: FloatArray | None = None

    @property
    def title(self) -> str:
        """The uplink, for errors."""
        return f"uplink {self.links.uplink.title!r}"

    @cached_property
    def access(self) -> Access:
        """The uplink's access."""
        return self.links.access or checked_access(self.links.uplink)

    @cached_property
    def sizing(self) -> Access:
        """The access whose seconds decide about submodel sizes."""
        uplink = self.links.uplink
        return before_failures(checked_access(uplink, uplink.sizing), self.links.failures)

    @cached_property
    def traffic(self) -> Traffic:
        """Bits of uploads and downloads."""
        settings = self.settings
        return Traffic.of(
            self.rule,
            self.spec,
            settings.uplink_compression,
            settings.downlink_compression,
            self.links.uplink.element_bits,
        )

    @property
    def pilot_symbols(self) -> float:
        """Pilot symbols of a client in an edge round.

        If a channel lasts for the whole round, its pilots are spread over the edge rounds.
        """
        blocks = 1 if self.links.coherence == "round" else self.settings.edge_rounds
        return self.links.pilot_symbols * blocks / self.settings.edge_rounds

    def load(
        self,
        who: Participants,
        length: FloatArray,
        jointly: FloatArray | None = None,
        silent: BoolArray | None = None,
    ) -> Load:
        """Load of an edge round: download, pilots, local steps and upload.

        Args:
            who: participating clients.
            length: [..., senders], parameters of the submodels.
            jointly: [..., senders], parameters that at least one client of the cell sends; None
                for ``length``.
            silent: [blocks, senders] boolean, clients that send nothing; None for none.
        """
        start, down = np.zeros(()), self.links.downlink_bps
        if down is not None:
            start = self.traffic.down_bits(length) / at_clients(down, who.clients)
        edge_rounds, deadline = self.settings.edge_rounds, self.links.uplink.deadline_seconds
        # Submodels of nodes cross the backhaul; those of clients are parts of whole models.
        whole = np.full_like(length, self.spec.size)
        backhaul = self.backhaul_seconds(length if jointly is None else whole)
        steps, cycles = self.settings.steps.at(who.clients), self.links.network.cycles_per_step
        vectors = who.vectors(self.rule)
        bits_per_element = self.traffic.bits_per_element(length, vectors)
        return Load(
            steps * cycles * (length / self.spec.size),
            length,
            vectors=vectors if silent is None else np.where(silent, 0.0, vectors),
            jointly=jointly,
            weights=None if self.weights is None else self.weights[who.clients],
            start_seconds=start,
            after_seconds=backhaul / edge_rounds,
            deadline_seconds=np.inf if deadline is None else deadline / edge_rounds,
            pilot_symbols=self.pilot_symbols,
            bits_per_element=bits_per_element,
        )

    @np.errstate(over="ignore")  # the planner refuses infinite prices
    def price(
        self,
        number: int,
        draws: ChannelDraw,
        who: Participants,
        submodels: Submodels,
        mixed: ClientSubmodels | None,
        stream: Stream,
    ) -> Price:
        """Price of a global round.

        Args:
            number: round number, from 0.
            draws: channels of (at least) the participating clients, in blocks of equal duration.
            who: participating clients.
            submodels: submodel of each node. Edge servers without a model (length 0) exchange
                nothing with the cloud.
            mixed: submodel of each client; None if all train that of their node.
            stream: random stream of the round.
        """
        draws, nodes = draws.of(who.clients), submodels.lengths.astype(np.float64)
        node = draws.network.cell_of
        if mixed is None:
            length, jointly = nodes[node], None
        else:
            length, jointly = mixed.lengths.astype(np.float64), self._joint_elements(mixed, node)
        silent, settings = self.links.uplink.silent(draws), self.settings
        load = self.load(who, length, jointly, silent)
        served = Served(
            self.access,
            load,
            draws,
            f"{self.title}, round {number + 1}",
            settings.edge_rounds,
            stream.child("failures"),
            silent,
            self.links.failures,
            settings.cutoff_seconds,
        )
        # Means are over all clients of the network, including those that do not participate.
        clients, edge_rounds = self.links.network.clients, settings.edge_rounds
        side = BITS_PER_ELEMENT * load.vectors * self.links.uplink.side_elements
        bits = self.traffic.up_bits(length, load.vectors) + side
        if served.transmissions is not None:
            bits = bits * served.transmissions
        sent = float(np.atleast_2d(bits).mean(0).sum()) / clients
        received = float(self.traffic.down_bits(length).sum()) / clients
        shares, mib = self.links.uplink.equal_shares, edge_rounds * MIB_PER_BIT
        return Price(
            uplink_mib=mib * sent,
            downlink_mib=mib * received,
            backhaul_mib=2 * MIB_PER_ELEMENT * float(nodes.mean()) if self.hierarchical else 0.0,
            served=served,
            # Nodes with submodels exchange these; otherwise they exchange whole models.
            backhaul_seconds=self.backhaul_seconds(
                nodes if mixed is None else np.full_like(nodes, self.spec.size)
            ),
            clients=clients,
            equal_shares=None if shares is None else checked_access(self.links.uplink, shares),
        )

    def node_seconds(
        self, draws: ChannelDraw, who: Participants, lengths: FloatArray
    ) -> FloatArray:
        """Seconds of a global round [sizes, nodes] if each node trains a submodel of these lengths.

        Args:
            draws: channels of (at least) the participating clients, in blocks.
            who: participating clients.
            lengths: [sizes, nodes], number of parameters.
        """
        draws = draws.of(who.clients)
        length = lengths[:, None, draws.network.cell_of]
        seconds = _in_blocks(self.sizing.seconds(self.load(who, length), draws), draws)
        backhaul = self.backhaul_seconds(lengths)
        return cell_seconds(draws.network, seconds, self.settings.edge_rounds, backhaul)

    def client_seconds(
        self, draws: ChannelDraw, who: Participants, lengths: IntArray
    ) -> FloatArray:
        """Seconds [senders, levels] of a round in which all clients train submodels of ``lengths``.

        With several channel draws, each client's slowest draw counts. Over the air, an upload may
        take as long as that of the full model.
        """
        whole = np.repeat(lengths[:, None], len(who.clients), 1)
        return self.seconds_of(draws, who, whole).T

    def seconds_of(self, draws: ChannelDraw, who: Participants, lengths: IntArray) -> FloatArray:
        """Seconds [candidates, senders] of a round with submodels [candidates, senders] of lengths.

        As :meth:`client_seconds`, for clients with different submodels.
        """
        draws, longest = draws.of(who.clients), np.empty(lengths.shape)
        some = max(1, MAX_AT_ONCE // max(1, lengths.shape[1]))
        for start in range(0, len(lengths), some):
            part = slice(start, start + some)
            length = lengths[part, None].astype(np.float64)
            load = self.load(who, length, np.full_like(length, self.spec.size))
            with serving(self.title):
                seconds = self.sizing.seconds(load, draws)
            shape = np.broadcast_shapes(length.shape, draws.h.shape[:-1])
            longest[part] = np.broadcast_to(seconds, shape).max(1)
            if np.isinf(longest[part]).all():
                with serving(self.title):
                    self.sizing.serve(load, draws)  # raises if no client can meet its deadline
        whole = np.full(1, self.spec.size, dtype=np.float64)
        return np.asarray(self.settings.edge_rounds * longest + self.backhaul_seconds(whole))

    def backhaul_seconds(self, lengths: FloatArray) -> FloatArray:
        """Seconds in which these many parameters go from the cloud to an edge server and back."""
        if not self.hierarchical or self.links.backhaul_bps is None:
            return np.zeros_like(lengths)
        return 2 * BITS_PER_ELEMENT * lengths / self.links.backhaul_bps

    def _joint_elements(self, mixed: ClientSubmodels, node: IntArray) -> FloatArray:
        """Number of elements [senders] that at least one client of the node sends."""
        if self.links.uplink.gives == "each":
            return mixed.lengths.astype(np.float64)
        cells = self.links.network.cells
        sizes = np.bincount(node, minlength=cells)
        _, count = mixed.cover(node, (1.0 / sizes[node]).tolist(), cells)
        return np.asarray((count > 0).sum(1).numpy()[node], dtype=np.float64)


def _in_blocks(seconds: FloatArray, draws: ChannelDraw) -> FloatArray:
    """Seconds [..., blocks, senders], also where all blocks take the same."""
    return np.broadcast_to(seconds, np.broadcast_shapes(seconds.shape, draws.h.shape[:-1]))
