"""The interface of a schedule: WHEN work is handed out, and when servers merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from wirelessfl.registry import Choice
from wirelessfl.schedules.events import Scheduler

Work = Literal["rounds", "requests", "task rounds"]


@dataclass(frozen=True)
class Scope:
    """What a scheduler decides about in a run, beside its settings.

    Args:
        rounds: [tasks], T_m, rounds or merges after which each task ends.
        every: rounds, or merges of a task, between its rows; None: none by their number.
        ticks: whether rows are written at fixed simulated times.
        senders: where the updates of a merge must be sent at the same time: maximum number of
            clients that are busy at a time. None: each is sent when it is ready.
        cells: N, where the cells of one model are the requests, and wait for their merge; None:
            requests go to clients.
    """

    rounds: Sequence[int]
    every: int | None = 1
    ticks: bool = False
    senders: int | None = None
    cells: int | None = None


@dataclass(frozen=True)
class Schedule(Choice, ABC):
    """Base of every schedule. Its dataclass fields are its settings, as an algorithm's are."""

    work: ClassVar[Work]
    """What it hands out: ``rounds`` of one model (it decides ``Give`` and ``Merge``), training
    ``requests`` to single clients of one model or several (``Ask`` and ``Aggregate``; or to the
    cells of one model), or ``task rounds``, of several models at once (``Give`` and ``Merge``)."""
    per_task: ClassVar[tuple[str, ...]] = ()
    """Settings that each of several tasks may have for itself."""
    of_clients: ClassVar[tuple[str, ...]] = ()
    """Settings of requests to single clients, which cells do not have."""
    of_several: ClassVar[tuple[str, ...]] = ()
    """Settings that need several tasks."""
    report_every: ClassVar[int] = 1
    """Rounds, or merges of a task, between rows, unless the settings say."""

    def default_rounds(self, rounds: int, senders: int) -> int:
        """Rounds of a run, or merges of a task, unless the settings say.

        Args:
            rounds: default of synchronous training.
            senders: clients of the run; cells, where these are the requests.
        """
        return rounds

    @property
    def active(self) -> int | None:
        """R, requests of a task that are out at a time; None where there are rounds."""
        return None

    @property
    def merged(self) -> int | None:
        """b, updates of a task that make a merge; None: those of a round."""
        return None

    @property
    def awaited(self) -> int:
        """k, updates of a task that end its part of a round of tasks; 0: all."""
        return 0

    @property
    def measured(self) -> int | None:
        """V, the latest updates of a task by whose spread it decides; None: by times alone."""
        return None

    @abstractmethod
    def scheduler(self, tasks: Sequence[Self], scope: Scope) -> Scheduler:
        """What decides in a run.

        Args:
            tasks: [tasks], this schedule with the settings of each task; one, where a run trains
                one model.
            scope: what it decides about.
        """
