"""Synchronous rounds of several tasks with a common barrier (Sync-ST; Bhuyan et al., 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from wirelessfl.engine.events import (
    Arrived,
    Cancel,
    Deadline,
    Decision,
    Event,
    Give,
    Merge,
    Reached,
    Report,
    Save,
    Scheduler,
    Started,
    Stop,
    Tick,
    Wake,
)
from wirelessfl.engine.schedules.schedule import Schedule, Scope, Work


@dataclass(frozen=True)
class Simultaneous(Schedule):
    """Synchronous rounds of several tasks on disjoint clients (Sync-ST; Bhuyan et al., 2023).

    A round ends when it has enough updates of every task.
    """

    work: ClassVar[Work] = "task rounds"

    first: Annotated[
        int, Field(ge=0, description="k, updates per task that a round waits for; 0 for all")
    ] = 0

    @property
    def awaited(self) -> int:
        """k, updates per task that a round waits for."""
        return self.first

    def scheduler(self, tasks: Sequence[Self], scope: Scope) -> Scheduler:
        """Create a scheduler with one event per round of all tasks."""
        return SimultaneousScheduler(scope.rounds, report_every=scope.every, ticks=scope.ticks)


class SimultaneousScheduler:
    """One event per round, when the awaited updates of every task have arrived.

    A task ends when it reaches its target; later rounds assign its clients to the other tasks.

    Args:
        rounds: T_m, rounds of each task.
        report_every: rounds between rows; None for no such rows.
        ticks: whether rows are written at fixed simulated times.
    """

    def __init__(
        self, rounds: Sequence[int], *, report_every: int | None = 1, ticks: bool = False
    ) -> None:
        self.rounds = tuple(rounds)
        self.report_every, self.ticks = report_every, ticks
        self.ended = [False] * len(rounds)
        self._done = 0
        self._ticks = 0

    @property
    def running(self) -> tuple[int, ...]:
        """Active tasks."""
        return tuple(i for i, ended in enumerate(self.ended) if not ended)

    def decide(self, event: Event) -> list[Decision]:
        """Start a round, or end one and start the next."""
        match event:
            case Started():
                # These rows are in no checkpoint: a run resumed with 0 rounds done rewrites them.
                first: list[Decision] = []
                if self._done == 0:
                    first += [self._report(i) for i in self.running]
                if self.ticks:
                    first.append(Wake(self._ticks + 1))
                return [*first, Give(self._done)]
            case Arrived(number):
                return self._arrived(number)
            case Reached(task):
                return self._end(task)
            case Tick(number):
                self._ticks = number
                return [*(self._report(i) for i in self.running), Wake(number + 1)]
            case Deadline():
                return [*(self._report(i) for i in self.running), Stop()]
        raise AssertionError(f"unexpected event {event}")

    def _arrived(self, number: int) -> list[Decision]:
        decisions: list[Decision] = [Merge(number)]
        self._done = number + 1
        due = bool(self.report_every) and self._done % (self.report_every or 1) == 0
        for task in self.running:
            over = self._done == self.rounds[task]
            if due or over:
                decisions.append(self._report(task))
            if over:
                decisions += self._end(task)
        return [*decisions, Save(), Give(self._done)] if self.running else decisions

    def _end(self, task: int) -> list[Decision]:
        if self.ended[task]:
            return []
        self.ended[task] = True
        return [Cancel(task)] if self.running else [Cancel(task), Stop()]

    def _report(self, task: int) -> Report:
        return Report(self._done, task, {"version": self._done})

    def snapshot(self) -> dict[str, Any]:
        """Numbers of completed rounds and ticks, and which tasks have ended."""
        return {"rounds_done": self._done, "ended": self.ended, "ticks": self._ticks}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue after ``rounds_done`` rounds."""
        self._done, self.ended = state["rounds_done"], list(state["ended"])
        self._ticks = state["ticks"]
