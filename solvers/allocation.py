"""Allocation of requests: how many active requests each of several tasks gets."""

from __future__ import annotations

import heapq
import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arguments import checked
from channels.validation import whole_number
from solvers.solution import Solution, Status

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Within these limits squares do not overflow, and integers are exact in float64.
_MAX_WEIGHT, _MAX_REQUESTS = 1e150, 2**50


@checked()
def allocate_requests(
    weights: ArrayLike, total: int, *, floor: ArrayLike = 1
) -> Solution[IntArray]:
    """Allocate requests to tasks in proportion to weights (FedAST's Realloc, problem (6)).

    Solves  min_R sum_m w_m^2 / R_m  over integers R_m >= floor_m with sum_m R_m = total, where
    0 / 0 is 0. Over real numbers, and if no floor is active, the solution is R_m proportional to
    w_m, problem (2) (Askin et al., UAI 2024, Section 4 and Appendix A).

    The cost is separable and convex, so a greedy algorithm is optimal: it allocates one request at
    a time to the task with the largest saving w^2 / (R (R + 1)), computed in float64. On ties the
    task with the smaller index comes first. The running time does not grow with ``total``.

    >>> import solvers
    >>> solvers.allocate_requests([3.0, 1.0], 8).value.tolist()
    [6, 2]

    Args:
        weights: w [tasks], each from 0 to 1e150: sigma_m of Algorithm 3, the standard deviation.
            A task of weight 0 gets its floor; if all weights are 0, they count as equal.
        total: number of requests to allocate, from 0 to 2^50.
        floor: minimum number of requests per task, one integer or [tasks], >= 0. A task of positive
            weight gets at least one request even at floor 0, because its cost is infinite at 0.

    Returns:
        Requests [tasks]; the bound equals the objective. If the floors add up to more than
        ``total``, there is no value, and the message states the shortfall.
    """
    start = time.perf_counter()
    sigma = _weights(weights)
    quota = whole_number("total", total)
    if not 0 <= quota <= _MAX_REQUESTS:
        raise ValueError(f"total is {quota}: give a number of requests from 0 to 2^50.")
    floors = _floors(floor, sigma.shape)
    low = np.maximum(floors, sigma > 0)
    if low.sum() > quota:
        message = _shortfall(floors, low, quota)
        seconds = time.perf_counter() - start
        return Solution(None, np.inf, np.inf, 0.0, Status.INFEASIBLE, "greedy", seconds, message)
    # Scaling by a power of two is exact.
    shares = np.ldexp(sigma, -int(np.frexp(sigma.max())[1])) if sigma.any() else sigma + 1
    requests = _greedy(shares, low, quota)
    positive = sigma > 0
    objective = float((sigma[positive] ** 2 / requests[positive]).sum())
    seconds = time.perf_counter() - start
    return Solution(requests, objective, objective, 0.0, Status.OPTIMAL, "greedy", seconds)


def _greedy(weights: FloatArray, low: IntArray, quota: int) -> IntArray:
    """Start from ``low``, then allocate the rest of ``quota`` greedily by largest saving."""
    requests = _head_start(weights, low, quota).tolist()
    squares = (weights**2).tolist()

    def entry(task: int) -> tuple[float, int]:
        count, square = requests[task], squares[task]
        saved = square / (count * (count + 1)) if count else (np.inf if square else 0.0)
        return -saved, task

    heap = [entry(task) for task in range(len(requests))]
    heapq.heapify(heap)
    for _ in range(quota - sum(requests)):
        task = heap[0][1]
        requests[task] += 1
        heapq.heapreplace(heap, entry(task))
    return np.array(requests, dtype=np.int64)


def _head_start(weights: FloatArray, low: IntArray, quota: int) -> IntArray:
    """Requests that the greedy algorithm is certain to allocate; about three per task remain.

    A task's k-th request saves w^2 / (k (k - 1)). This exceeds 1 / t^2 if and only if
    k (k - 1) < (w t)^2, which implies k < w t + 1. If at most ``quota`` requests over all tasks
    save more than 1 / t^2, the greedy algorithm allocates all of them.
    """
    room = quota - len(low) - 1
    above = weights > 0
    scale = 0.0
    while above.any():
        scale = (room - low[~above].sum()) / weights[above].sum()
        starved = above & (weights * scale < low)
        if not starved.any():
            break
        above &= ~starved
    # One less, because the savings are rounded.
    certain = np.floor(np.where(above, weights * scale, 0.0)) - 1
    return np.maximum(low, certain.astype(np.int64))


def _weights(weights: ArrayLike) -> FloatArray:
    sigma = np.asarray(weights, dtype=np.float64)
    if sigma.ndim != 1 or not sigma.size:
        raise ValueError(f"weights has shape {sigma.shape}: give [tasks] with at least one task.")
    wrong = ~((sigma >= 0) & (sigma <= _MAX_WEIGHT))
    if wrong.any():
        task = int(wrong.argmax())
        raise ValueError(
            f"weights[{task}] is {sigma[task]}: give a finite number from 0 to {_MAX_WEIGHT:g}."
        )
    return sigma


def _floors(floor: Any, shape: tuple[int, ...]) -> IntArray:
    values = np.asarray(floor)
    if values.shape not in {(), shape} or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"floor has shape {values.shape} and dtype {values.dtype}: give one integer, or "
            f"[tasks] integers, here {shape}."
        )
    wrong = (values < 0) | (values > _MAX_REQUESTS)
    if wrong.any():
        index = f"[{int(wrong.argmax())}]" if values.ndim else ""
        raise ValueError(
            f"floor{index} is {values[wrong].flat[0]}: give an integer from 0 to 2^50."
        )
    return np.full(shape, values, dtype=np.int64)


def _shortfall(floors: IntArray, low: IntArray, quota: int) -> str:
    min_total, asked = sum(low.tolist()), sum(floors.tolist())
    text = f"floors add up to {min_total}, {min_total - quota} more than total {quota}"
    if asked <= quota:
        text += "; a floor of 0 counts as 1 if the task's weight is positive"
    return text
