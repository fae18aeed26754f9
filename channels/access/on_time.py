"""Which clients should send in turn: the most uploads that end by a deadline, and how soon."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray

STEP = 1e-13
"""Relative step to earlier ends, above the rounding errors of sums of seconds."""


def soonest_in_turn(ready: FloatArray, alone: FloatArray, count: int) -> BoolArray:
    """The clients whose uploads, sent one at a time without interruption, all end soonest.

    Reversed in time, uploads that end by T are jobs that are free at 0 and due at T - ready_i. The
    most of them are on time by the rule of Moore and Hodgson (Moore, Management Science 15(1),
    1968), so bisection over T finds the smallest T by which ``count`` uploads can end.

    Args:
        ready: [clients], seconds until each client can send.
        alone: [clients], seconds of its upload; 0 if it has nothing to send and does not wait, inf
            if its upload would never end.
        count: number of clients to choose.

    Returns:
        [clients] boolean; all whose uploads end, if these are fewer than ``count``.
    """
    chosen = np.isfinite(ready + alone)
    if np.count_nonzero(chosen) <= count:
        return chosen
    chosen[:] = False
    if count < 1:
        return chosen
    some = _undominated(ready, alone, count)
    ready, alone = ready[some], alone[some]
    best = np.argsort(ready + alone, kind="stable")[:count]
    low, high = 0.0, _end(ready[best], alone[best])
    while high > 0:
        target = (low + high) / 2
        last = not low < target < high * (1 - STEP)
        if last:  # no earlier end but by rounding errors
            target = high * (1 - STEP)
        accepted = _on_time(ready, alone, target)
        if len(accepted) >= count:
            accepted = accepted[np.argsort(alone[accepted], kind="stable")[:count]]
            best, reached = accepted, _end(ready[accepted], alone[accepted])
            if last and not reached < high:
                break
            high = min(reached, high)
        elif last:
            break
        else:
            low = target
    chosen[some[best]] = True
    return chosen


def _undominated(ready: FloatArray, alone: FloatArray, count: int) -> IntArray:
    """Clients for which fewer than ``count`` others are ready no later and send no longer.

    Of several best choices, one has only such clients.
    """
    longest: list[float] = []  # the ``count`` shortest uploads so far, negated
    kept = []
    for client in np.lexsort((alone, ready)).tolist():
        took = float(alone[client])
        if not np.isfinite(took + ready[client]):
            continue
        if len(longest) < count:
            heappush(longest, -took)
        elif took < -longest[0]:
            heapreplace(longest, -took)
        else:
            continue
        kept.append(client)
    return np.sort(np.array(kept, dtype=np.int64))


def _on_time(ready: FloatArray, alone: FloatArray, end: float) -> IntArray:
    """The most clients whose uploads can all end by ``end``."""
    idle = np.flatnonzero((alone == 0) & (ready <= end))
    sends = np.flatnonzero((alone > 0) & (ready < end))
    order = sends[np.argsort(-ready[sends], kind="stable")]
    due = (end - ready[order]).tolist()
    heap: list[tuple[float, int]] = []
    total = 0.0
    for client, took, limit in zip(order.tolist(), alone[order].tolist(), due, strict=True):
        heappush(heap, (-took, client))
        total += took
        if total > limit:
            total += heappop(heap)[0]
    return np.concatenate([idle, np.array([client for _, client in heap], dtype=np.int64)])


def _end(ready: FloatArray, alone: FloatArray) -> float:
    """When the last of these clients ends, sending in the order of readiness."""
    sends = np.argsort(ready, kind="stable")[alone[np.argsort(ready, kind="stable")] > 0]
    # The last upload ends at max over k of (ready_k + all uploads from k on).
    after = np.cumsum(alone[sends][::-1])[::-1]
    return float(np.max(ready[sends] + after, initial=ready.max(initial=0.0)))
