"""What the handlers of tasks have in common: the costs in rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from wirelessfl.schedules.events import Report
from wirelessfl.schedules.handler import RowFields, RunHandler
from wirelessfl.tasks.records import Span
from wirelessfl.tasks.spending import Spending
from wirelessfl.tasks.traffic import Traffic


class Sums(NamedTuple):
    """What the tasks have sent and spent.

    Args:
        up: [tasks], number of returned updates; that of a submodel counts as a fraction.
        down: [tasks], number of models sent to clients; a submodel counts as a fraction.
        returned: [tasks], number of returned updates.
        spent: energy of the clients.
    """

    up: Sequence[float]
    down: Sequence[float]
    returned: Sequence[int]
    spent: Spending


class TaskHandler(RunHandler):
    """Carries out the decisions of a schedule for tasks, see ``schedules.handler.RunHandler``.

    Args:
        traffic: what models and updates transmit; None if no rows are written.
    """

    def __init__(self, traffic: Traffic | None) -> None:
        self._traffic = traffic

    @property
    def traffic(self) -> Traffic:
        """What models and updates transmit."""
        assert self._traffic is not None, "no rows are written"
        return self._traffic

    @abstractmethod
    def sums(self) -> Sums:
        """What has been sent and spent so far."""

    @abstractmethod
    def status(self, task: int) -> dict[str, Any]:
        """Further fields of a task's row."""

    @abstractmethod
    def under_way(self, now: float) -> list[Span]:
        """Spans of the work in progress, for a timeline that ends at ``now``."""

    def fields(self, report: Report) -> RowFields:
        """Number of the round and name of the task, its status, and the costs of all tasks."""
        assert report.task is not None
        sums, traffic = self.sums(), self.traffic
        costs = {
            **report.status,
            **self.status(report.task),
            **traffic.fields(sums.up, sums.down, sums.returned),
            "joules": sums.spent.total / traffic.clients,
            "joules_max": sums.spent.most,
        }
        head = {"round": report.round, "task": traffic.names[report.task]}
        return RowFields(head, costs, {})
