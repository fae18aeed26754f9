"""Asynchronous requests, merged whenever a buffer of updates is full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from wirelessfl.schedules.base import Schedule, Scope, Work
from wirelessfl.schedules.buffered_scheduler import BufferedScheduler
from wirelessfl.schedules.events import Scheduler
from wirelessfl.schedules.task_counts import TaskPlan

MAX_REQUESTS = 10**6
"""Requests of a task: each is an object that a client works on or has in its queue."""


@dataclass(frozen=True)
class Buffered(Schedule):
    """Asynchronous requests, and a merge for every full buffer of updates (FedAST, Algorithm 2).

    Args:
        requests: R_m, active training requests of a task.
        buffer: b_m, updates in a merge; B, cells in a merge, where cells are the requests.
        fixed_buffer: whether b_m stays as it is when a task gets more requests; otherwise R / b
            does.
        option: S keeps R_m and b_m; D deals the requests out by how far updates lie apart
            (Algorithm 3).
        spread_updates: V, the latest updates of each task that D looks at.
        period: D reallocates every ``period`` M sum R_m updates.
        floor: minimum number of requests of a task after D, or the end of a task, reallocates.
    """

    work: ClassVar[Work] = "requests"
    per_task: ClassVar[tuple[str, ...]] = ("requests", "buffer")
    of_clients: ClassVar[tuple[str, ...]] = (
        "requests",
        "fixed_buffer",
        "option",
        "spread_updates",
        "period",
        "floor",
    )
    of_several: ClassVar[tuple[str, ...]] = (
        "fixed_buffer",
        "option",
        "spread_updates",
        "period",
        "floor",
    )
    report_every: ClassVar[int] = 20

    requests: Annotated[int, Field(ge=1, description="R_m, active training requests of a task")] = (
        96
    )
    buffer: Annotated[
        int, Field(ge=1, description="b_m, updates in a merge; over cells: B, cells in a merge")
    ] = 3
    fixed_buffer: Annotated[
        bool,
        Field(
            description="buffers keep their size when requests are reallocated (default: R / b "
            "stays what it was)"
        ),
    ] = False
    option: Annotated[
        Literal["S", "D"],
        Field(description="allocation of requests to tasks: static (S) or dynamic (D)"),
    ] = "S"
    spread_updates: Annotated[
        int, Field(ge=2, description="V, latest updates of a task whose spread option D measures")
    ] = 8
    period: Annotated[
        float,
        Field(
            gt=0,
            description="option D reallocates requests every period * M * sum R_m updates, M tasks",
        ),
    ] = 0.75
    floor: Annotated[
        int,
        Field(
            ge=1,
            description="minimum number of requests of a task after a reallocation (an even share, "
            "where there are too few)",
        ),
    ] = 8

    def unused(self) -> Mapping[str, str]:
        """Option S measures no spread, and reallocates only when a task ends."""
        if self.option == "D":
            return {}
        reason = "conflicts with option='S': choose option 'D'"
        return {"spread_updates": reason, "period": reason}

    def default_rounds(self, rounds: int, senders: int) -> int:
        """Merges that take as many updates as ``rounds`` rounds in which all senders take part."""
        return -(-rounds * senders // self.buffer)

    @property
    def active(self) -> int:
        """R_m."""
        return self.requests

    @property
    def merged(self) -> int:
        """b_m."""
        return self.buffer

    @property
    def measured(self) -> int | None:
        """V of option D."""
        return self.spread_updates if self.option == "D" else None

    def scheduler(self, tasks: Sequence[Self], scope: Scope) -> Scheduler:
        """The server of Algorithm 2, or the cloud of asynchronous cells."""
        return self.server(tasks, scope)

    def server(self, tasks: Sequence[Self], scope: Scope) -> BufferedScheduler:
        """What ``scheduler`` gives, for schedules that derive from this one."""
        if scope.cells is not None:
            plan = TaskPlan(scope.cells, self.buffer, scope.rounds[0], scales=False)
            return BufferedScheduler(
                [plan],
                answers_at_merge=True,
                report_every=scope.every,
                ticks=scope.ticks,
            )
        plans = [
            TaskPlan(task.requests, task.buffer, versions, not task.fixed_buffer)
            for task, versions in zip(tasks, scope.rounds, strict=True)
        ]
        return BufferedScheduler(
            plans,
            period=self.period if self.option == "D" else None,
            floor=self.floor,
            gathering=scope.senders,
            report_every=scope.every,
            ticks=scope.ticks,
        )
