"""The handlers of one model, and its synchronous rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wirelessfl.air.participants import PresentClients, RankedClients
from wirelessfl.air.plan import Plan
from wirelessfl.engine.events import Arrived, Decision, Event, Exhausted, Give, Merge, Report
from wirelessfl.engine.loop import Handler, RowFields
from wirelessfl.engine.rounds.planner import NoClientError, Planner
from wirelessfl.engine.rounds.redesign import Redesigns
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.learner import Learner
from wirelessfl.engine.server.ledger import Ledger, Totals
from wirelessfl.engine.sessions.attendance import Churn, PresenceChanged
from wirelessfl.engine.sessions.processes import Change
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
        availability: when clients are available; None for always.
    """

    def __init__(
        self,
        planner: Planner,
        learner: Learner,
        clock: Clock,
        ledger: Ledger,
        availability: Churn | None = None,
    ) -> None:
        super().__init__([learner])
        self.planner, self.learner, self.clock, self.ledger = planner, learner, clock, ledger
        self.availability = availability

    def start(self) -> None:
        """Put the next change of the available clients on the clock."""
        if self.availability is not None:
            self.availability.start()

    def under_way(self) -> Mapping[int, Plan]:
        """Plans of the rounds in progress of single cells, by cell: none."""
        return {}

    def fields(self, report: Report) -> RowFields:
        """Number of the round, and costs so far."""
        return RowFields({"round": report.round}, self.costs(), {})

    def costs(self) -> dict[str, Any]:
        """Running totals, the energy of the client that uses most, and charges of batteries.

        Also the number of available clients, if they are not always.
        """
        limits, clients = self.planner.participation.energy, self.planner.network.clients
        charges = {} if limits is None else limits.row(clients, self.ledger.charges, self.clock.now)
        available, presence = self.availability, dict[str, int]()
        if available is not None:
            presence["available"] = int(available.present.sum())
        return self.ledger.row() | charges | presence

    def tensors(self) -> dict[str, Tensor]:
        """Costs of the clients, for a checkpoint."""
        return self.ledger.tensors()

    def snapshot(self) -> dict[str, Any]:
        """Running totals, and changes of availability."""
        available = self.availability
        presence = {} if available is None else {"availability": available.snapshot()}
        return {"totals": self.ledger.totals.row(), **presence}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint, after learner, schedule and clock."""
        self.ledger.totals = Totals(**state["totals"])
        self.ledger.restore(tensors)
        if self.availability is not None:
            self.availability.restore(state["availability"])


@dataclass(frozen=True)
class Later:
    """Clock entry: a client may be able to take part now in the round that waits."""


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
        availability: when clients are available; None for always.
        trial: whether these are trial rounds of sessions.
    """

    def __init__(
        self,
        planner: Planner,
        learner: Learner,
        clock: Clock,
        ledger: Ledger,
        redesigns: Redesigns | None = None,
        availability: Churn | None = None,
        *,
        trial: bool = False,
    ) -> None:
        super().__init__(planner, learner, clock, ledger, availability)
        self.redesigns, self.trial = redesigns, trial
        self.present: RankedClients | None = None
        """Clients that are present; None for all."""
        if availability is not None:
            self.present = PresentClients(availability.present)
        self._waits: int | None = None
        """Number of the round that waits for a client."""
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
                self.merge(number, self._departed(number))
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
                reported = ~np.isnan(losses)
                self.ledger.know(plan.clients[reported], losses[reported])
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
            if self.availability is not None:
                self._look()
            try:
                plan = self.planner.plan(
                    number,
                    self.present,
                    ledger=self.ledger,
                    losses=self.learner.losses,
                    now=self.clock.now,
                )
            except NoClientError as error:
                self._wait(number, error)
                continue
            self._waits = None
            seconds = float(plan.price.seconds.max()) + self.delay
            self.in_progress[number] = RoundInProgress(
                plan, self.learner.server.cloud, seconds, self.clock.now + seconds
            )
            self.clock.after(seconds, Arrived(number, self.trial))
            if self.availability is not None:
                self.availability.round_started(number, seconds)
        return started

    def _departed(self, number: int) -> list[int]:
        """Clients that have left before the end of the round, whose updates are dropped."""
        available = self.availability
        if available is None:
            return []
        ends = self.clock.now if available.unit == "seconds" else number + 1
        gone = {c.client for c in self._look() if not c.joins and c.time < ends}
        return [
            client for client in self.in_progress[number].plan.clients.tolist() if client in gone
        ]

    def _look(self) -> list[Change]:
        """Update the available clients; returns the changes."""
        assert self.availability is not None, "clients are not always available"
        changes = self.availability.new_changes()
        if changes:
            self.present = PresentClients(self.availability.present)
        return changes

    def happened(self, what: Any) -> Event | None:
        """Process an entry of the clock; a round that has waited is planned now."""
        if type(what) not in (Later, PresenceChanged):
            event: Event = what
            return event
        if self._waits is not None and self._waits not in self._due:
            self._due.append(self._waits)
        return None

    def _wait(self, number: int, error: NoClientError) -> None:
        """Plan the round when a client is charged or joins; if none ever is, the run ends."""
        limits, self.ledger.charges = self.planner.participation.energy, error.charges
        self._waits, now = number, self.clock.now
        why = self.planner.exhausted(None, self.ledger, now)
        when = np.inf if limits is None else limits.next_charged(error.charges, now)
        if when < np.inf:
            self.clock.at(when, Later())
        elif why is not None or self.availability is None or not self.availability.changes_later:
            if not self.ledger.rounds:
                raise error
            self.ended = why or "no client is available any more"
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
        """Time of the last merge, and decisions of redesigns."""
        decided: dict[str, Any] = {}
        if self.redesigns is not None:
            decided["decisions"] = self.redesigns.snapshot()
        return {**super().snapshot(), "merged_at": self.merged_at, **decided}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint, after learner, schedule and clock."""
        super().restore(tensors, state)
        self.merged_at = state["merged_at"]
        if self.availability is not None:
            self.present = PresentClients(self.availability.present)
        if self.redesigns is not None:
            self.redesigns.restore(state["decisions"])
            self.use_decision()
