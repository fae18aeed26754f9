"""The handlers of one model, and its synchronous rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wirelessfl.air.plan import Plan
from wirelessfl.engine.events import Arrived, Decision, Event, Exhausted, Give, Merge, Report
from wirelessfl.engine.loop import Handler, RowFields
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.engine.rounds.redesign import Redesigns
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.learner import RoundTraining
from wirelessfl.training.rules import State

if TYPE_CHECKING:
    from torch import Tensor


class OneModel(Handler):
    """Carries out the decisions of a schedule for one model.

    Args:
        planner: plans rounds and their durations.
        training: trains and merges, and contains the server.
        clock: virtual clock.
    """

    def __init__(self, planner: Planner, training: RoundTraining, clock: Clock) -> None:
        self.planner, self.training, self.clock = planner, training, clock

    def under_way(self) -> Mapping[int, Plan]:
        """Plans of the rounds in progress of single cells, by cell: none."""
        return {}

    def fields(self, report: Report) -> RowFields:
        """Number of the round, and costs so far."""
        return RowFields({"round": report.round}, self.costs(), {})

    def costs(self) -> dict[str, Any]:
        """Running totals of the rounds, and the energy of the client that uses most."""
        training = self.training
        return training.totals.row() | {"joules_max": training.ledger.most_joules}


class ModelRounds(OneModel):
    """Rounds of one model: each is planned when it starts, and trained when it is merged.

    Args:
        planner: plans rounds and their durations.
        training: trains and merges.
        clock: virtual clock.
        redesigns: decide how rounds train and send; None if all do as configured.
    """

    def __init__(
        self,
        planner: Planner,
        training: RoundTraining,
        clock: Clock,
        redesigns: Redesigns | None = None,
    ) -> None:
        super().__init__(planner, training, clock)
        self.redesigns = redesigns
        self._in_progress: dict[int, tuple[Plan, State]] = {}
        self._due: list[int] = []
        self.merged_at = 0.0
        """Simulated time of the last merge, which the end of the run may follow."""

    def carry_out(self, decision: Decision) -> Event | None:
        """Start a round, or train and merge it; say so if no client can take part any more."""
        match decision:
            case Give(number):
                self._due.append(number)
            case Merge(number):
                self.training.train(*self._in_progress.pop(number))
                self.merged_at = self.clock.now
                self.ended = self.planner.exhausted(None, self.training.ledger)
                return None if self.ended is None else Exhausted()
        return None

    def settle(self) -> None:
        """Plan the issued rounds, with the model after all events at this time."""
        for number in self._due:
            training = self.training
            if self.redesigns is not None:
                self.redesigns.settle(number)
                self.use_decision()
            plan = self.planner.plan(number, ledger=training.ledger, losses=training.losses)
            self._in_progress[number] = plan, self.training.server.cloud
            self.clock.after(float(plan.price.seconds.max()), Arrived(number))
        self._due = []

    def use_decision(self) -> None:
        """Plan and train the next rounds as the last redesign has decided."""
        if self.redesigns is not None:
            self.planner = planner = self.redesigns.planner()
            training = self.training
            training.settings = replace(planner.settings, padding=training.settings.padding)
            training.server.uplink = planner.links.uplink

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
        return {"merged_at": self.merged_at, **decided}

    def restore(self, tensors: dict[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint, after training, schedule and clock."""
        self.merged_at = state["merged_at"]
        if self.redesigns is not None:
            self.redesigns.restore(state["decisions"])
            self.use_decision()
