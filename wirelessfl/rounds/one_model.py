"""What the handlers of one model have in common; they differ in what is given, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirelessfl.rounds.plan import Plan
from wirelessfl.rounds.planner import Planner
from wirelessfl.rounds.training import RoundTraining
from wirelessfl.schedules import Clock
from wirelessfl.schedules.events import Report
from wirelessfl.schedules.handler import RowFields, RunHandler


class OneModel(RunHandler):
    """Carries out the decisions of a schedule for one model.

    Args:
        planner: plans rounds and their durations.
        training: trains and merges, and contains the server.
        clock: virtual clock.
    """

    def __init__(self, planner: Planner, training: RoundTraining, clock: Clock) -> None:
        self.planner, self.training, self.clock = planner, training, clock

    @property
    def merged_at(self) -> float:
        """Simulated time of the last merge, which the end of the run may follow."""
        return self.clock.now

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

    def priced(self) -> Mapping[str, Any]:
        """Fields of a row of prices besides those of all runs: none."""
        return {}
