"""Buffered asynchronous training of several models (FedAST; Askin et al., UAI 2024, Algorithm 2).

Each task has R_m active training requests at clients and a buffer of b_m updates. A full buffer is
merged, and a new request replaces each arriving update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from solvers import allocate_requests
from wirelessfl.engine.events import (
    Aggregate,
    Ask,
    Cancel,
    Deadline,
    Decision,
    Drop,
    Event,
    Exhausted,
    Lost,
    Measure,
    Measured,
    Reached,
    Ready,
    Report,
    Returned,
    Save,
    Started,
    Stop,
    Tick,
    Transmit,
    Transmitted,
    Wake,
)


@dataclass(frozen=True)
class TaskPlan:
    """Initial requests and buffer of a task, and its number of merges.

    Args:
        requests: R_m, active requests.
        buffer: b_m, updates per merge.
        versions: T_m, merges after which the task ends.
        scales: whether the buffer changes with the requests, so that R / b stays constant.
    """

    requests: int
    buffer: int
    versions: int
    scales: bool = True

    def buffer_for(self, requests: int) -> int:
        """b_m for this number of requests: constant, or scaled to keep the initial ratio R / b."""
        if not self.scales:
            return self.buffer
        return max(round(self.buffer * requests / self.requests), 1)


class BufferedScheduler:
    """The server of Algorithm 2.

    Args:
        plans: initial numbers of each task.
        period: for option D: number of updates of all tasks between two reallocations, as a
            multiple of M times the budget sum R_m (0.75 in the paper). Requests are then
            reallocated in proportion to the spread of each task's updates (Algorithm 3). The new
            allocation is reached gradually: 0, 1 or 2 requests replace each update. None for
            option S.
        floor: minimum number of requests of a task after a reallocation.
        answers_at_merge: whether new requests are issued only at merges, so that finished clients
            or cells wait for the merge; otherwise a request replaces each update immediately. A
            lost update is always replaced immediately.
        gathering: number of clients that are always busy, min(sum R_m, clients, limit of busy
            clients), if all updates of a merge are transmitted at the same time. The buffers must
            satisfy sum (b_m - 1) < ``gathering``, so that some task can always collect b_m
            updates; this also holds after the requests of an ended task are reallocated. New
            requests are then issued only at merges. None if each update is uploaded separately.
        max_staleness: maximum staleness of merged updates: older ones are dropped when they
            arrive, and replaced immediately, so ``answers_at_merge`` must be false. None for no
            maximum.
        report_every: merges of a task between its rows; None for no such rows.
        ticks: whether rows are written at fixed simulated times.
    """

    def __init__(
        self,
        plans: Sequence[TaskPlan],
        *,
        period: float | None = None,
        floor: int = 1,
        answers_at_merge: bool = False,
        gathering: int | None = None,
        max_staleness: int | None = None,
        report_every: int | None = 1,
        ticks: bool = False,
    ) -> None:
        self.plans = tuple(plans)
        self.floor, self.gathering, self.max_staleness = floor, gathering, max_staleness
        self.answers_at_merge = answers_at_merge or gathering is not None
        self.report_every, self.ticks = report_every, ticks
        self.budget = sum(plan.requests for plan in plans)
        self.period = max(round((period or 0) * len(plans) * self.budget), int(period is not None))
        self.tasks = [TaskCounts(plan.requests, plan.buffer) for plan in plans]
        self.active = 0
        self.updates = 0
        self.spread: list[float | None] = [None] * len(plans)
        self._waiting: Returned | None = None

    def decide(self, event: Event) -> list[Decision]:
        """Apply Algorithm 2 to an event."""
        if type(event) is Returned:  # the most frequent event
            return self._returned(event)
        match event:
            case Started():
                asks = [self._ask(number, task.requests) for number, task in enumerate(self.tasks)]
                reports = [self._report(number) for number in range(len(self.tasks))]
                return [*asks, *reports, *([Wake(1)] if self.ticks else ())]
            case Lost(number, late):
                task = self.tasks[number]
                task.lost += late is None
                self._less(task, 1)
                return self._answer(number, task)
            case Ready(request, number):
                self.tasks[number].held.append(request)
                return self._transmissions(number)
            case Transmitted(number, requests, versions):
                self.updates += len(requests)
                task = self.tasks[number]
                stale = [task.version - version for version in versions]
                return self._merge(number, task, requests, stale)
            case Measured(spread):
                return self._measured(spread)
            case Reached(number):
                return self._end(number)
            case Tick(number):
                running = [self._report(i) for i, task in enumerate(self.tasks) if not task.ended]
                return [*running, Wake(number + 1), Save()]
            case Exhausted():
                news = [self._report(i) for i, task in enumerate(self.tasks) if task.merged]
                return [*news, Stop()]
            case Deadline():
                return [
                    *(self._report(i) for i, task in enumerate(self.tasks) if not task.ended),
                    Stop(),
                ]
        raise AssertionError(f"unexpected event {event}")

    def _returned(self, event: Returned) -> list[Decision]:
        task = self.tasks[event.task]
        if not self.answers_at_merge:
            self._less(task, 1)
        self.updates += 1
        stale = task.version - event.version
        decisions: list[Decision] = []
        if self.max_staleness is not None and stale > self.max_staleness:
            task.too_stale += 1
            decisions.append(Drop(event.task, event.request))
        else:
            task.held.append(event.request)
            task.stale.append(stale)
        if self.period and self.updates % self.period == 0:
            self._waiting = event
            running = tuple(i for i, other in enumerate(self.tasks) if not other.ended)
            return [*decisions, Measure(running)]
        return [*decisions, *self._buffered(event.task, task)]

    def _buffered(self, number: int, task: TaskCounts) -> list[Decision]:
        """Merge the buffer if it is full, and issue the requests that replace its updates."""
        if len(task.held) < task.buffer:
            return [] if self.answers_at_merge else self._answer(number, task)
        held, stale = task.held, task.stale
        task.held, task.stale = [], []
        return self._merge(number, task, held, stale)

    def _merge(
        self, number: int, task: TaskCounts, requests: list[int], stale: list[int]
    ) -> list[Decision]:
        """Merge these updates, and issue the requests that replace them."""
        task.merged += len(requests)
        task.staleness += sum(stale)
        task.stalest = max(task.stalest, *stale)
        decisions: list[Decision] = [Aggregate(number, requests, stale)]
        if self.answers_at_merge:
            self._less(task, len(requests))
        task.version += 1
        if task.later is not None:
            (task.requests, task.buffer), task.later = task.later, None
        if task.version >= self.plans[number].versions:
            return [*decisions, self._report(number), *self._end(number)]
        decisions += self._answer(number, task)
        if self.report_every and task.version % self.report_every == 0:
            decisions.append(self._report(number))
        decisions.append(Save())
        return decisions

    def _transmissions(self, number: int) -> list[Decision]:
        """Let the task's ready clients transmit in groups of b_m, longest waiting first."""
        task, transmissions = self.tasks[number], list[Decision]()
        while len(task.held) >= task.buffer:
            transmissions.append(Transmit(number, task.held[: task.buffer]))
            task.held = task.held[task.buffer :]
        return transmissions

    def _answer(self, number: int, task: TaskCounts) -> list[Decision]:
        """Issue new requests up to R_m: 0 to 2 after an update, any number after a merge."""
        if self.gathering is not None:
            # Keep the maximum number of clients busy: requests beyond R_m go to other tasks.
            others = (i for i, other in enumerate(self.tasks) if i != number and not other.ended)
            return self._fill((number, *others))
        limit = self.budget if self.answers_at_merge else 2
        count = min(limit, task.requests - task.active, self.budget - self.active)
        return [self._ask(number, count)] if count > 0 else []

    def _fill(self, numbers: Sequence[int]) -> list[Decision]:
        """Issue new requests of these tasks, up to R_m of each and the total budget."""
        asks = list[Decision]()
        for number in numbers:
            task = self.tasks[number]
            count = min(task.requests - task.active, self.budget - self.active)
            if count > 0:
                asks.append(self._ask(number, count))
        return asks

    def _ask(self, number: int, count: int) -> Ask:
        self.tasks[number].active += count
        self.active += count
        return Ask(number, count)

    def _less(self, task: TaskCounts, count: int) -> None:
        task.active -= count
        self.active -= count

    def _measured(self, spread: tuple[float | None, ...]) -> list[Decision]:
        """Reallocate requests (Algorithm 3); R and b change at each task's next merge."""
        self.spread = list(spread)
        running = [i for i, task in enumerate(self.tasks) if not task.ended]
        spreads = [i for i in running if spread[i] is not None]
        if len(spreads) > 1:  # a task without a measurement keeps what it has or gets next
            kept = [self.tasks[i] for i in running if i not in spreads]
            budget = self.budget - sum((task.later or [task.requests])[0] for task in kept)
            weights = [apart for i in spreads if (apart := spread[i]) is not None]
            for i, requests in zip(spreads, dealt(weights, budget, self.floor), strict=True):
                self.tasks[i].later = [requests, self.plans[i].buffer_for(requests)]
        event, self._waiting = self._waiting, None
        assert event is not None, "no measurement is pending"
        return self._buffered(event.task, self.tasks[event.task])

    def _end(self, number: int) -> list[Decision]:
        """End a task, and reallocate its requests and buffer to the other tasks."""
        task = self.tasks[number]
        if task.ended:
            return []
        self.active -= task.active
        task.ended, task.active, task.held, task.stale = True, 0, [], []
        running = [i for i, other in enumerate(self.tasks) if not other.ended]
        if not running:
            return [Cancel(number), Stop()]
        weights = [spreads for i in running if (spreads := self.spread[i]) is not None]
        if len(weights) < len(running):
            weights = [float(self.tasks[i].requests) for i in running]
        for i, requests in zip(running, dealt(weights, self.budget, self.floor), strict=True):
            other = self.tasks[i]
            other.requests, other.buffer = requests, self.plans[i].buffer_for(requests)
            other.later = None
        decisions: list[Decision] = [Cancel(number), *self._fill(running)]
        if self.gathering is not None:
            limit_buffers([self.tasks[i] for i in running], self.gathering)
            for i in running:
                decisions += self._transmissions(i)
        return [*decisions, Save()]

    def _report(self, number: int) -> Report:
        """Row of a task, with counts since its previous row."""
        task = self.tasks[number]
        status = {
            "version": task.version,
            "staleness_mean": task.staleness / task.merged if task.merged else 0.0,
            "staleness_max": task.stalest,
            "requests": task.active,
            "buffer": task.buffer,
            "allocation": task.requests,
            "updates": self.updates,
            "lost": task.lost,
        }
        if self.max_staleness is not None:
            status["too_stale"] = task.too_stale
        task.merged = task.staleness = task.stalest = 0
        return Report(task.version, number, status)

    def snapshot(self) -> dict[str, Any]:
        """All counts of the tasks."""
        return {
            "tasks": [asdict(task) for task in self.tasks],
            "active": self.active,
            "updates": self.updates,
            "spread": self.spread,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue with the counts of a snapshot."""
        self.tasks = [TaskCounts(**task) for task in state["tasks"]]
        self.active, self.updates = state["active"], state["updates"]
        self.spread = list(state["spread"])


@dataclass(slots=True)
class TaskCounts:
    """Current counts of a task.

    Args:
        requests: R, target number of active requests.
        buffer: b, updates per merge.
        version: number of merges so far.
        active: requests in progress, plus updates that have not been replaced by a new request yet.
        ended: whether the task has ended and takes no more requests.
        later: R and b from the next version on; None if they do not change.
        held: requests whose updates are buffered for the merge, or held by clients for a
            transmission.
        stale: staleness of the updates that wait for the merge.
        merged: number of updates merged since the last row.
        staleness: sum of the staleness of these updates.
        stalest: maximum staleness of these updates.
        lost: number of updates lost so far.
        too_stale: number of updates dropped so far because of their staleness.
    """

    requests: int
    buffer: int
    version: int = 0
    active: int = 0
    ended: bool = False
    later: list[int] | None = None
    held: list[int] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)
    merged: int = 0
    staleness: int = 0
    stalest: int = 0
    lost: int = 0
    too_stale: int = 0


def dealt(weights: Sequence[float], budget: int, floor: int) -> list[int]:
    """Allocate ``budget`` requests in proportion to ``weights``, at least ``floor`` per task."""
    floor = min(floor, budget // len(weights))
    requests = allocate_requests(weights, budget, floor=floor).value
    assert requests is not None, "the floor is feasible"
    return [int(count) for count in requests]


def limit_buffers(tasks: Sequence[TaskCounts], gathering: int) -> None:
    """Lower buffers so that at least one can always fill while clients hold their updates.

    Each b_m becomes at most R_m, and sum (b_m - 1) < ``gathering``, the number of busy clients.
    Then, if all busy clients hold an update, at least one task has b_m updates. The largest
    buffers are lowered first.
    """
    for task in tasks:
        task.buffer = min(task.buffer, task.requests)
    while sum(task.buffer - 1 for task in tasks) >= gathering:
        max(tasks, key=lambda task: task.buffer).buffer -= 1
