"""One global round before it is trained: channel draw, submodels, and what it will cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from channels import ChannelDraw, Network
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.compression import Compression
from wirelessfl.rounds.costs import Cost, Costs, Links
from wirelessfl.rounds.mask_sizes import mask_size_problem
from wirelessfl.rounds.participants import Participants, draw_participants
from wirelessfl.rounds.step_sizes import constant
from wirelessfl.submodels import ClientSubmodels, NeuronMap, ParamSpec, Partition, Submodels
from wirelessfl.submodels.partition import Scheme
from wirelessfl.units import BITS_PER_ELEMENT
from wirelessfl.uplinks import Uplink
from wirelessfl.uplinks.base import Coherence


@dataclass(frozen=True)
class Plan:
    """A global round: who trains what, over which channels, at what cost.

    Args:
        round: its number, from 0.
        clients: [senders], who takes part, in the order of the network.
        tracking: [senders], who sends what only trackers send.
        node: [senders], the node each reports to.
        draws: of those who take part, h [blocks, senders, antennas]: one block, or one an edge
            round.
        submodels: what each node trains.
        cost: what it takes.
        lr_share: of the algorithm's step size, what clients use.
        own: what each sender trains of its node's model; None: all of it.
    """

    round: int
    clients: IntArray
    tracking: BoolArray
    node: IntArray
    draws: ChannelDraw
    submodels: Submodels
    cost: Cost
    lr_share: float = 1.0
    own: ClientSubmodels | None = None

    def without(self, clients: IntArray) -> Plan:
        """The round when these clients have left in the middle of it; its cost and draws stay."""
        stays = ~np.isin(self.clients, clients)
        return replace(
            self,
            clients=self.clients[stays],
            tracking=self.tracking[stays],
            node=self.node[stays],
            own=None if self.own is None else self.own.of_rows(np.flatnonzero(stays)),
        )

    def draw(self, edge_round: int) -> ChannelDraw:
        """The channel during an edge round."""
        blocks = self.draws.h
        return ChannelDraw(self.draws.network, blocks[min(edge_round, len(blocks) - 1)])


@dataclass(frozen=True)
class Planner:
    """Plans rounds; a plan depends on the round's number and the settings alone.

    Args:
        algorithm: hands out the submodels.
        network: cells, clients, channels.
        uplink: how updates cross the air.
        links: the other links.
        spec: the full model.
        make_partition: neuron partition of the model by scheme.
        local_steps: H.
        edge_rounds: E.
        coherence: how long a channel draw lasts.
        stream: the run's stream.
        per_round: S, clients that take part in a round; None: all.
        tracking: of these, who tracks; None: all.
        lr_share: of the algorithm's step size, what clients use in round ``number``.
        make_neurons: finds what clients' submodels may leave out of the model.
        compression: of the model on its way to the clients.
    """

    algorithm: Algorithm
    network: Network
    uplink: Uplink
    links: Links
    spec: ParamSpec
    make_partition: Callable[[Scheme], Partition]
    local_steps: int
    edge_rounds: int
    coherence: Coherence
    stream: Stream
    per_round: int | None = None
    tracking: int | None = None
    lr_share: Callable[[int], float] = constant
    make_neurons: Callable[[], NeuronMap] | None = None
    compression: Compression | None = None

    @property
    def costs(self) -> Costs:
        """Counts what rounds take."""
        return Costs(
            self.algorithm,
            self.network,
            self.uplink,
            self.links,
            self.spec,
            self.local_steps,
            self.edge_rounds,
            self.compression,
        )

    def neurons(self) -> NeuronMap:
        """All neurons that clients' submodels may leave out."""
        assert self.make_neurons is not None, "the algorithm has submodels of clients"
        return self.make_neurons()

    def plan(self, number: int, there: BoolArray | None = None) -> Plan:
        """Global round ``number``, from its channel draws to its cost.

        Args:
            number: from 0.
            there: [clients], who is there; None: all.
        """
        indices = [number]
        if self.coherence == "edge-round":
            indices = [number * self.edge_rounds + e for e in range(self.edge_rounds)]
        stream = self.stream.child("round", number)
        who = draw_participants(self.network, self.per_round, self.tracking, stream, there)
        draws = self.network.draws(self.stream.child("channel"), indices, who.clients)
        context = _RoundContext(self, number, draws, stream, who)
        submodels = self.algorithm.submodels(context)
        own = self.algorithm.client_submodels(context)
        if own is None:
            cost = self.costs.of_nodes(draws, submodels, who)
        else:
            cost = self.costs.of_clients(draws, own, who)
        if not np.isfinite(cost.seconds).all():
            slow = int(np.flatnonzero(~np.isfinite(cost.seconds))[0])
            raise ConfigError(
                f"round {number + 1} takes cell {slow} {cost.seconds[slow]} seconds: a client "
                "there has no data rate. Raise snr_db or bandwidth_hz."
            )
        node = draws.network.cell_of
        share = self.lr_share(number)
        return Plan(number, who.clients, who.tracking, node, draws, submodels, cost, share, own)

    def broadcast_seconds(self) -> float:
        """Seconds that the whole model takes to all clients, beside any round."""
        links = [self.links.downlink_bps]
        if self.hierarchical:
            links.append(self.links.backhaul_bps)
        return sum(BITS_PER_ELEMENT * self.spec.size / bps for bps in links if bps is not None)

    @property
    def hierarchical(self) -> bool:
        """Whether there are edge servers between clients and cloud."""
        return self.costs.hierarchical


@dataclass(frozen=True)
class _RoundContext:
    """What the algorithm may ask for when it hands out submodels."""

    planner: Planner
    number: int
    draws: ChannelDraw
    stream: Stream
    who: Participants

    @property
    def spec(self) -> ParamSpec:
        return self.planner.spec

    @property
    def nodes(self) -> int:
        return self.planner.network.cells

    @property
    def run_stream(self) -> Stream:
        return self.planner.stream

    @property
    def clients(self) -> int:
        return self.planner.network.clients

    @property
    def senders(self) -> IntArray:
        return self.who.clients

    @property
    def node(self) -> IntArray:
        return self.draws.network.cell_of

    def partition(self, scheme: Scheme) -> Partition:
        return self.planner.make_partition(scheme)

    def neurons(self) -> NeuronMap:
        return self.planner.neurons()

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        return self.planner.costs.most_seconds(self.draws, self.who, lengths)

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        if partition.scheme != "alternate":
            raise ConfigError(
                'mask_sizes "optimized" needs partition "alternate": with "all" a submodel\'s size '
                'is not linear in its neurons. Choose mask_sizes "uniform".'
            )
        seconds = self.planner.costs.seconds_per_parameter(self.draws, self.who)
        # A cell without a client would end first; its part is to be the smallest, not the largest.
        seconds = np.where(seconds > 0, seconds, seconds.max())
        try:
            solution = mask_size_problem(partition, seconds, size_cap=cap).solve()
        except ValueError as error:
            raise ConfigError(f"mask sizes: {error}") from error
        if solution.value is None:
            raise ConfigError(
                f"mask sizes: {solution.message}. Raise size_cap, or use fewer cells."
            )
        return [int(size) for size in np.asarray(solution.value)]
