"""The interface of a schedule: WHEN clients get work, and when servers merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from wirelessfl.base.guard import implementing, returns, whole
from wirelessfl.base.registry import Choice
from wirelessfl.engine.events import Scheduler

Work = Literal["rounds", "requests", "task rounds"]


@dataclass(frozen=True)
class Scope:
    """Facts of a run that a scheduler needs in addition to its settings.

    Args:
        rounds: [tasks], T_m, number of rounds or merges after which each task ends.
        every: rounds, or merges of a task, between its rows; None for no such rows.
        ticks: whether rows are written at fixed simulated times.
        senders: maximum number of concurrently busy clients, if all updates of a merge must be
            sent at the same time; None if each update is sent when it is ready.
        cells: N, number of cells, if requests go to the cells of one model and finished cells wait
            for a merge; None if requests go to clients.
    """

    rounds: Sequence[int]
    every: int | None = 1
    ticks: bool = False
    senders: int | None = None
    cells: int | None = None


@dataclass(frozen=True)
class Schedule(Choice, ABC):
    """Base class of all schedules. Its dataclass fields are its settings, as for an algorithm."""

    work: ClassVar[Work]
    """Work that the schedule issues: ``rounds`` of one model (decisions ``Give`` and ``Merge``);
    training ``requests`` to clients, for one or several models, or to the cells of one model
    (``Ask`` and ``Aggregate``); or ``task rounds`` of several models (``Give`` and ``Merge``)."""
    per_task: ClassVar[tuple[str, ...]] = ()
    """Settings that can differ between tasks."""
    report_every: ClassVar[int] = 1
    """Default number of rounds, or merges of a task, between rows."""

    @returns(whole(1))
    def default_rounds(self, rounds: int, senders: int) -> int:
        """Default number of rounds of a run, or of merges of a task.

        Args:
            rounds: default number of synchronous rounds.
            senders: number of clients, or of cells if requests go to cells.
        """
        return rounds

    @property
    @returns(whole(1, or_none=True))
    def active(self) -> int | None:
        """R, number of active requests of a task; None for schedules with rounds."""
        return None

    @property
    @returns(whole(1, or_none=True))
    def merged(self) -> int | None:
        """b, number of updates per merge of a task; None if each round is one merge."""
        return None

    @property
    @returns(whole(0))
    def awaited(self) -> int:
        """k, number of updates of a task that a round of tasks waits for; 0 for all."""
        return 0

    @property
    @returns(whole(1, or_none=True))
    def measured(self) -> int | None:
        """V, number of latest updates of a task whose spread is measured; None to measure none."""
        return None

    @property
    def by_version(self) -> bool:
        """Whether an update's weight in a merge is 1 / number of requests of its version."""
        return False

    @returns(implementing(Scheduler))
    @abstractmethod
    def scheduler(self, tasks: Sequence[Self], scope: Scope) -> Scheduler:
        """Create the scheduler of a run.

        Args:
            tasks: [tasks], this schedule with the settings of each task; one entry if the run
                trains one model.
            scope: facts of the run.
        """
