"""Requests and buffers of several tasks: initial values, counts, and reallocation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from solvers import allocate_requests


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
