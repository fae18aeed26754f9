"""Requests and buffers of several tasks: what each begins with, and how they are dealt out anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from solvers import allocate_requests


@dataclass(frozen=True)
class TaskPlan:
    """What a task begins with.

    Args:
        requests: R_m, requests out at a time.
        buffer: b_m, updates that make a merge.
        versions: T_m, merges after which it ends.
        scales: whether the buffer grows and shrinks with the requests, R / b being kept.
    """

    requests: int
    buffer: int
    versions: int
    scales: bool = True

    def buffer_for(self, requests: int) -> int:
        """b_m, which keeps the ratio R / b that the task began with, if it is to change at all."""
        if not self.scales:
            return self.buffer
        return max(round(self.buffer * requests / self.requests), 1)


@dataclass(slots=True)
class TaskCounts:
    """Counts of an active task.

    Args:
        requests: R.
        buffer: b.
        version: merges so far.
        active: requests that are out, and updates that no new request has answered yet.
        ended: whether it takes no more requests.
        later: R and b from the next version on; None: as they are.
        held: requests whose updates wait for the merge, or at their clients for a transmission.
        stale: staleness of those that wait for the merge.
        merged: updates merged since the last row.
        staleness: sum over these.
        stalest: maximum over these.
        lost: updates lost so far.
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
    """``budget`` requests in proportion to ``weights``, and never less than a task's ``floor``."""
    floor = min(floor, budget // len(weights))
    requests = allocate_requests(weights, budget, floor=floor).value
    assert requests is not None, "the floor fits"
    return [int(count) for count in requests]


def limit_buffers(tasks: Sequence[TaskCounts], gathering: int) -> None:
    """Lower buffers until each can fill, where clients hold their updates until they transmit.

    A buffer is at most R_m, and sum (b_m - 1) < ``gathering``, the number of busy clients: when all
    of them hold an update, some task has b_m. The largest buffers are lowered first.
    """
    for task in tasks:
        task.buffer = min(task.buffer, task.requests)
    while sum(task.buffer - 1 for task in tasks) >= gathering:
        max(tasks, key=lambda task: task.buffer).buffer -= 1
