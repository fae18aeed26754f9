"""What runs of several tasks have in common: records for the timeline, and rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add, mul
from typing import TYPE_CHECKING, Any, NamedTuple

from wirelessfl.base.rows import BITS_PER_ELEMENT, MIB_PER_BIT
from wirelessfl.engine.events import Report
from wirelessfl.engine.loop import Handler, RowFields
from wirelessfl.engine.server.ledger import TaskLedger

if TYPE_CHECKING:
    from torch import Tensor

    from wirelessfl.engine.tasks.learner import TaskLearner


class Span(NamedTuple):
    """A client's work on a request; ``how`` is done, lost, cancelled, too stale or under way."""

    task: int
    client: int
    begin: float
    end: float
    how: str


@dataclass(frozen=True)
class Merged:
    """A merge: its task, its simulated time, and the staleness of its updates."""

    task: int
    seconds: float
    staleness: tuple[int, ...]


@dataclass(frozen=True)
class Records:
    """Lists that are filled during the run.

    Args:
        spans: finished work of clients, in order of completion.
        merges: merges of all tasks, in order.
    """

    spans: list[Span] = field(default_factory=list)
    merges: list[Merged] = field(default_factory=list)


class TaskHandler(Handler):
    """Carries out the decisions of a schedule for tasks.

    Args:
        learners: the learner of each task.
        ledger: costs of the tasks.
        records: optional lists that receive the clients' work and all merges.
    """

    learners: Sequence[TaskLearner]

    def __init__(
        self, learners: Sequence[TaskLearner], ledger: TaskLedger, records: Records | None
    ) -> None:
        super().__init__(learners)
        self.ledger, self.records = ledger, records

    @abstractmethod
    def status(self, task: int) -> dict[str, Any]:
        """Further fields of a task's row."""

    @abstractmethod
    def under_way(self, now: float) -> list[Span]:
        """Spans of the work in progress, for a timeline that ends at ``now``."""

    @cached_property
    def _side_bits(self) -> list[int]:
        """Bits that each update of a task sends besides its payloads, [tasks]."""
        return [BITS_PER_ELEMENT * learner.side_elements for learner in self.learners]

    def costs(self) -> dict[str, Any]:
        """Traffic and energy of all tasks so far, mean over the registered clients."""
        ledger, clients = self.ledger, len(self.learners[0].server.weights.node_of)
        sides = map(mul, self._side_bits, ledger.returned)
        # In the order of the tasks; sum rounds otherwise from Python 3.12 on.
        sent = reduce(add, map(add, ledger.up, sides), 0.0)
        received = reduce(add, ledger.down, 0.0)
        return {
            "uplink_mib": MIB_PER_BIT * sent / clients,
            "downlink_mib": MIB_PER_BIT * received / clients,
            "backhaul_mib": 0.0,
            "joules": ledger.spent.total / clients,
            "joules_max": ledger.spent.most,
        }

    def names(self, report: Report) -> dict[str, Any]:
        """Name of the task."""
        assert report.task is not None
        return {"task": self.learners[report.task].name}

    def fields(self, report: Report) -> RowFields:
        """Number of the round and name of the task, its status, and the costs of all tasks."""
        assert report.task is not None
        head = {"round": report.round, **self.names(report)}
        status = {**report.status, **self.status(report.task)}
        return RowFields(head, status | self.costs(), {})

    def tensors(self) -> dict[str, Tensor]:
        """Energy of the clients, for a checkpoint; the learners save their own tensors."""
        return self.ledger.spent.tensors()
