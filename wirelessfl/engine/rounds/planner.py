"""Plans the global rounds of a run: channel draws, participants, submodels and prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from channels import ChannelDraw, Load, Network
from channels.arrays import FloatArray, IntArray
from channels.by_client import ByKind
from channels.delay_profile import independent
from channels.moving import Moving
from channels.streams import Stream
from wirelessfl.air.batteries import Charges
from wirelessfl.air.delivery import before_failures
from wirelessfl.air.links import Links, TrainingSettings
from wirelessfl.air.participants import Participants, RankedClients, draw_participants
from wirelessfl.air.plan import Learnt, Plan, WholeModel
from wirelessfl.air.round_price import Pricing
from wirelessfl.algorithms import HFedAvg, assigner_of, rule_of
from wirelessfl.algorithms.algorithm import Method
from wirelessfl.algorithms.assigners import Assigner
from wirelessfl.algorithms.step_sizes import unchanged
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.rows import BITS_PER_ELEMENT
from wirelessfl.engine.rounds.contexts import Context, RoundDurations, SenderContext, round_context
from wirelessfl.engine.selection import Candidates
from wirelessfl.engine.selection.selection import Losses, Participation
from wirelessfl.engine.server.ledger import Ledger
from wirelessfl.models.submodels import Submodels


class NoClientError(ConfigError):
    """No client can take part in a round.

    Args:
        message: the round, and why.
        charges: the batteries, after clients have declined.
    """

    def __init__(self, message: str, charges: Charges) -> None:
        super().__init__(message)
        self.charges = charges


@dataclass(frozen=True)
class Planner:
    """Plans rounds; a plan depends on the round number, the present clients and the settings.

    With an energy budget, or a selection that needs them, it also depends on the ledger of the
    clients and on their losses.

    Args:
        algorithm: defines the payloads; an algorithm may bring its own assigner of submodels.
        links: network, uplink, downlink and backhaul.
        model: the model to train.
        settings: local steps and edge rounds.
        stream: random stream of the rounds.
        participation: number of participating clients.
        lr_share: maps a round number to the factor of the algorithm's step size.
        run_stream: random stream of what stays fixed during the run: the clients' capacities and
            static masks; None for ``stream``.
        weights: [clients], weights of the clients in their cell's mean; None for equal weights.
        chosen: assigner of an algorithm that brings none; None for full models.
        first_block: a round, and the index of its first channel block, if each edge round has one;
            the rounds from there on have E blocks each.
    """

    algorithm: Method
    links: Links
    model: WholeModel
    settings: TrainingSettings
    stream: Stream
    participation: Participation = field(default_factory=Participation)
    lr_share: Callable[[int], float] = unchanged
    run_stream: Stream | None = None
    weights: FloatArray | None = None
    first_block: tuple[int, int] = (0, 0)
    chosen: Assigner | None = None

    def sampling(self, stream: Stream, blocks: int) -> Planner:
        """The planner of a sample of rounds, whose fading is independent.

        Args:
            stream: randomness of participants and channels.
            blocks: number of blocks over which the positions of moving clients are spread.
        """
        links, fading = self.links, self.network.fading
        sampled = fading.sampled(blocks) if isinstance(fading, Moving) else independent(fading)
        if sampled is not fading:
            links = replace(links, network=replace(self.network, fading=sampled))
        return replace(self, links=links, stream=stream, run_stream=self._run_stream)

    @property
    def assigner(self) -> Assigner:
        """Who trains which neurons."""
        return self.chosen or assigner_of(self.algorithm)

    @property
    def network(self) -> Network:
        """Cells, clients, channels."""
        return self.links.network

    @cached_property
    def pricing(self) -> Pricing:
        """Loads and prices of the rounds."""
        return Pricing(
            rule_of(self.algorithm),
            self.hierarchical,
            self.links,
            self.model.spec,
            self.settings,
            self.weights,
        )

    def plan(
        self,
        number: int,
        present: RankedClients | None = None,
        submodels: Submodels | None = None,
        ledger: Ledger | None = None,
        losses: Losses | None = None,
        now: float = 0.0,
    ) -> Plan:
        """Plan global round ``number``: channel draws, participants, submodels and price.

        Args:
            number: round number, from 0.
            present: clients that are present; None for all.
            submodels: submodel of each node; None to let the assigner choose them.
            ledger: what the clients have done so far; None at the start of a run.
            losses: evaluates the current model on the samples of clients; None without training.
            now: simulated time at which the round starts, s, which batteries need.

        Raises:
            NoClientError: no present client has energy for the round.
        """
        limits, charges = self.participation.energy, Charges() if ledger is None else ledger.charges

        def choose() -> tuple[Participants, Network, Learnt | None]:
            who, learnt = self._participants(number, present, ledger, losses, charges, now)
            network = self.network.served(self.blocks(number)[0], who.clients)
            if self.network.hands_over:  # clients are sorted by the cell that serves them
                who = who.of_rows(np.searchsorted(who.clients, network.numbers))
            return who, network, learnt

        who, network, learnt = choose()
        plan = self._plan_of(number, who, network, submodels)
        if limits is None or limits.capacity is None:
            return replace(plan, learnt=learnt)
        # Those whose batteries are short decline, and the round takes place without them.
        while (short := limits.short(charges, who.clients, plan.price.client_joules, now)).any():
            need = plan.price.client_joules[short]
            charges = limits.after(charges, who.clients[short], now, need=need)
            who = who.of_rows(~short)
            if len(who.clients):
                network = network.of(who.clients)
            else:
                who, network, learnt = choose()
            plan = self._plan_of(number, who, network, submodels)
        charges = limits.after(charges, who.clients, now, spent=plan.price.client_joules)
        return replace(plan, learnt=learnt, charges=charges)

    def _plan_of(
        self, number: int, who: Participants, network: Network, submodels: Submodels | None
    ) -> Plan:
        """The plan of a round of these participants, which are the clients of ``network``."""
        indices = self.blocks(number)
        stream = self.stream.child("round", number)
        draws = network.draws(self.channel_stream, indices)
        context = self._context(number, stream, draws, who)
        if submodels is None:
            submodels = self.assigner.submodels(context)
        client_submodels = self.assigner.client_submodels(context)
        price = self.pricing.price(number, draws, who, submodels, client_submodels, stream)
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
            round=number,
            clients=who.clients,
            tracking=who.tracking,
            node=draws.network.cell_of,
            submodels=submodels,
            lr_share=self.lr_share(number),
            client_submodels=client_submodels,
            draws=draws,
            price=price,
            arrivals=price.served.arrived,
            edge_rounds=self.settings.edge_rounds,
        )

    def blocks(self, number: int) -> list[int]:
        """Indices of the channel blocks of round ``number``: one, or one for each edge round."""
        if self.links.coherence != "edge-round":
            return [number]
        edge_rounds, (first, block) = self.settings.edge_rounds, self.first_block
        block += (number - first) * edge_rounds
        return [block + e for e in range(edge_rounds)]

    @property
    def channel_stream(self) -> Stream:
        """Random stream of the channels."""
        return self.stream.child("channel")

    def able(
        self, present: RankedClients | None, ledger: Ledger | None, now: float = 0.0
    ) -> RankedClients | None:
        """The present clients that have energy left; None for all clients."""
        return self._able(present, ledger, None if ledger is None else ledger.charges, now)

    def _able(
        self,
        present: RankedClients | None,
        ledger: Ledger | None,
        charges: Charges | None,
        now: float,
    ) -> RankedClients | None:
        limits = self.participation.energy
        if limits is None or charges is None:
            return present
        spent = None if ledger is None or limits.budget is None else ledger.joules
        return limits.able(self.network.clients, spent, charges, now, present)

    def exhausted(
        self, present: RankedClients | None, ledger: Ledger, now: float = 0.0
    ) -> str | None:
        """Why none of the present clients ever takes part in a further round; None if one can."""
        limits, able = self.participation.energy, self.able(present, ledger, now)
        if limits is None or able is None or able.below([self.network.clients])[0] > 0:
            return None
        waits = limits.next_charged(ledger.charges, now) < np.inf
        return None if waits else limits.why(ledger.charges)

    def _participants(
        self,
        number: int,
        present: RankedClients | None,
        ledger: Ledger | None,
        losses: Losses | None,
        charges: Charges,
        now: float,
    ) -> tuple[Participants, Learnt | None]:
        """The clients that take part in round ``number``, and what their selection has learnt."""
        network, participation, index = self.network, self.participation, self.blocks(number)[0]
        stream, limits = self.stream.child("round", number), participation.energy
        here, present = present, self._able(present, ledger, charges, now)
        if present is not None and not present.below([network.clients])[0]:
            why = "none is available" if limits is None else limits.why(charges)
            remedies = [] if limits is None else [f"raise {name}" for name in limits.names]
            remedies += [] if here is None else ["make more clients available"]
            remedy = ", ".join([*remedies, "or end the run before"])
            raise NoClientError(
                f"round {number + 1} has no client: {why}. {remedy[0].upper()}{remedy[1:]}.",
                charges,
            )
        selection = participation.selection
        if selection is None:
            who = draw_participants(
                network, participation.per_round, participation.tracking, stream, present
            )
            return who, None
        if ledger is None:
            ledger = Ledger(network.clients)
        learnt = Learnt({}, ())

        def select(clients: IntArray, node: IntArray, counts: IntArray) -> IntArray:
            nonlocal learnt

            asked: list[tuple[IntArray, FloatArray]] = []

            def draw(some: IntArray) -> ChannelDraw:
                return network.draw(self.channel_stream, index, some)

            def measure(some: IntArray, samples: int | None) -> FloatArray:
                values = (_untrained if losses is None else losses)(some, samples)
                asked.append((some, values))
                return values

            candidates = Candidates(
                round=number,
                clients=clients,
                node=node,
                counts=counts,
                network=network.of(clients),
                access=before_failures(self.pricing.access, self.links.failures),
                radio=self.links.uplink.radio,
                ledger=ledger,
                stream=stream.child("participants"),
                weights=None if self.weights is None else self.weights[clients],
                find_draw=draw,
                find_load=lambda: self._load_of(clients, number, stream, index),
                find_losses=measure,
                state={name: value.copy() for name, value in ledger.state.items()},
            )
            chosen = selection.select(candidates)
            learnt = Learnt(candidates.state, asked)
            return chosen

        who = draw_participants(
            network, participation.per_round, participation.tracking, stream, present, select
        )
        return who, learnt

    def _load_of(self, clients: IntArray, number: int, stream: Stream, index: int) -> Load:
        """Load of ``clients`` with the submodels that they have if all of them take part.

        ``index`` is the round's first channel block.
        """
        who = Participants(clients, np.ones(len(clients), dtype=np.bool_))
        node = self.network.of(clients).cell_of

        def draws() -> ChannelDraw:
            return self.network.draws(self.channel_stream, [index], clients)

        durations = RoundDurations(self.pricing, draws, who, number, node)
        context = round_context(self.model, self._run_stream, stream, durations)
        per_client = self.assigner.client_submodels(context)
        lengths = (
            self.assigner.submodels(context).lengths[node]
            if per_client is None
            else per_client.lengths
        )
        return self.pricing.load(who, lengths.astype(np.float64))

    def redealt(self, merges: int, before: Submodels, cells: Sequence[int]) -> Submodels:
        """Submodel of each node after a merge of some of the cells.

        Args:
            merges: number of merges at the cloud, including this one.
            before: submodel of each node before this merge.
            cells: the merged cells, in order.
        """
        context = Context(
            model=self.model,
            nodes=self.network.cells,
            clients=self.network.clients,
            run_stream=self._run_stream,
            number=merges,
            stream=self.stream.child("round", merges),
        )
        return self.assigner.redealt(context, before, cells)

    @property
    def _run_stream(self) -> Stream:
        return self.stream if self.run_stream is None else self.run_stream

    def _context(
        self, number: int, stream: Stream, draws: ChannelDraw, who: Participants
    ) -> SenderContext[RoundDurations]:
        durations = RoundDurations.of(self.pricing, draws, who, number)
        return round_context(self.model, self._run_stream, stream, durations)

    def broadcast_seconds(self) -> float:
        """Seconds to send the full model to all clients, outside of rounds."""
        down = self.links.downlink_bps
        links = [float(down.whole().min()) if isinstance(down, ByKind) else down]
        if self.hierarchical:
            links.append(self.links.backhaul_bps)
        return sum(
            BITS_PER_ELEMENT * self.model.spec.size / bps for bps in links if bps is not None
        )

    @property
    def hierarchical(self) -> bool:
        """Whether there are edge servers between clients and cloud."""
        return isinstance(self.algorithm, HFedAvg)


def _untrained(clients: IntArray, samples: int | None) -> FloatArray:
    """Refuse losses where no model is trained."""
    raise ConfigError(
        "select asks for losses of the current model, so the costs of a round depend on training: "
        "train instead of pricing, or choose another selection."
    )
