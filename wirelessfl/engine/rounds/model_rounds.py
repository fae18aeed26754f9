"""The handlers of one model, and its synchronous rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wirelessfl.air.participants import RankedClients
from wirelessfl.air.plan import Plan
from wirelessfl.engine.events import Arrived, Decision, Event, Exhausted, Give, Merge, Report
from wirelessfl.engine.loop import Handler, RowFields
from wirelessfl.engine.rounds.planner import NoClientError, Planner
from wirelessfl.engine.rounds.redesign import Redesigns
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.learner import Learner
from wirelessfl.engine.server.ledger import Ledger, Totals
from wirelessfl.training.rules import State

if TYPE_CHECKING:
    from torch import Tensor


class OneModel(Handler):
    """Carries out the decisions of a schedule for one model.

    Args:
        planner: plans rounds and their durations.
        learner: trains and merges, and contains the server.
        clock: virtual clock.
        ledger: costs of the rounds.
    """

    def __init__(self, planner: Planner, learner: Learner, clock: Clock, ledger: Ledger) -> None:
        super().__init__([learner])
        self.planner, self.learner, self.clock, self.ledger = planner, learner, clock, ledger

    def under_way(self) -> Mapping[int, Plan]:
        """Plans of the rounds in progress of single cells, by cell: none."""
        return {}

    def fields(self, report: Report) -> RowFields:
        """Number of the round, and costs so far."""
        return RowFields({"round": report.round}, self.costs(), {})

    def costs(self) -> dict[str, Any]:
        """Running totals, the energy of the client that uses most, and charges of batteries."""
        limits, clients = self.planner.participation.energy, self.planner.network.clients
        charges = {} if limits is None else limits.row(clients, self.ledger.charges, self.clock.now)
        return self.ledger.row() | charges

    def tensors(self) -> dict[str, Tensor]:
        """Costs of the clients, for a checkpoint."""
        return self.ledger.tensors()

    def snapshot(self) -> dict[str, Any]:
        """Running totals."""
        return {"totals": self.ledger.totals.row()}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint, after learner, schedule and clock."""
        self.ledger.totals = Totals(**state["totals"])
        self.ledger.restore(tensors)


@dataclass(frozen=True)
class Later:
    """Clock entry: a client may be able to take part now in a round that had none before."""

    number: int


@dataclass(frozen=True, eq=False)
class RoundInProgress:
    """A round that clients train and send.

    Args:
        plan: plan of the round.
        broadcast: the cloud's state when the round was issued.
        seconds: its duration.
        ends: simulated time at which all updates have arrived, in seconds.
    """

    plan: Plan
    broadcast: State
    seconds: float
    ends: float


class ModelRounds(OneModel):
    """Rounds of one model: each is planned when it starts, and trained when it is merged.

    Args:
        planner: plans rounds and their durations.
        learner: trains and merges.
        clock: virtual clock.
        ledger: costs of the rounds.
        redesigns: decide how rounds train and send; None if all do as configured.
        trial: whether these are trial rounds of sessions.
    """

    def __init__(
        self,
        planner: Planner,
        learner: Learner,
        clock: Clock,
        ledger: Ledger,
        redesigns: Redesigns | None = None,
        *,
        trial: bool = False,
    ) -> None:
        super().__init__(planner, learner, clock, ledger)
        self.redesigns, self.trial = redesigns, trial
        self.present: RankedClients | None = None
        """Clients that are present; None for all."""
        self.delay = 0.0
        """Seconds before the next round to be merged starts."""
        self.in_progress: dict[int, RoundInProgress] = {}
        self.merged_at = 0.0
        """Simulated time of the last merge, which the end of the run may follow."""
        self._due: list[int] = []

    def carry_out(self, decision: Decision) -> Event | None:
        """Start a round, or train and merge it; say so if no client can take part any more."""
        match decision:
            case Give(number):
                self._due.append(number)
            case Merge(number):
                self.merge(number)
                self.ended = self.planner.exhausted(None, self.ledger, self.clock.now)
                return None if self.ended is None else Exhausted()
        return None

    def merge(self, number: int, left: Sequence[int] = ()) -> Plan:
        """Train a round with the clients that have not ``left``, merge it, and return its plan."""
        entry = self.in_progress.pop(number)
        plan = entry.plan.without(np.array(left, dtype=np.int64)) if left else entry.plan
        self.ledger.count(plan, trial=self.trial)
        if len(plan.clients):
            losses = self.learner.learn(plan, entry.broadcast)
            if losses is not None:
                known = ~np.isnan(losses)
                self.ledger.know(plan.clients[known], losses[known])
        self.merged_at, self.delay = self.clock.now, 0.0
        return entry.plan

    def settle(self) -> list[int]:
        """Plan the issued rounds, with the model after all events at this time.

        Returns:
            Their numbers.
        """
        started, self._due = self._due, []
        for number in started:
            if self.redesigns is not None:
                self.redesigns.settle(number)
                self.use_decision()
            try:
                plan = self.planner.plan(
                    number,
                    self.present,
                    ledger=self.ledger,
                    losses=self.learner.losses,
                    now=self.clock.now,
                )
            except NoClientError as nobody:
                self._wait(number, nobody)
                continue
            seconds = float(plan.price.seconds.max()) + self.delay
            self.in_progress[number] = RoundInProgress(
                plan, self.learner.server.cloud, seconds, self.clock.now + seconds
            )
            self.clock.after(seconds, Arrived(number, self.trial))
        return started

    def happened(self, what: Any) -> Event | None:
        """Process an entry of the clock; a round that has waited is planned now."""
        if type(what) is not Later:
            event: Event = what
            return event
        self._due.append(what.number)
        return None

    def _wait(self, number: int, nobody: NoClientError) -> None:
        """Plan the round when a client is charged; if none ever is, the run ends."""
        limits, self.ledger.charges = self.planner.participation.energy, nobody.charges
        assert limits is not None, "clients lack energy"
        when = limits.next_charged(nobody.charges, self.clock.now)
        if when < np.inf:
            self.clock.at(when, Later(number))
        elif not self.ledger.rounds:
            raise nobody
        else:
            self.ended = limits.why(nobody.charges)
            self.clock.after(0.0, Exhausted())

    def use_decision(self) -> None:
        """Plan and train the next rounds as the last redesign has decided."""
        if self.redesigns is not None:
            self.planner = planner = self.redesigns.planner()
            self.learner.local = replace(self.learner.local, steps=planner.settings.steps)
            self.learner.server.uplink = planner.links.uplink

    def attach(self, rows: list[dict[str, Any]]) -> None:
        """Set the run's rows so far, from which redesigns decide."""
        if self.redesigns is not None:
            self.redesigns.rows = rows

    def fields(self, report: Report) -> RowFields:
        """Number of the round, what a redesign has decided about it, and costs so far.

        Rows are written before each redesign, so their rounds since the row before are of one
        design.
        """
        head: dict[str, Any] = {"round": report.round}
        if self.redesigns is not None:
            settings = self.redesigns.of_round(report.round - 1)
            planner = self.redesigns.planner_of(settings)
            head |= {
                "local_steps": settings.local_steps,
                "edge_rounds": settings.edge_rounds,
                "clients_per_round": planner.participation.per_round or planner.network.clients,
            }
        return RowFields(head, self.costs(), {})

    def snapshot(self) -> dict[str, Any]:
        """Time of the last merge, and the decisions of redesigns."""
        decided = {} if self.redesigns is None else {"decisions": self.redesigns.snapshot()}
        return {**super().snapshot(), "merged_at": self.merged_at, **decided}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint, after learner, schedule and clock."""
        super().restore(tensors, state)
        self.merged_at = state["merged_at"]
        if self.redesigns is not None:
            self.redesigns.restore(state["decisions"])
            self.use_decision()
