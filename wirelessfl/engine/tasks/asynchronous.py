"""Asynchronous training of several tasks: requests are issued, updates return one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wirelessfl.base.errors import TrainingError
from wirelessfl.engine.events import (
    Aggregate,
    Ask,
    Cancel,
    Decision,
    Drop,
    Event,
    Exhausted,
    Lost,
    Measure,
    Measured,
    Returned,
    Transmit,
    Transmitted,
)
from wirelessfl.engine.tasks.handler import Merged, Records, Span, TaskHandler
from wirelessfl.engine.tasks.requests import Requests

if TYPE_CHECKING:
    from torch import Tensor

    from wirelessfl.engine.tasks.learner import TaskLearner

LATE_IN_A_ROW, LATE_PER_CLIENT = 1000, 20
"""A run ends with an error if more updates in a row than both this number, and this many per
client, miss the cut-off or are those of clients that leave: no aggregation would follow."""


class Asynchronous(TaskHandler):
    """Carries out the decisions of ``BufferedScheduler``.

    Args:
        learners: the learner of each task.
        requests: training requests in progress.
        records: optional lists that receive all merges.
    """

    starts_again = False

    def __init__(
        self,
        learners: Sequence[TaskLearner],
        requests: Requests,
        records: Records | None = None,
    ) -> None:
        super().__init__(learners, requests.ledger, records)
        self.requests = requests
        self._late_in_a_row = 0
        self._asked: list[Ask] = []

    def happened(self, what: Any) -> Event | None:
        """Process an entry of the clock, and note the updates that have returned."""
        event = self.requests.happened(what)
        if type(event) is Lost:
            if event.late is not None:
                self.ledger.late[event.task] += 1
                self._gave_up(event.task, event.late)
            elif event.left is not None:
                self._gave_up(event.task, event.left)
        elif type(event) is Returned:
            self._late_in_a_row = 0
            self.ledger.returned[event.task] += 1
            self.learners[event.task].came_back(event.request)
        elif type(event) is Transmitted:
            self.ledger.returned[event.task] += len(event.requests)
            for number in event.requests:
                self.learners[event.task].came_back(number)
        return event

    def _gave_up(self, task: int, number: int) -> None:
        self.learners[task].gave_up(number)
        self._late_in_a_row += 1
        if self._late_in_a_row > max(LATE_IN_A_ROW, LATE_PER_CLIENT * self.requests.clients):
            count, cutoff = self._late_in_a_row, self.requests.cutoff
            more = "" if cutoff is None else ", raise cutoff_seconds"
            raise TrainingError(
                f"the clients of the last {count} requests left before their updates had arrived"
                f"{'' if cutoff is None else ' or missed the cut-off'}, so that no aggregation "
                f"follows. Give longer stays in availability_trace{more}, or lower local_steps."
                if self.requests.availability is not None
                else f"cutoff_seconds={cutoff:g}: the last {count} updates missed it, so that no "
                "aggregation follows. Raise cutoff_seconds, or lower local_steps."
            )

    def carry_out(self, decision: Decision) -> Event | None:
        """Issue requests, transmit, merge, drop, cancel, or measure the spread."""
        match decision:
            case Ask():
                self._asked.append(decision)
            case Transmit(task, numbers):
                self.requests.transmit(task, numbers)
            case Aggregate(task, numbers, staleness):
                self.ledger.merges[task] += 1
                if self.requests.availability is not None:  # the end of an update, as of a round
                    self.requests.availability.round_started(sum(self.ledger.merges) - 1, 0.0)
                transmissions = self.requests.transmissions
                draw = None if transmissions is None else transmissions.draw
                self.learners[task].merge_updates(numbers, staleness, draw=draw)
                if self.records is not None:
                    now = self.requests.clock.now
                    self.records.merges.append(Merged(task, now, tuple(staleness)))
            case Drop(task, number):
                self.learners[task].drop(number)
                if self.records is not None:  # the latest span is that of this update
                    self.records.spans[-1] = self.records.spans[-1]._replace(how="too stale")
            case Cancel(task):
                self._asked = [ask for ask in self._asked if ask.task != task]
                self.requests.cancel(task)
                self.learners[task].end()
            case Measure(tasks):
                spread: list[float | None] = [None] * len(self.learners)
                for task in tasks:
                    spread[task] = self.learners[task].spread()
                return Measured(tuple(spread))
        return None

    def settle(self) -> None:
        """Issue requests with the current models, after all events at this time.

        If the channel is free, the first waiting transmission starts. Without an available client,
        requests wait for the first.
        """
        down = self.ledger.down
        if self.requests.present is not None and not len(self.requests.present):
            self._wait()
            return
        for ask in self._asked:
            task = ask.task
            learner, version = self.learners[task], self.ledger.merges[task]
            for _ in range(ask.count):
                request = self.requests.ask(task, version, learner.share)
                down[task] += learner.traffic.down_of(request.share)
                learner.issue(request)
            self.ledger.issued[task] += ask.count
        self._asked = []
        transmissions = self.requests.transmissions
        if transmissions is not None and (due := transmissions.due) is not None:
            load = self.learners[due.task].air_load(due.requests)
            transmissions.begin(self.ledger.merges[due.task], load)

    def _wait(self) -> None:
        """Let requests wait for a client; if none ever joins, the run ends."""
        availability = self.requests.availability
        assert availability is not None
        lasting = self.requests.out or availability.changes_later
        if self._asked and not lasting and self.ended is None:
            self.ended = "no client is available any more"
            self.requests.clock.after(0.0, Exhausted())

    def start(self) -> None:
        """Put the next change of the available clients on the clock."""
        if self.requests.availability is not None:
            self.requests.availability.start()

    def costs(self) -> dict[str, Any]:
        """As for all tasks, and the number of available clients, if they are not always."""
        present = self.requests.present
        return super().costs() | ({} if present is None else {"available": len(present)})

    def under_way(self, now: float) -> list[Span]:
        """Spans of the work in progress, for a timeline that ends at ``now``."""
        return [
            Span(request.task, request.client, request.begun, now, "under way")
            for request in self.requests.out.values()
            if request.begun is not None
        ]

    def status(self, task: int) -> dict[str, Any]:
        """Further fields of a task's row: updates that missed the cut-off, if there is one."""
        return {} if self.requests.cutoff is None else {"late": self.ledger.late[task]}

    def snapshot(self) -> dict[str, Any]:
        """State as plain numbers and lists, after all events at the current time."""
        asked = [[ask.task, ask.count] for ask in self._asked]
        return {
            "requests": self.requests.snapshot(),
            **self.ledger.snapshot(),
            **({} if self.requests.availability is None else {"asked": asked}),
        }

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a snapshot; the learners restore their own state."""
        self.requests.restore(state["requests"])
        self._asked = [Ask(*ask) for ask in state.get("asked", ())]
        self.ledger.restore(tensors, state)
        if self._asked:
            self._wait()
