"""Exact mask sizes: allocate steps in order of their latencies, most of them in bulk.

A cell that trains k steps needs f(k) = c g k + b seconds, computed in float64 and nondecreasing in
k. The slowest cell's latency is therefore minimal if the steps with the smallest f over all cells
are allocated. The water levels of the continuous relaxation bracket the last of these steps so
closely that about 2 N steps remain in between. The method lists their float64 latencies and selects
the one that completes the quota. Sorting this list costs O(N log N), everything else O(N).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.mask_sizes.cell_steps import CellSteps, Floats, Rows
from solvers.mask_sizes.mask_size_backend import FoundSizes, MaskSizeBackend
from solvers.mask_sizes.mask_size_problem import MaskSizeProblem

_EPS = float(np.finfo(np.float64).eps)
_MAX_ITERATIONS = 12  # of Newton's method; two or three usually suffice


@dataclass(frozen=True)
class Exact(MaskSizeBackend):
    """The exact method: finds the integer optimum, in about a millisecond for 1000 cells.

    It solves batches and has no settings.

    >>> import solvers
    >>> from solvers.mask_sizes import Exact
    >>> solvers.optimize_mask_sizes([1.0, 3.0], 8, backend=Exact()).backend
    'exact'
    """

    name = "exact"
    batches = True

    def solve(self, problem: MaskSizeProblem) -> FoundSizes:
        """Find the steps with the smallest maximum latency."""
        return FoundSizes(exact_steps(problem.cells, problem.quota), np.inf)


def exact_steps(cells: CellSteps, quota: int) -> Floats:
    """Steps [batch, cells] that sum to ``quota`` in each row, with the smallest maximum latency.

    Every row must be feasible. If several allocations are optimal, steps with equal latencies
    go to the cells with the smallest index.
    """
    ended = cells.ended(_water_levels(cells, quota)[..., None])
    sums = ended.sum(-1)
    wide = (sums[0] > quota) | (sums[1] < quota) | _too_many(sums, cells)
    if wide.any():
        ended[:, wide] = _bisect(cells.rows(wide), quota)
        sums = ended.sum(-1)
    steps: Floats = ended[0]
    between = ended[1] - steps
    missing = quota - sums[0]
    # If offsets are much larger than c g, many steps have equal latencies: do not list them.
    equal = _too_many(sums, cells)[:, None]
    before, ties = _select(cells, steps, np.where(equal, 0, between), missing)
    ties = np.where(equal, between, ties)
    left = (missing - before.sum(-1))[:, None] - (ties.cumsum(-1) - ties)
    steps += before
    steps += np.minimum(np.maximum(left, 0), ties)
    return steps


def _too_many(sums: Floats, cells: CellSteps) -> Rows:
    """Whether too many steps remain between the two levels to list them, [batch]."""
    many: Rows = sums[1] - sums[0] > 4 * cells.low.shape[-1] + 64
    return many


def _water_levels(cells: CellSteps, quota: int) -> Floats:
    """Water levels [2, batch] of the continuous relaxation for quota and quota + N steps.

    Newton's method finds them; it is exact once the set of cells strictly between their bounds no
    longer changes. Since steps are integers, at most ``quota`` steps fit into the first level and
    at least ``quota`` into the second in nearly all cases. The caller checks this.
    """
    width = cells.seconds * cells.step
    start, stop = cells.offset + width * cells.low, cells.offset + width * cells.high
    growing = cells.low < cells.high
    full = np.zeros_like(growing)
    for _ in range(_MAX_ITERATIONS):
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


def _bisect(cells: CellSteps, quota: int) -> Floats:
    """Steps [2, batch, cells] that fit into two levels around the optimum, with few in between.

    Many steps remain in between only if all of them have the same latency, or if the first sum
    equals the quota.
    """
    first = np.where(cells.low < cells.high, cells.latency(cells.low + 1), 1e300).min(-1)
    levels = np.stack([np.nextafter(first, 0), cells.latency(cells.high).max(-1)])
    ended = np.stack([cells.low, cells.high])
    while True:
        sums = ended.sum(-1)
        rows = _too_many(sums, cells) & (sums[0] < quota)
        rows &= np.nextafter(levels[0], np.inf) < levels[1]
        if not rows.any():
            return ended
        below, above = levels[:, rows]
        # The geometric mean finds the order of magnitude first.
        level = np.where(above > 2 * below, np.sqrt(below) * np.sqrt(above), (below + above) / 2)
        steps = cells.rows(rows).ended(level[:, None])
        side = np.where(steps.sum(-1) <= quota, 0, 1)
        index = np.flatnonzero(rows)
        levels[side, index], ended[side, index] = level, steps


def _select(
    cells: CellSteps, steps: Floats, between: Floats, missing: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Select the steps that complete the quota, in order of their latencies.

    Each cell has ``between`` candidates, the steps after its first ``steps``. The last step to
    allocate is the ``missing``-th candidate [batch].

    Returns:
        The number of candidates with a lower latency than the last step, and the number with the
        same latency, each [batch, cells].
    """
    batch, number = steps.shape
    counts = between.ravel().astype(np.int64)
    cell = np.repeat(np.arange(batch * number), counts)
    ends = counts.cumsum()
    rank = np.arange(1, len(cell) + 1) - (ends - counts)[cell]
    units = cells.step * (steps.ravel()[cell] + rank)
    latency = cells.seconds.ravel()[cell] * units + cells.offset.ravel()[cell]
    row_end = ends[number - 1 :: number]
    row_start = np.concatenate([[0], row_end[:-1]])
    row = cell // number
    table = np.full((batch, max(int((row_end - row_start).max()), 1)), np.inf)
    table[row, np.arange(len(cell)) - row_start[row]] = latency
    table.sort(-1)
    none = (missing == 0) | (row_end == row_start)
    index = np.where(none, 1, missing).astype(np.int64) - 1
    last = np.where(none, -np.inf, table[np.arange(batch), index])[row]
    before = np.bincount(cell[latency < last], minlength=batch * number)
    ties = np.bincount(cell[latency == last], minlength=batch * number)
    return before.reshape(batch, number), ties.reshape(batch, number)
