"""Asynchronous training requests, whose updates are merged when a buffer is full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from wirelessfl.base.needs import CLIENT_REQUESTS, SEVERAL_TASKS, Fits, beside
from wirelessfl.engine.events import Scheduler
from wirelessfl.engine.schedules.buffered_scheduler import BufferedScheduler, TaskPlan
from wirelessfl.engine.schedules.schedule import Schedule, Scope, Work

MEASURED = (
    Fits(
        lambda run, owner: owner.option != "D" or run.settings.rule.payloads[0].change,
        'measures the spread of updates, but clients of algorithm "{run.title}" send '
        'models: choose option "S", or an algorithm such as "fedast"',
    ),
    Fits(
        lambda run, owner: owner.option != "D" or run.settings.training.local_epochs is None,
        "conflicts with local_epochs={run.settings.training.local_epochs:g}: it measures the "
        'spread of updates of equal numbers of local steps. Choose option "S", or give local_steps '
        "instead",
    ),
    Fits(
        lambda run, owner: owner.option != "D" or run.uplink.gives != "sum",
        'compares individual updates under schedule "{run.schedule.title}", but uplink '
        '"{run.uplink.title}" gives only their sum: choose option "S", or uplink "tdma", "ofdma" '
        'or "fixed"',
    ),
)
"""What option D needs to measure the spread of updates."""
ONE_BY_ONE = Fits(
    lambda run, owner: owner.max_staleness is None or run.uplink.gives != "sum",
    'conflicts with uplink "{run.uplink.title}", which gives only sums of updates: choose uplink '
    '"tdma", "ofdma" or "fixed"',
)
"""What the server needs to drop single updates."""
BY_VERSION = (
    Fits(
        lambda run, owner: (
            owner.update_weights != "version" or run.settings.rule.payloads[0].change
        ),
        'scales updates, but clients of algorithm "{run.title}" send models: choose update_weights '
        '"buffer", or an algorithm such as "fedast"',
    ),
    Fits(
        lambda run, owner: owner.update_weights != "version" or run.uplink.gives != "sum",
        'scales single updates, but uplink "{run.uplink.title}" gives only their sum: choose '
        'update_weights "buffer", or uplink "tdma", "ofdma" or "fixed"',
    ),
)
"""What weights of single updates need."""


@dataclass(frozen=True)
class Buffered(Schedule):
    """Asynchronous requests; each full buffer of updates is merged (FedAST, Algorithm 2)."""

    work: ClassVar[Work] = "requests"
    per_task: ClassVar[tuple[str, ...]] = ("requests", "buffer")
    report_every: ClassVar[int] = 20

    requests: Annotated[
        int,
        Field(ge=1, le=10**6, description="R_m, number of active training requests per task"),
        CLIENT_REQUESTS,
    ] = 96
    buffer: Annotated[
        int,
        Field(ge=1, le=10**6, description="b_m, updates (or asynchronous cells) per merge"),
    ] = 3
    fixed_buffer: Annotated[
        bool,
        Field(
            description="keep the buffer size when requests are reallocated (default: keep the "
            "ratio R / b)"
        ),
        (CLIENT_REQUESTS, SEVERAL_TASKS),
    ] = False
    option: Annotated[
        Literal["S", "D"],
        Field(description="allocation of requests to tasks: static (S) or dynamic (D)"),
        (CLIENT_REQUESTS, SEVERAL_TASKS),
        MEASURED,
    ] = "S"
    spread_updates: Annotated[
        int,
        Field(ge=2, description="V, latest updates per task whose spread option D measures"),
        (CLIENT_REQUESTS, SEVERAL_TASKS, beside("option", "D")),
    ] = 8
    period: Annotated[
        float,
        Field(
            gt=0,
            description="option D reallocates requests every period * M * sum R_m updates (M "
            "tasks)",
        ),
        (CLIENT_REQUESTS, SEVERAL_TASKS, beside("option", "D")),
    ] = 0.75
    floor: Annotated[
        int,
        Field(
            ge=1,
            description="minimum requests per task after a reallocation (equal shares if there are "
            "too few requests)",
        ),
        (CLIENT_REQUESTS, SEVERAL_TASKS),
    ] = 8
    max_staleness: Annotated[
        int | None,
        Field(
            ge=0,
            description="drop updates of greater staleness on arrival (default: merge all)",
        ),
        CLIENT_REQUESTS,
        ONE_BY_ONE,
    ] = None
    update_weights: Annotated[
        Literal["buffer", "version"],
        Field(
            description="weight of an update in a merge: 1 / b (buffer), or 1 / number of requests "
            "sent with the same version of the model (version)"
        ),
        CLIENT_REQUESTS,
        BY_VERSION,
    ] = "buffer"

    def default_rounds(self, rounds: int, senders: int) -> int:
        """Number of merges with as many updates as ``rounds`` rounds of all senders."""
        return -(-rounds * senders // self.buffer)

    @property
    def active(self) -> int:
        """R_m, number of active requests."""
        return self.requests

    @property
    def merged(self) -> int:
        """b_m, updates per merge."""
        return self.buffer

    @property
    def measured(self) -> int | None:
        """V for option D; None for option S."""
        return self.spread_updates if self.option == "D" else None

    @property
    def by_version(self) -> bool:
        """Whether updates have the weights of Remark 7."""
        return self.update_weights == "version"

    def scheduler(self, tasks: Sequence[Self], scope: Scope) -> Scheduler:
        """Create the server of Algorithm 2, or the cloud of asynchronous cells."""
        return self.server(tasks, scope)

    def server(self, tasks: Sequence[Self], scope: Scope) -> BufferedScheduler:
        """Create the scheduler; schedules that derive from this one can wrap it."""
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
            max_staleness=self.max_staleness,
            report_every=scope.every,
            ticks=scope.ticks,
        )
