"""Synchronous rounds: all nodes train, and the cloud merges when the slowest has finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from wirelessfl.schedules.events import (
    Arrived,
    Deadline,
    Decision,
    Event,
    Exhausted,
    Give,
    Merge,
    Reached,
    Report,
    Save,
    Scheduler,
    Started,
    Stop,
)
from wirelessfl.schedules.schedule import Schedule, Scope, Work


@dataclass(frozen=True)
class Rounds(Schedule):
    """Synchronous rounds of one model; each round waits for its slowest client."""

    work: ClassVar[Work] = "rounds"

    def scheduler(self, tasks: Sequence[Self], scope: Scope) -> Scheduler:
        """Return a scheduler with one event per round."""
        return RoundsScheduler(scope.rounds[0], scope.every or 1)


class RoundsScheduler:
    """One event per global round, when all updates have arrived.

    With cells the nodes are edge servers, which are clients of the cloud. Each runs its edge rounds
    on its own clock, and the round ends when the slowest has finished, (18). A star has one node.

    Args:
        rounds: T, global rounds.
        report_every: rounds between rows; the initial and the final model always get a row.
    """

    def __init__(self, rounds: int, report_every: int = 1) -> None:
        self.rounds = rounds
        self.report_every = report_every
        self._done = 0
        self._reported = False  # whether the last round has a row

    def decide(self, event: Event) -> list[Decision]:
        """Start a round, or end one and start the next."""
        match event:
            case Started():
                # Row 0 is not in a checkpoint: a run resumed with 0 rounds done writes it again.
                first: list[Decision] = [Report(0)] if self._done == 0 else []
                return [*first, self._next()]
            case Arrived(number):
                self._done = number + 1
                decisions: list[Decision] = [Merge(number)]
                self._reported = self._done % self.report_every == 0 or self._done == self.rounds
                if self._reported:
                    decisions.append(Report(self._done))
                return [*decisions, Save(), self._next()]
            case Reached():
                return [Stop()]
            case Exhausted():
                return [Stop()] if self._reported else [Report(self._done), Stop()]
            case Deadline():
                return [Report(self._done), Stop()]
        raise AssertionError(f"unexpected event {event}")

    def _next(self) -> Decision:
        return Give(self._done) if self._done < self.rounds else Stop()

    def snapshot(self) -> dict[str, Any]:
        """The number of completed rounds."""
        return {"rounds_done": self._done}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue after ``rounds_done`` rounds."""
        self._done = state["rounds_done"]
