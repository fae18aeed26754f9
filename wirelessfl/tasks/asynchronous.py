"""Asynchronous work on several tasks: requests go out, updates come back one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from wirelessfl.schedules.base import (
    Aggregate,
    Ask,
    Cancel,
    Decision,
    Event,
    Measure,
    Measured,
    Returned,
)
from wirelessfl.tasks.model import TaskModel
from wirelessfl.tasks.records import Merged, Records, Span
from wirelessfl.tasks.requests import Requests


class Asynchronous:
    """Carries out what ``Buffered`` decides.

    Args:
        models: of each task.
        requests: who works on what.
        records: optional lists that receive every merge.
    """

    def __init__(
        self, models: Sequence[TaskModel], requests: Requests, records: Records | None = None
    ) -> None:
        self.models, self.requests, self.records = models, requests, records
        self.versions = [0] * len(models)
        self.issued = [0] * len(models)
        self.returned = [0] * len(models)
        self._asked: list[Ask] = []

    def happened(self, what: Any) -> Event | None:
        """What has come back, if anything."""
        event = self.requests.happened(what)
        if type(event) is Returned:
            self.returned[event.task] += 1
            self.models[event.task].came_back(event.request)
        return event

    def carry_out(self, decision: Decision) -> Event | None:
        """Ask, merge, cancel, or measure."""
        match decision:
            case Ask():
                self._asked.append(decision)
            case Aggregate(task, numbers, staleness):
                self.versions[task] += 1
                self.models[task].merge(numbers, staleness)
                if self.records is not None:
                    now = self.requests.clock.now
                    self.records.merges.append(Merged(task, now, tuple(staleness)))
            case Cancel(task):
                self._asked = [ask for ask in self._asked if ask.task != task]
                self.requests.cancel(task)
                self.models[task].end()
            case Measure(tasks):
                spread: list[float | None] = [None] * len(self.models)
                for task in tasks:
                    spread[task] = self.models[task].spread()
                return Measured(tuple(spread))
        return None

    def settle(self) -> None:
        """Send what was asked for, with the models as they are at the end of the instant."""
        for ask in self._asked:
            task = ask.task
            for _ in range(ask.count):
                self.models[task].issue(self.requests.ask(task, self.versions[task]))
            self.issued[task] += ask.count
        self._asked = []

    def under_way(self, now: float) -> list[Span]:
        """What clients are at, for a picture that ends now."""
        return [
            Span(request.task, request.client, request.begun, now, "under way")
            for request in self.requests.out.values()
            if request.begun is not None
        ]

    starts_again: ClassVar[bool] = False
    """Whether a run goes on from a checkpoint by starting what was under way again."""

    @property
    def joules(self) -> float:
        """Of all clients so far."""
        return self.requests.joules

    def status(self, task: int) -> dict[str, Any]:
        """What a row says of a task beyond what the schedule knows: nothing."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """None: the models have their own."""
        return {}

    def snapshot(self) -> dict[str, Any]:
        """State as plain numbers and lists, between two instants."""
        return {
            "requests": self.requests.snapshot(),
            "versions": self.versions,
            "issued": self.issued,
            "returned": self.returned,
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on from a snapshot; the models have their own."""
        self.requests.restore(state["requests"])
        self.versions, self.issued = list(state["versions"]), list(state["issued"])
        self.returned = list(state["returned"])
