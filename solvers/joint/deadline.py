"""Sizes of the least total energy by a deadline.

Where bits and cycles grow in proportion, the energy V_j(p) of a cell is convex in its size: with
the bands of one unit, p units in p times the time cost p times the energy, and the energy of one
unit is convex in its time. A sum of convex functions of integers is minimal if and only if moving
one unit from a cell to another never lowers it, so that units can be allocated in order of what
they cost. That takes place first on a coarse grid of sizes, then on finer ones around the result.

With a fixed part of other proportions, V_j need not be convex; then all sizes are compared.
"""

from __future__ import annotations

import numpy as np

from channels.arrays import FloatArray, IntArray
from solvers.joint.sized_energy_cells import SizedEnergyCells

_POINTS = 64
"""Sizes per cell that are tried together."""
_TABLE = 4096
"""Sizes per cell that are compared one by one; of more, the bound comes from a grid."""


def cheapest(
    cells: SizedEnergyCells, low: FloatArray, high: FloatArray, quota: int, deadline: float
) -> tuple[FloatArray, float]:
    """Steps [cells] from ``low`` to ``high`` of the least energy, and a bound on it in joules.

    All of these sizes end by the deadline, and some have the sum ``quota``.
    """
    low = np.maximum(low, quota - (high.sum() - high))  # what the other cells leave
    high = np.minimum(high, quota - (low.sum() - low))
    if cells.offsets()[1].all():
        steps = _by_marginals(cells, low, high, quota, deadline)
        return steps, float(cells.solve(steps, deadline).bound.sum())
    if (high - low).max() < _TABLE:
        return _by_table(cells, low, high, quota, deadline)
    steps = _by_marginals(cells, low, high, quota, deadline)
    return steps, _grid_bound(cells, low, high, quota, deadline)


def _by_marginals(
    cells: SizedEnergyCells, low: FloatArray, high: FloatArray, quota: int, deadline: float
) -> FloatArray:
    left, right = low, high
    while True:
        step = max(int(np.ceil((right - left).max() / _POINTS)), 1)
        count = int(np.ceil((right - left).max() / step)) + 1
        points = np.minimum(left + step * np.arange(count)[:, None], right)
        energy = cells.solve(points, deadline).objective
        width = np.diff(points, axis=0)
        cost = np.divide(
            np.diff(energy, axis=0), width, np.full(width.shape, np.inf), where=width > 0
        )
        order = np.argsort(cost, axis=None, kind="stable")
        taken = width.ravel()[order]
        before = taken.cumsum() - taken
        taken = np.clip(quota - points[0].sum() - before, 0, taken)
        added = np.zeros(width.size)
        added[order] = taken
        steps: FloatArray = points[0] + added.reshape(width.shape).sum(0)
        if (
            step == 1
            and ((steps > left) | (left == low)).all()
            and ((steps < right) | (right == high)).all()
        ):
            return steps
        wide = 2 * step if step > 1 else _POINTS
        left, right = np.maximum(steps - wide, low), np.minimum(steps + wide, high)


def _by_table(
    cells: SizedEnergyCells, low: FloatArray, high: FloatArray, quota: int, deadline: float
) -> tuple[FloatArray, float]:
    """All sizes of all cells, by dynamic programming."""
    points = np.minimum(low + np.arange(int((high - low).max()) + 1)[:, None], high)
    solution = cells.solve(points, deadline)
    counts = (high - low).astype(np.int64) + 1
    missing = int(quota - low.sum())
    columns = zip(solution.objective.T, _known(solution.bound).T, counts, strict=True)
    energies, bounds = zip(*((e[:n], b[:n]) for e, b, n in columns), strict=True)
    return low + _least_sum(energies, missing)[0], float(_least_sum(bounds, missing)[1])


def _least_sum(costs: tuple[FloatArray, ...], total: int) -> tuple[IntArray, float]:
    """Indices k_j with sum ``total`` of the least sum_j costs[j][k_j], and that sum."""
    best = np.append(0.0, np.full(total, np.inf))
    taken = np.zeros((len(costs), total + 1), dtype=np.int64)
    for cell, cost in enumerate(costs):
        before, best = best, np.full(total + 1, np.inf)
        for k, one in enumerate(cost[: total + 1]):
            offer = before[: total + 1 - k] + one
            better = offer < best[k:]
            best[k:][better] = offer[better]
            taken[cell, k:][better] = k
    left, steps = total, np.zeros(len(costs), dtype=np.int64)
    for cell in range(len(costs) - 1, -1, -1):
        steps[cell] = taken[cell, left]
        left -= steps[cell]
    return steps, float(best[total])


def _known(bound: FloatArray) -> FloatArray:
    """Bounds in joules; 0 where rounding errors leave none."""
    return np.where(np.isnan(bound), 0.0, bound)


def _grid_bound(
    cells: SizedEnergyCells, low: FloatArray, high: FloatArray, quota: int, deadline: float
) -> float:
    """A bound from a grid of sizes: between its points, energy is at least that of the smaller.

    A price per step takes the place of their sum; the bound is the best over the prices.
    """
    step = int(np.ceil((high - low).max() / _TABLE))
    points = np.minimum(low + step * np.arange(_TABLE + 1)[:, None], high)
    least = _known(cells.solve(points, deadline).bound)
    last = np.minimum(points + step - 1, high)
    down, up = 0.0, 2 * float((np.diff(least, axis=0) / step).max())
    best = 0.0
    for _ in range(100):
        price = (down + up) / 2
        net = least - price * last
        at = net.argmin(0)
        best = max(best, float(net.min(0).sum() + price * quota))
        if np.take_along_axis(last, at[None], 0).sum() < quota:
            down = price
        else:
            up = price
    return best
