"""Sessions of several tasks: their rounds are common, and each task has its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wirelessfl.schedules.events import Cancel, Decision, Event, Reached, Report, Stop
from wirelessfl.schedules.session_schedule import SessionsScheduler


class TaskSessionsScheduler(SessionsScheduler):
    """Sessions of rounds in which the present clients train several tasks.

    All tasks begin and end their sessions at the same time. A task that an observer ends trains in
    no later round, and its clients go to the others; the run ends with its last task.

    Args:
        tasks: number of tasks.
        sessions, rounds, trials, report_every, report_first: as for one model; a report is one row
            per task.
    """

    def __init__(
        self,
        tasks: int,
        sessions: int,
        rounds: int,
        trials: Callable[[int], int],
        report_every: int = 1,
        report_first: int = 0,
    ) -> None:
        super().__init__(sessions, rounds, trials, report_every, report_first)
        self.ended = [False] * tasks

    def decide(self, event: Event) -> list[Decision]:
        """Decide what the session does next, or end a task."""
        if not isinstance(event, Reached):
            return super().decide(event)
        if self.ended[event.task]:
            return []
        self.ended[event.task] = True
        return [Cancel(event.task), Stop()] if all(self.ended) else [Cancel(event.task)]

    def _reports(self) -> Sequence[Decision]:
        status = self._status() | {"version": self._done}
        return [
            Report(self._done, task, status) for task, ended in enumerate(self.ended) if not ended
        ]

    def snapshot(self) -> dict[str, Any]:
        """The current session and round, and which tasks have ended."""
        return super().snapshot() | {"ended": self.ended}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        super().restore(state)
        self.ended = list(state["ended"])
