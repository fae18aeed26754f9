"""Exact mask sizes: hand out steps in the order in which they end, without doing so one by one.

A cell that trains k steps needs f(k) = c g k + b seconds, in float64 and nondecreasing in k, so
the slowest cell is fastest if, over all cells, the steps with the least f are handed out. The water
levels of the problem in real numbers bracket the last of these so closely that some 2 N steps are
left between; their float64 latencies are listed, and the one that completes the quota is selected.
O(N log N) for sorting the list, otherwise O(N).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.mask_sizes.backend import Found, MaskSizeBackend
from solvers.mask_sizes.cells import Cells, Floats, Rows
from solvers.mask_sizes.problem import Problem

_EPS = float(np.finfo(np.float64).eps)
_TURNS = 12  # of Newton's method; two or three are usual


@dataclass(frozen=True)
class Exact(MaskSizeBackend):
    """The method of this module: an optimum in integer arithmetic, in about a millisecond for 1000
    cells. It takes batches, and has no settings."""

    name = "exact"
    batches = True

    def solve(self, problem: Problem) -> Found:
        """Steps with the smallest maximum latency."""
        return Found(exact_steps(problem.cells, problem.quota), np.inf)


def exact_steps(cells: Cells, quota: int) -> Floats:
    """Steps [batch, cells] that sum to ``quota`` in each row, with the smallest maximum latency.

    Every row must be feasible. Of several optimal splits it is the one that gives steps which end
    at the same time to the first cells.
    """
    ended = cells.ended(_water_levels(cells, quota)[..., None])
    sums = ended.sum(-1)
    wide = (sums[0] > quota) | (sums[1] < quota) | _crowded(sums, cells)
    if wide.any():
        ended[:, wide] = _bisect(cells.rows(wide), quota)
        sums = ended.sum(-1)
    steps: Floats = ended[0]
    between = ended[1] - steps
    missing = quota - sums[0]
    # Where offsets dwarf c g, many steps end at one float64 time: no need to list these.
    equal = _crowded(sums, cells)[:, None]
    before, ties = _select(cells, steps, np.where(equal, 0, between), missing)
    ties = np.where(equal, between, ties)
    left = (missing - before.sum(-1))[:, None] - (ties.cumsum(-1) - ties)
    steps += before
    steps += np.minimum(np.maximum(left, 0), ties)
    return steps


def _crowded(sums: Floats, cells: Cells) -> Rows:
    """Rows [batch] with more steps between two levels, ``sums`` [2, batch], than to be listed."""
    crowded: Rows = sums[1] - sums[0] > 4 * cells.low.shape[-1] + 64
    return crowded


def _water_levels(cells: Cells, quota: int) -> Floats:
    """Levels [2, batch] of quota and of quota + N steps if steps could be divided (water-filling).

    Solved by Newton's method, whose steps are exact while the same cells stay within their bounds.
    As steps end whole, at most quota of them end by the first level, and at least that by the
    second: nearly always. The caller checks.
    """
    width = cells.seconds * cells.step
    start, stop = cells.offset + width * cells.low, cells.offset + width * cells.high
    growing = cells.low < cells.high
    full = np.zeros_like(growing)
    for _ in range(_TURNS):
        rate = np.maximum((growing / width).sum(-1), 1e-120)
        fixed = np.where(full, cells.high, np.where(growing, -cells.offset / width, cells.low))
        level = (quota - fixed.sum(-1)) / rate
        full = stop <= level[:, None]
        now = (start < level[:, None]) & ~full
        if (now == growing).all():
            break
        growing = now
    margin = 4 * _EPS * np.abs(level)
    return np.stack([level - margin, level + margin + width.shape[-1] / rate])


def _bisect(cells: Cells, quota: int) -> Floats:
    """Steps [2, batch, cells] that end by two levels around the optimum, with few between.

    Many are between only if all of these end at the same time, or if the first sum is the quota.
    """
    first = np.where(cells.low < cells.high, cells.latency(cells.low + 1), 1e300).min(-1)
    levels = np.stack([np.nextafter(first, 0), cells.latency(cells.high).max(-1)])
    ended = np.stack([cells.low, cells.high])
    while True:
        sums = ended.sum(-1)
        rows = _crowded(sums, cells) & (sums[0] < quota)
        rows &= np.nextafter(levels[0], np.inf) < levels[1]
        if not rows.any():
            return ended
        below, above = levels[:, rows]
        # The geometric mean finds the magnitude first.
        level = np.where(above > 2 * below, np.sqrt(below) * np.sqrt(above), (below + above) / 2)
        steps = cells.rows(rows).ended(level[:, None])
        side = np.where(steps.sum(-1) <= quota, 0, 1)
        index = np.flatnonzero(rows)
        levels[side, index], ended[side, index] = level, steps


def _select(
    cells: Cells, steps: Floats, between: Floats, missing: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of the ``between`` steps that follow ``steps``, the ``missing``-th [batch] to end.

    Returns:
        How many of them end before it, and how many with it, each [batch, cells].
    """
    batch, number = steps.shape
    each = between.ravel().astype(np.int64)
    cell = np.repeat(np.arange(batch * number), each)
    ends = each.cumsum()
    rank = np.arange(1, len(cell) + 1) - (ends - each)[cell]
    units = cells.step * (steps.ravel()[cell] + rank)
    latency = cells.seconds.ravel()[cell] * units + cells.offset.ravel()[cell]
    row_end = ends[number - 1 :: number]
    row_start = np.concatenate([[0], row_end[:-1]])
    row = cell // number
    table = np.full((batch, max(int((row_end - row_start).max()), 1)), np.inf)
    table[row, np.arange(len(cell)) - row_start[row]] = latency
    table.sort(-1)
    none = (missing == 0) | (row_end == row_start)
    place = np.where(none, 1, missing).astype(np.int64) - 1
    last = np.where(none, -np.inf, table[np.arange(batch), place])[row]
    before = np.bincount(cell[latency < last], minlength=batch * number)
    ties = np.bincount(cell[latency == last], minlength=batch * number)
    return before.reshape(batch, number), ties.reshape(batch, number)
