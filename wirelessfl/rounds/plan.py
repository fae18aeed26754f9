"""One global round before it is trained: channel draw, submodels, and what it will cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from channels import ChannelDraw, Network
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.costs import Cost, Costs, Links
from wirelessfl.rounds.mask_sizes import mask_size_problem
from wirelessfl.rounds.participants import Participants, draw_participants
from wirelessfl.rounds.settings import TrainingSettings
from wirelessfl.rounds.step_sizes import unchanged
from wirelessfl.submodels import ClientSubmodels, NeuronMap, ParamSpec, Partition, Submodels
from wirelessfl.submodels.partition import Scheme
from wirelessfl.units import BITS_PER_ELEMENT


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
        client_submodels: what each sender trains of its node's model; None: all of it.
    """

    round: int
    clients: IntArray
    tracking: BoolArray
    node: IntArray
    draws: ChannelDraw
    submodels: Submodels
    cost: Cost
    lr_share: float = 1.0
    client_submodels: ClientSubmodels | None = None

    def without(self, clients: IntArray) -> Plan:
        """The round when these clients have left in the middle of it; its cost and draws stay."""
        stays, each = ~np.isin(self.clients, clients), self.client_submodels
        return replace(
            self,
            clients=self.clients[stays],
            tracking=self.tracking[stays],
            node=self.node[stays],
            client_submodels=None if each is None else each.of_rows(np.flatnonzero(stays)),
        )

    def draw(self, edge_round: int) -> ChannelDraw:
        """The channel during an edge round."""
        blocks = self.draws.h
        return ChannelDraw(self.draws.network, blocks[min(edge_round, len(blocks) - 1)])


@dataclass(frozen=True)
class WholeModel:
    """The model of a run, and what submodels may leave out of it.

    Args:
        spec: its parameters.
        partition: its neuron partition by scheme, for submodels of cells.
        neurons: finds all neurons that submodels of clients may leave out.
    """

    spec: ParamSpec
    partition: Callable[[Scheme], Partition]
    neurons: Callable[[], NeuronMap]


@dataclass(frozen=True)
class Participation:
    """How many clients take part in a round.

    Args:
        per_round: S; None: all.
        tracking: how many of these track; None: all.
    """

    per_round: int | None = None
    tracking: int | None = None


@dataclass(frozen=True)
class Planner:
    """Plans rounds; a plan depends on the round's number and the settings alone.

    Args:
        algorithm: hands out the submodels.
        links: cells and clients, and how models and updates get about.
        model: that is trained.
        settings: steps and edge rounds.
        stream: the run's stream.
        participation: how many clients take part.
        lr_share: of the algorithm's step size, what clients use in round ``number``.
    """

    algorithm: Algorithm
    links: Links
    model: WholeModel
    settings: TrainingSettings
    stream: Stream
    participation: Participation = Participation()
    lr_share: Callable[[int], float] = unchanged

    @property
    def network(self) -> Network:
        """Cells, clients, channels."""
        return self.links.network

    @property
    def costs(self) -> Costs:
        """Counts what rounds take."""
        return Costs(self.algorithm, self.links, self.model.spec, self.settings)

    def plan(
        self,
        number: int,
        present: BoolArray | None = None,
        submodels: Submodels | None = None,
    ) -> Plan:
        """Global round ``number``, from its channel draws to its cost.

        Args:
            number: from 0.
            present: [clients], clients present; None: all.
            submodels: what each node trains; None: what the algorithm hands out for this round.
        """
        indices = [number]
        if self.links.coherence == "edge-round":
            edge_rounds = self.settings.edge_rounds
            indices = [number * edge_rounds + e for e in range(edge_rounds)]
        stream = self.stream.child("round", number)
        wanted = self.participation
        who = draw_participants(self.network, wanted.per_round, wanted.tracking, stream, present)
        draws = self.network.draws(self.stream.child("channel"), indices, who.clients)
        context = _RoundContext(self, number, stream, draws, who)
        if submodels is None:
            submodels = self.algorithm.submodels(context)
        each = self.algorithm.client_submodels(context)
        if each is None:
            cost = self.costs.of_nodes(draws, submodels, who)
        else:
            cost = self.costs.of_clients(draws, each, who, submodels)
        if not np.isfinite(cost.seconds).all():
            slow = int(np.flatnonzero(~np.isfinite(cost.seconds))[0])
            raise ConfigError(
                f"round {number + 1} takes cell {slow} {cost.seconds[slow]} seconds: a client "
                "there has no data rate. Raise snr_db or bandwidth_hz."
            )
        node = draws.network.cell_of
        share = self.lr_share(number)
        return Plan(number, who.clients, who.tracking, node, draws, submodels, cost, share, each)

    def redealt(self, merges: int, before: Submodels, cells: Sequence[int]) -> Submodels:
        """What each node trains after a merge of some cells alone.

        Args:
            merges: at the cloud so far, this one included.
            before: what each node had.
            cells: that were merged, in order.
        """
        context = _DealingContext(self, merges, self.stream.child("round", merges))
        return self.algorithm.redealt(context, before, cells)

    def broadcast_seconds(self) -> float:
        """Seconds that the whole model takes to all clients, beside any round."""
        links = [self.links.downlink_bps]
        if self.hierarchical:
            links.append(self.links.backhaul_bps)
        return sum(
            BITS_PER_ELEMENT * self.model.spec.size / bps for bps in links if bps is not None
        )

    @property
    def hierarchical(self) -> bool:
        """Whether there are edge servers between clients and cloud."""
        return self.costs.hierarchical


@dataclass(frozen=True)
class _DealingContext:
    """What the algorithm may ask for when it deals parts of the model."""

    planner: Planner
    number: int
    stream: Stream

    @property
    def spec(self) -> ParamSpec:
        return self.planner.model.spec

    @property
    def nodes(self) -> int:
        return self.planner.network.cells

    @property
    def run_stream(self) -> Stream:
        return self.planner.stream

    @property
    def clients(self) -> int:
        return self.planner.network.clients

    def partition(self, scheme: Scheme) -> Partition:
        return self.planner.model.partition(scheme)

    def neurons(self) -> NeuronMap:
        return self.planner.model.neurons()


@dataclass(frozen=True)
class _RoundContext(_DealingContext):
    """What it may ask for when it hands out submodels for a round."""

    draws: ChannelDraw
    who: Participants

    @property
    def senders(self) -> IntArray:
        return self.who.clients

    @property
    def node(self) -> IntArray:
        return self.draws.network.cell_of

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        return self.planner.costs.max_seconds(self.draws, self.who, lengths)

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
