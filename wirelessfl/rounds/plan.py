"""Plan of a global round, made before training: channel draws, submodels and prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from channels import ChannelDraw, Load, Network
from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.delivery import before_failures
from wirelessfl.rounds.links import Links
from wirelessfl.rounds.mask_sizes import mask_size_problem
from wirelessfl.rounds.participants import Participants, able_clients, draw_participants
from wirelessfl.rounds.price import Price, Pricing
from wirelessfl.rounds.settings import TrainingSettings
from wirelessfl.rounds.step_sizes import unchanged
from wirelessfl.selection import Candidates, Selection
from wirelessfl.selection.candidates import Losses
from wirelessfl.server.ledger import Ledger
from wirelessfl.server.present import RankedClients
from wirelessfl.submodels import ClientSubmodels, NeuronMap, ParamSpec, Partition, Submodels
from wirelessfl.submodels.partition import Scheme
from wirelessfl.units import BITS_PER_ELEMENT
from wirelessfl.uplinks.checked import serving


@dataclass(frozen=True)
class Plan:
    """Plan of a global round: participants, channels, submodels and price.

    Args:
        round: round number, from 0.
        clients: [senders], participating clients, in the order of the network.
        tracking: [senders] boolean, clients that send tracking terms.
        node: [senders], node that each client reports to.
        draws: channel draws of the participating clients, h [blocks, senders, antennas]: one block,
            or one per edge round.
        submodels: submodel of each node.
        price: seconds, bytes and joules of the round.
        lr_share: factor of the algorithm's step size in this round.
        client_submodels: submodel of each client; None if all train the submodel of their node.
        complete: whether no client has left during the round.
        arrivals: [blocks, senders] boolean, updates that arrive in all edge rounds or in each; None
            if all do.
    """

    round: int
    clients: IntArray
    tracking: BoolArray
    node: IntArray
    draws: ChannelDraw
    submodels: Submodels
    price: Price
    lr_share: float = 1.0
    client_submodels: ClientSubmodels | None = None
    complete: bool = True
    arrivals: BoolArray | None = None

    def without(self, clients: IntArray) -> Plan:
        """Remove clients that left during the round; price and channel draws do not change."""
        stays, each = ~np.isin(self.clients, clients), self.client_submodels
        arrivals = self.arrivals
        return replace(
            self,
            clients=self.clients[stays],
            tracking=self.tracking[stays],
            node=self.node[stays],
            client_submodels=None if each is None else each.of_rows(np.flatnonzero(stays)),
            complete=self.complete and bool(stays.all()),
            arrivals=None if arrivals is None else arrivals[:, stays],
        )

    def arrived(self, edge_round: int) -> BoolArray | None:
        """Updates [senders] that arrive in an edge round; None if all do."""
        if self.arrivals is None:
            return None
        found = self.arrivals[min(edge_round, len(self.arrivals) - 1)]
        return None if found.all() else found

    def draw(self, edge_round: int) -> ChannelDraw:
        """Channel draw of an edge round."""
        return self.draws.block(edge_round)

    def beamformers(self, edge_round: int) -> ComplexArray | None:
        """Receive beamformers [nodes, antennas] of an edge round; None if there are none."""
        if not self.complete:  # they were optimised for all clients
            return None
        planned = self.price.served.service.decision.beamformers
        return None if planned is None else planned[min(edge_round, len(planned) - 1)]


@dataclass(frozen=True)
class WholeModel:
    """The full model of a run, and the neurons that submodels can omit.

    Args:
        spec: names and shapes of its parameters.
        partition: returns its neuron partition for a scheme, for submodels of cells.
        neurons: returns all neurons that submodels of clients can omit.
    """

    spec: ParamSpec
    partition: Callable[[Scheme], Partition]
    neurons: Callable[[], NeuronMap]


@dataclass(frozen=True)
class Participation:
    """How many clients take part in a round, and which.

    Args:
        per_round: S; None for all clients.
        tracking: S_tilde, number of participants that send tracking terms; None for all.
        selection: which of the clients take part; None for uniformly random ones, which are drawn
            without arrays over all clients.
        client_joules: energy that a client may spend; None for no limit. A client that has spent it
            no longer takes part.
    """

    per_round: int | None = None
    tracking: int | None = None
    selection: Selection | None = None
    client_joules: float | None = None


@dataclass(frozen=True)
class Planner:
    """Plans rounds; a plan depends only on the round number, the present clients and the settings.

    Args:
        algorithm: assigns the submodels.
        links: network, uplink, downlink and backhaul.
        model: the model to train.
        settings: local steps and edge rounds.
        stream: random stream of the rounds.
        participation: number of participating clients.
        lr_share: maps a round number to the factor of the algorithm's step size.
        run_stream: random stream of what stays fixed during the run: the clients' capacities and
            static masks; None for ``stream``.
        weights: [clients], weights of the clients in their cell's mean; None for equal weights.
    """

    algorithm: Algorithm
    links: Links
    model: WholeModel
    settings: TrainingSettings
    stream: Stream
    participation: Participation = Participation()
    lr_share: Callable[[int], float] = unchanged
    run_stream: Stream | None = None
    weights: FloatArray | None = None

    @property
    def network(self) -> Network:
        """Cells, clients, channels."""
        return self.links.network

    @cached_property
    def pricing(self) -> Pricing:
        """Loads and prices of the rounds."""
        return Pricing(self.algorithm, self.links, self.model.spec, self.settings, self.weights)

    def plan(
        self,
        number: int,
        present: RankedClients | None = None,
        submodels: Submodels | None = None,
        ledger: Ledger | None = None,
        losses: Losses | None = None,
    ) -> Plan:
        """Plan global round ``number``: channel draws, participants, submodels and price.

        Args:
            number: round number, from 0.
            present: clients that are present; None for all.
            submodels: submodel of each node; None to let the algorithm assign them.
            ledger: what the clients have done so far; None at the start of a run.
            losses: evaluates the current model on the samples of clients; None without training.

        Raises:
            ConfigError: a client's data rate is 0, joules are too many, or the algorithm cannot
                assign submodels.
        """
        indices = [number]
        if self.links.coherence == "edge-round":
            edge_rounds = self.settings.edge_rounds
            indices = [number * edge_rounds + e for e in range(edge_rounds)]
        stream = self.stream.child("round", number)
        who = self._participants(number, indices[0], present, ledger, losses)
        draws = self.network.draws(self.stream.child("channel"), indices, who.clients)
        context = _RoundContext(self, number, stream, draws, who)
        if submodels is None:
            submodels = self.algorithm.submodels(context)
        each = self.algorithm.client_submodels(context)
        price = self.pricing.price(number, draws, who, submodels, each, stream)
        if not np.isfinite(price.seconds).all():
            slow = int(np.flatnonzero(~np.isfinite(price.seconds))[0])
            repeats = self.links.failures is not None and self.links.failures.repeats
            never = ", or all of its uploads fail" if repeats else ""
            lost = ', or choose on_failure "lost"' if repeats else ""
            raise ConfigError(
                f"round {number + 1} takes {price.seconds[slow]} seconds in cell {slow}: a "
                f"client's data rate is 0{never}. Raise snr_db or bandwidth_hz{lost}."
            )
        if not self.pricing.access.costly and not np.isfinite(price.joules):
            raise ConfigError(
                f"round {number + 1} uses {price.joules} joules per client: lower "
                "transmit_power_w or switched_capacitance, or raise snr_db or bandwidth_hz."
            )
        return Plan(
            number,
            who.clients,
            who.tracking,
            draws.network.cell_of,
            draws,
            submodels,
            price,
            self.lr_share(number),
            each,
            arrivals=price.served.arrived,
        )

    def able(self, present: RankedClients | None, ledger: Ledger | None) -> RankedClients | None:
        """The present clients that have energy left; None for all clients."""
        limit = self.participation.client_joules
        if limit is None or ledger is None:
            return present
        return able_clients(self.network.clients, ledger.joules, limit, present)

    def exhausted(self, present: RankedClients | None, ledger: Ledger | None) -> str | None:
        """Why none of the present clients can take part in a further round; None if one can."""
        limit, able = self.participation.client_joules, self.able(present, ledger)
        if limit is None or able is None or able.below([self.network.clients])[0] > 0:
            return None
        return f"all clients have spent client_joules={limit:g}"

    def _participants(
        self,
        number: int,
        index: int,
        present: RankedClients | None,
        ledger: Ledger | None,
        losses: Losses | None,
    ) -> Participants:
        """The clients that take part in round ``number``; ``index`` is its first channel block."""
        network, wanted = self.network, self.participation
        stream = self.stream.child("round", number)
        spent = self.exhausted(present, ledger)
        if spent is not None:
            raise ConfigError(
                f"round {number + 1} has no client: {spent}. Raise client_joules, or end the run "
                "before."
            )
        present = self.able(present, ledger)
        selection = wanted.selection
        if selection is None:
            return draw_participants(network, wanted.per_round, wanted.tracking, stream, present)

        def select(clients: IntArray, node: IntArray, counts: IntArray) -> IntArray:
            def draw() -> ChannelDraw:
                return network.draws(self.stream.child("channel"), [index], clients)

            candidates = Candidates(
                round=number,
                clients=clients,
                node=node,
                counts=counts,
                network=network.of(clients),
                access=before_failures(self.pricing.access, self.links.failures),
                radio=self.links.uplink.radio,
                ledger=Ledger(network.clients) if ledger is None else ledger,
                stream=stream.child("participants"),
                weights=None if self.weights is None else self.weights[clients],
                find_draw=lambda: draw().block(0),
                find_load=lambda: self._load_of(clients, number, stream, draw()),
                find_losses=_untrained if losses is None else losses,
            )
            return selection.select(candidates)

        return draw_participants(
            network, wanted.per_round, wanted.tracking, stream, present, select
        )

    def _load_of(self, clients: IntArray, number: int, stream: Stream, draws: ChannelDraw) -> Load:
        """Load of ``clients`` with the submodels that they have if all of them take part."""
        who = Participants(clients, np.ones(len(clients), dtype=np.bool_))
        context = _RoundContext(self, number, stream, draws, who)
        each = self.algorithm.client_submodels(context)
        if each is None:
            lengths = self.algorithm.submodels(context).lengths[draws.network.cell_of]
        else:
            lengths = each.lengths
        return self.pricing.load(who, lengths.astype(np.float64))

    def redealt(self, merges: int, before: Submodels, cells: Sequence[int]) -> Submodels:
        """Submodel of each node after a merge of some of the cells.

        Args:
            merges: number of merges at the cloud, including this one.
            before: submodel of each node before this merge.
            cells: the merged cells, in order.
        """
        context = _DealingContext(self, merges, self.stream.child("round", merges))
        return self.algorithm.redealt(context, before, cells)

    def broadcast_seconds(self) -> float:
        """Seconds to send the full model to all clients, outside of rounds."""
        links = [self.links.downlink_bps]
        if self.hierarchical:
            links.append(self.links.backhaul_bps)
        return sum(
            BITS_PER_ELEMENT * self.model.spec.size / bps for bps in links if bps is not None
        )

    @property
    def hierarchical(self) -> bool:
        """Whether there are edge servers between clients and cloud."""
        return self.pricing.hierarchical


def _untrained(clients: IntArray, samples: int | None) -> FloatArray:
    """Refuse losses where no model is trained.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(
        "select asks for losses of the current model, so the costs of a round depend on training: "
        "train instead of pricing, or choose another selection."
    )


@dataclass(frozen=True)
class _DealingContext:
    """Context that an algorithm needs to assign submodels."""

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
        planner = self.planner
        return planner.stream if planner.run_stream is None else planner.run_stream

    @property
    def capacity_stream(self) -> Stream:
        return self.run_stream

    @property
    def clients(self) -> int:
        return self.planner.network.clients

    def partition(self, scheme: Scheme) -> Partition:
        return self.planner.model.partition(scheme)

    def neurons(self) -> NeuronMap:
        return self.planner.model.neurons()


@dataclass(frozen=True)
class _RoundContext(_DealingContext):
    """Context that an algorithm needs to assign the submodels of a round."""

    draws: ChannelDraw
    who: Participants

    @property
    def senders(self) -> IntArray:
        return self.who.clients

    @property
    def node(self) -> IntArray:
        return self.draws.network.cell_of

    @property
    def coupled(self) -> bool:
        return self.planner.pricing.sizing.coupled

    def seconds_of(self, lengths: IntArray) -> FloatArray:
        return self.planner.pricing.seconds_of(self.draws, self.who, lengths)

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        return self.planner.pricing.client_seconds(self.draws, self.who, lengths)

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        pricing, draws, who = self.planner.pricing, self.draws, self.who
        empty = np.bincount(self.node, minlength=self.nodes) == 0

        def seconds(sizes: IntArray) -> FloatArray:
            found = pricing.node_seconds(draws, who, partition.lengths(sizes))
            for cell in np.flatnonzero(empty):
                # A cell without a client takes no time, but must get the smallest submodel: count
                # that of the slowest cell with its size.
                same = np.repeat(partition.lengths(sizes[:, cell])[:, None], len(empty), 1)
                found[:, cell] = pricing.node_seconds(draws, who, same).max(-1)
            return found

        with serving(f"{pricing.title}, round {self.number + 1}"):
            solution = mask_size_problem(partition, seconds, self.nodes, size_cap=cap).solve()
        if solution.value is None:
            with serving(f"{pricing.title}, round {self.number + 1}"):
                # An access with a deadline explains why cells never end.
                even = partition.lengths(np.full(self.nodes, partition.width // self.nodes))
                pricing.sizing.serve(pricing.load(who, even[self.node]), draws)
            raise ConfigError(
                f"mask sizes: {solution.message}. Raise size_cap, or use fewer cells."
            )
        return [int(size) for size in np.asarray(solution.value)]
