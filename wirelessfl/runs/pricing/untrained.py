"""What replaces training where only the costs of a run are wanted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.air.links import EQUAL_SHARES, TrainingSettings
from wirelessfl.air.plan import Plan
from wirelessfl.air.uplinks import Uplink
from wirelessfl.algorithms.algorithm import Method
from wirelessfl.algorithms.warm_starts.warm_start import Initial, Opening, WarmStart
from wirelessfl.engine.events import Decision, Event, Report, Scheduler, Stop
from wirelessfl.engine.rounds.asynchronous_cells import AsynchronousCells
from wirelessfl.engine.server.learner import RoundTraining, Totals
from wirelessfl.engine.server.ledger import Ledger
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.server.weights import Weights
from wirelessfl.training.cohort import Penalty
from wirelessfl.training.rules import State


@dataclass
class WithoutJoules(Totals):
    """Running sums without joules, whose beamformers over the air take time to optimise."""

    def add(self, plan: Plan) -> None:
        """Add the traffic of a round."""
        self.uplink_mib += plan.price.uplink_mib
        self.downlink_mib += plan.price.downlink_mib
        self.backhaul_mib += plan.price.backhaul_mib
        self.lost += plan.price.lost
        self.silent += plan.price.silent
        self.count_late(plan)

    def row(self) -> dict[str, float]:
        """The sums that are counted: without joules, and without those of equal shares."""
        fields = super().row().items()
        return {name: v for name, v in fields if "joules" not in name and name not in EQUAL_SHARES}


class UntrainedServer(Server):
    """A server without a model, of rounds and of asynchronous cells whose costs are counted.

    Args:
        algorithm: algorithm that defines the payloads.
        uplink: how updates cross the air.
        weights: weights of clients in means.
    """

    def __init__(self, algorithm: Method, uplink: Uplink, weights: Weights) -> None:
        self.algorithm, self.rule = algorithm, algorithm.rule
        self.uplink, self.weights = uplink, weights
        self.version, self.cloud, self.nodes = 0, {}, {}


class UntrainedRounds(RoundTraining):
    """Rounds whose costs are counted, but whose clients do not train.

    Args:
        server: server of the model, which does not change.
        settings: local steps, edge rounds and cut-off.
        joules: whether energy is counted.
    """

    def __init__(self, server: Server, settings: TrainingSettings, *, joules: bool) -> None:
        self.server, self.settings = server, settings
        self.totals = (Totals if joules else WithoutJoules).of(server.uplink, settings)
        self.counts_joules = joules
        self.ledger = Ledger(len(server.weights.node_of))
        self.penalties, self.teacher = (), None
        self.metrics = {}
        self.client_losses = None
        self.log = None
        self.node_seconds: list[FloatArray] = []
        """Seconds [nodes] of each round at each node."""
        self.first: Plan | None = None
        """The first plan whose costs were counted."""

    def branch(self, stream: Stream) -> UntrainedRounds:
        """Return a copy for trial rounds."""
        twin = copy.copy(self)
        twin.server = self.server.branch()
        twin.totals = type(self.totals).of(self.server.uplink, self.settings)
        twin.ledger, twin.log = Ledger(self.ledger.clients), None
        twin.node_seconds = []
        return twin

    def count(self, plan: Plan, *, trial: bool = False) -> None:
        """Count the costs of a round."""
        self.first = self.first or plan
        super().count(plan, trial=trial)

    def train(self, plan: Plan, broadcast: State) -> None:
        """Count the costs of a round, which is not trained."""
        self.count(plan)
        self.node_seconds.append(plan.price.seconds)


class UntrainedCells(AsynchronousCells):
    """Asynchronous cells whose rounds are counted, but not trained."""

    training: UntrainedRounds

    def _train(self, cells: Sequence[int]) -> None:
        seconds = np.full(self.planner.network.cells, np.nan)
        for cell in cells:
            plan = self.plan(cell)
            self.training.count(plan)
            seconds[cell] = plan.price.seconds[cell]
        self.training.node_seconds.append(seconds)
        self.training.server.version += 1


@dataclass(frozen=True)
class UntrainedStart(WarmStart):
    """The trial rounds and teachers of a warm start, without its models.

    Args:
        original: the warm start.
    """

    original: WarmStart = field(kw_only=True)

    def trials(self, session: int) -> int:
        """Number of trial rounds of the warm start."""
        return self.original.trials(session)

    def initial(self, opening: Opening) -> Initial:
        """The latest model."""
        return Initial(opening.latest)

    def penalties(self, session: int, labels_before: tuple[int, ...]) -> tuple[Penalty, ...]:
        """Loss terms of the warm start, for which a teacher is sent."""
        return self.original.penalties(session, labels_before)


@dataclass(frozen=True)
class Until:
    """Ends a schedule after the first report for which ``ended`` is true.

    Args:
        schedule: the schedule, which reports each round.
        ended: whether a report is the last one.
    """

    schedule: Scheduler
    ended: Callable[[Report], bool]

    def decide(self, event: Event) -> list[Decision]:
        """The decisions of the schedule, up to the report of the last round."""
        decisions = self.schedule.decide(event)
        for place, decision in enumerate(decisions):
            if isinstance(decision, Report) and self.ended(decision):
                return [*decisions[: place + 1], Stop()]
        return decisions

    def snapshot(self) -> dict[str, object]:
        """The state of the schedule."""
        return self.schedule.snapshot()

    def restore(self, state: dict[str, object]) -> None:
        """Continue from a snapshot."""
        self.schedule.restore(state)
