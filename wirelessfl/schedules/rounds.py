"""Synchronous rounds: all nodes get work, the slowest is awaited, the cloud merges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from wirelessfl.schedules.base import Schedule, Scope, Work
from wirelessfl.schedules.events import (
    Arrived,
    Deadline,
    Decision,
    Event,
    Give,
    Merge,
    Report,
    Save,
    Scheduler,
    Started,
    Stop,
)


@dataclass(frozen=True)
class Rounds(Schedule):
    """Synchronous rounds of one model: everybody gets work, the slowest is awaited."""

    work: ClassVar[Work] = "rounds"

    def scheduler(self, tasks: Sequence[Self], scope: Scope) -> Scheduler:
        """One event a round."""
        return RoundsScheduler(scope.rounds[0], scope.every or 1)


class RoundsScheduler:
    """One event a global round, when the whole cohort is in.

    In a hierarchy the nodes are edge servers, clients of the cloud: each runs its edge rounds on
    its own clock, and the round ends with the slowest, (18). With one node it is a star.

    Args:
        rounds: T, global rounds.
        report_every: rounds between rows; the first state and the last get one always.
    """

    def __init__(self, rounds: int, report_every: int = 1) -> None:
        self.rounds = rounds
        self.report_every = report_every
        self._done = 0

    def decide(self, event: Event) -> list[Decision]:
        """Start a round, or end one and start the next."""
        match event:
            case Started():
                # Not saved: from a checkpoint with no round done, row 0 is written again.
                first: list[Decision] = [Report(0)] if self._done == 0 else []
                return [*first, self._next()]
            case Arrived(number):
                self._done = number + 1
                decisions: list[Decision] = [Merge(number)]
                if self._done % self.report_every == 0 or self._done == self.rounds:
                    decisions.append(Report(self._done))
                return [*decisions, Save(), self._next()]
            case Deadline():
                return [Report(self._done), Stop()]
        raise AssertionError(f"{event} is no event of this schedule")

    def _next(self) -> Decision:
        return Give(self._done) if self._done < self.rounds else Stop()

    def snapshot(self) -> dict[str, Any]:
        """Rounds done."""
        return {"rounds_done": self._done}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on after ``rounds_done`` rounds."""
        self._done = state["rounds_done"]
