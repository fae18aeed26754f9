"""One global round before it is trained: channel draw, submodels, and what it will cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from channels import (
    ChannelDraw,
    Network,
    compute_joules,
    seconds_per_parameter,
    transmit_joules,
)
from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.simulation.mask_sizes import mask_size_problem
from wirelessfl.simulation.participants import Participants, draw_participants
from wirelessfl.simulation.step_sizes import constant
from wirelessfl.submodels import ParamSpec, Partition, Submodels
from wirelessfl.submodels.partition import IntArray, Scheme
from wirelessfl.uplinks import Uplink
from wirelessfl.uplinks.base import BITS_PER_ELEMENT, Coherence

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Links:
    """Links beyond the uplink. They are error-free; without a rate they take no time.

    Args:
        downlink_bps: edge server to each client.
        backhaul_bps: edge server to cloud, each way.
    """

    downlink_bps: float | None = None
    backhaul_bps: float | None = None


@dataclass(frozen=True)
class Cost:
    """What a global round takes.

    Args:
        seconds: [nodes], (18) before the maximum.
        uplink_mib: mean over clients.
        downlink_mib: mean over clients.
        backhaul_mib: mean over edge servers, both ways.
        joules: mean over clients, computing and transmitting.
    """

    seconds: FloatArray
    uplink_mib: float
    downlink_mib: float
    backhaul_mib: float
    joules: float


@dataclass(frozen=True)
class Plan:
    """A global round: who trains what, over which channels, at what cost.

    Args:
        round: its number, from 0.
        clients: [senders], who takes part, in the order of the network.
        tracking: [senders], who sends what only trackers send.
        node: [senders], the node each reports to.
        draws: h [blocks, clients, antennas]: one block, or one an edge round.
        submodels: what each node trains.
        cost: what it takes.
        lr_share: of the algorithm's step size, what clients use.
    """

    round: int
    clients: IntArray
    tracking: BoolArray
    node: IntArray
    draws: ChannelDraw
    submodels: Submodels
    cost: Cost
    lr_share: float = 1.0

    def without(self, clients: IntArray) -> Plan:
        """The round when these clients have left in the middle of it; its cost stays."""
        stays = ~np.isin(self.clients, clients)
        return replace(
            self,
            clients=self.clients[stays],
            tracking=self.tracking[stays],
            node=self.node[stays],
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

    def plan(self, number: int, there: BoolArray | None = None) -> Plan:
        """Global round ``number``, from its channel draws to its cost.

        Args:
            number: from 0.
            there: [clients], who is there; None: all.
        """
        indices = [number]
        if self.coherence == "edge-round":
            indices = [number * self.edge_rounds + e for e in range(self.edge_rounds)]
        draws = self.network.draws(self.stream.child("channel"), indices)
        stream = self.stream.child("round", number)
        who = draw_participants(self.network, self.per_round, self.tracking, stream, there)
        submodels = self.algorithm.submodels(_RoundContext(self, draws, stream, who))
        cost = self._cost(draws, submodels, who)
        if not np.isfinite(cost.seconds).all():
            slow = int(np.flatnonzero(~np.isfinite(cost.seconds))[0])
            raise ConfigError(
                f"round {number} takes cell {slow} {cost.seconds[slow]} seconds: a client there "
                "has no data rate. Raise snr_db or bandwidth_hz."
            )
        node = self.network.cell_of[who.clients]
        share = self.lr_share(number)
        return Plan(number, who.clients, who.tracking, node, draws, submodels, cost, share)

    def broadcast_seconds(self) -> float:
        """Seconds that the whole model takes to all clients, beside any round."""
        links = [self.links.downlink_bps]
        if self.hierarchical:
            links.append(self.links.backhaul_bps)
        return sum(BITS_PER_ELEMENT * self.spec.size / bps for bps in links if bps is not None)

    @property
    def hierarchical(self) -> bool:
        """Whether there are edge servers between clients and cloud."""
        return self.algorithm.topology == "cells"

    def seconds_per_parameter(self, draws: ChannelDraw, who: Participants) -> FloatArray:
        """Seconds that a parameter costs in a global round; latency is linear in it.

        Args:
            draws: the channels, in blocks that last equally long.
            who: takes part, and tracks.

        Returns:
            [cells].
        """
        active = who.active(self.network.clients)
        vectors = who.vectors(self.algorithm, self.network.clients)
        # An uplink whose seconds do not depend on the channel may leave out the blocks.
        seconds_per_bit = self.uplink.seconds_per_bit(draws, active)
        seconds_per_bit = np.broadcast_to(seconds_per_bit, draws.h.shape[:-1])
        charged = self.uplink.charged(vectors, active, self.network.cell_of)
        with np.errstate(invalid="ignore"):  # who sends nothing takes no time at rate 0
            seconds_per_bit = np.where(charged > 0, charged * seconds_per_bit, 0.0)
        if self.links.downlink_bps is not None:
            down = len(self.algorithm.sends) / self.links.downlink_bps
            seconds_per_bit = seconds_per_bit + down
        edge = seconds_per_parameter(
            draws,
            model_parameters=self.spec.size,
            local_steps=self.local_steps,
            seconds_per_bit=seconds_per_bit,
            bits_per_parameter=BITS_PER_ELEMENT,
            active=active,
        )
        seconds = self.edge_rounds * edge.mean(0)
        if self.hierarchical and self.links.backhaul_bps is not None:
            seconds = seconds + 2 * BITS_PER_ELEMENT / self.links.backhaul_bps  # once, down and up
        return np.asarray(seconds)

    def _cost(self, draws: ChannelDraw, submodels: Submodels, who: Participants) -> Cost:
        network = self.network
        active = who.active(network.clients)
        vectors = who.vectors(self.algorithm, network.clients)
        lengths = submodels.lengths.astype(np.float64)
        seconds = self.seconds_per_parameter(draws, who) * lengths  # (17), (18)
        length = lengths[network.cell_of] * active
        airtime = self.uplink.airtime_per_bit(draws, active) * BITS_PER_ELEMENT * vectors * length
        joules = transmit_joules(network, airtime) + compute_joules(
            network, self.local_steps, length / self.spec.size
        )
        mib = BITS_PER_ELEMENT / 8 / 2**20
        sent = float((vectors * (length + self.uplink.side_elements)).mean())
        down = len(self.algorithm.sends) * float(length.mean())
        return Cost(
            seconds=seconds,
            uplink_mib=self.edge_rounds * mib * sent,
            downlink_mib=self.edge_rounds * mib * down,
            backhaul_mib=2 * mib * float(lengths.mean()) if self.hierarchical else 0.0,
            joules=self.edge_rounds * float(joules.mean()),
        )


@dataclass(frozen=True)
class _RoundContext:
    """What the algorithm may ask for when it hands out submodels."""

    planner: Planner
    draws: ChannelDraw
    stream: Stream
    who: Participants

    @property
    def spec(self) -> ParamSpec:
        return self.planner.spec

    @property
    def nodes(self) -> int:
        return self.planner.network.cells

    def partition(self, scheme: Scheme) -> Partition:
        return self.planner.make_partition(scheme)

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        if partition.scheme != "alternate":
            raise ConfigError(
                'mask_sizes "optimized" needs partition "alternate": with "all" a submodel\'s size '
                'is not linear in its neurons. Choose mask_sizes "uniform".'
            )
        seconds = self.planner.seconds_per_parameter(self.draws, self.who)
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
