"""The common end of several cells that minimises seconds plus the weighted energy of all cells.

A synchronous round lasts as long as its slowest cell. With E_j(T) the least energy of cell j within
its time T, the best end of all cells minimises

    T + W sum_j E_j(T - a_j)

where a_j is the time that cell j cannot use. E_j is convex and decreasing, and its derivative is
the slope of the dual problem at the optimal prices. The search is for W sum_j -E_j'(T - a_j) = 1:
the logarithm of the left side falls with ln T at slopes of about 1 to 3. Tangents of all E_j at
the end found bound the objective from below.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.bands.least_time import least_time
from solvers.energy.energy_problem import EnergyProblem
from solvers.energy.least_energy import EnergyPlan, least_energy, no_plan

_CLOSE = 1e-4
"""Relative rest of the worth of a second; the objective misses about the square of it."""
_SHORT = 1e-13
"""Relative width of a bracket of the end from which on it counts as the end."""
_MAX_STEPS = 60
_ENDS = 8
"""Ends that are solved together before the search; so many cost little more than one."""


class CommonEnd(NamedTuple):
    """The best common ends.

    Args:
        end: T in seconds, [groups].
        until: end of each cell's local phase, T - a_j or the least time if rounding errors make
            that later, [groups, cells]; 0 for a cell without work.
        objective: T plus the weighted energy, [groups].
        bound: no end has a lower objective than this, [groups].
        plans: least energies of the problems at the ends; without work, of no energy.
    """

    end: FloatArray
    until: FloatArray
    objective: FloatArray
    bound: FloatArray
    plans: EnergyPlan


def common_end(
    problem: EnergyProblem, lost: FloatArray, weight: float, latest: FloatArray | None = None
) -> CommonEnd:
    """Find the end that minimises T + W x joules of the cells of each group.

    Args:
        problem: cells [groups x cells], group by group, whose clients all have channels, powers
            and CPUs for what they do. Deadlines and weights in it are ignored.
        lost: a, seconds before or after its local phase that each cell cannot use,
            [groups, cells]; -inf for a cell that the end does not depend on.
        weight: W >= 0, seconds per joule; with 0 all cells end as soon as the slowest can.
        latest: [groups], largest ends; None for no limit. Ends before the least times are raised.
    """
    groups = len(lost)
    works: BoolArray = np.asarray(((problem.bits > 0) | (problem.cycles > 0)).any(-1))
    shortest = np.zeros(len(works))
    at = np.flatnonzero(works)
    if at.size:
        shortest[at] = least_time(problem.cells(at))[1]
    low = np.maximum((shortest.reshape(lost.shape) + lost).max(-1), 0.0)
    top = np.full(groups, np.inf) if latest is None else np.maximum(latest, low)
    works, soonest = works.reshape(lost.shape), shortest.reshape(lost.shape)
    together = _Together(problem, lost, weight, works, soonest)
    if weight == 0 or not works.any():
        total = together.energy(low)[0]
        return CommonEnd(low, together.until(low), low + weight * total, low, together.plans)
    end, total, worth, base, reach = together.search(low, top)
    objective = end + weight * total
    # Beyond the bracket of the best end costs rise; within it they are above the tangent.
    finite = np.isfinite(worth)
    bound = end + weight * base + np.where(finite, 1 - worth, 0.0) * reach
    bound = np.where(finite | (end >= top), bound, low)
    return CommonEnd(end, together.until(end), objective, np.fmin(bound, objective), together.plans)


class _Together:
    """Energies of the cells of groups that end together."""

    def __init__(
        self,
        problem: EnergyProblem,
        lost: FloatArray,
        weight: float,
        works: BoolArray,
        shortest: FloatArray,
    ) -> None:
        self.problem, self.lost, self.weight = problem, lost, weight
        self.works, self.shortest = works, shortest
        self.plans = no_plan(problem)
        """The last plan of each problem."""

    def until(self, end: FloatArray) -> FloatArray:
        """Ends [groups, cells] of the local phases of groups that end at ``end``."""
        return np.where(self.works, np.maximum(end[:, None] - self.lost, self.shortest), 0.0)

    def _rows(self, groups: IntArray) -> tuple[IntArray, IntArray]:
        """Working cells of some groups: places in ``groups``, and rows of the problem."""
        place, cell = np.nonzero(self.works[groups])
        return place, groups[place] * self.works.shape[1] + cell

    def energy(
        self, end: FloatArray, groups: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Joules, worth of a second and lower bound of the joules of groups ending at ``end``."""
        groups = np.arange(len(self.works)) if groups is None else groups
        place, rows = self._rows(groups)
        until = end[place] - self.lost.reshape(-1)[rows]
        until = np.maximum(until, self.shortest.reshape(-1)[rows])
        ones = np.ones(len(rows))
        some = replace(self.problem.rows(rows), deadline=until, weights=(0.0 * ones, ones))
        plan = least_energy(some, until)
        for whole, values in zip(self.plans, plan, strict=True):
            whole[rows] = values
        sums = np.zeros((3, len(groups)))
        for whole, values in zip(sums, (plan.energy, -plan.slope, plan.bound), strict=True):
            np.add.at(whole, place, values)
        # At the least time, a second can be worth any number of joules.
        worth = self.weight * sums[1] if self.weight else np.zeros(len(groups))
        return sums[0], worth, sums[2]

    def alone(self) -> FloatArray:
        """Ends [groups, cells] where the cells' worths are equal and sum to 1; 0 without work."""
        place, rows = self._rows(np.arange(len(self.works)))
        share = 1.0 / self.works.sum(-1)[place]
        free = np.full(len(rows), np.nan)
        weights = share, np.full(len(rows), self.weight)
        some = replace(self.problem.rows(rows), deadline=free, weights=weights)
        ends = np.zeros(self.works.size)
        ends[rows] = least_energy(some, free).end + self.lost.reshape(-1)[rows]
        return ends.reshape(self.works.shape)

    # A second may be worth nothing, and a curve through few points may end anywhere.
    @np.errstate(divide="ignore", over="ignore")
    def search(self, low: FloatArray, top: FloatArray) -> tuple[FloatArray, ...]:
        """Ends, joules, worths of a second at the ends, lower bounds, and how far the best are.

        All are [groups]; the best end is between the one found and this plus the last array.
        """
        alone = self.alone()
        left = np.clip(np.where(self.works, alone, np.inf).min(-1), low, top)
        right = np.clip(alone.max(-1), left, top)
        end, (total, worth, base, reach) = low.copy(), np.zeros((4, len(low)))
        at = np.flatnonzero(self.works.any(-1))
        a, b = left[at] * (1 - _SHORT), right[at] * (1 + _SHORT)
        lines, rests = self._sampled(at, left[at], right[at])
        for _ in range(_MAX_STEPS):
            # The bracket from all ends so far, and the root of the curve through the nearest.
            a = np.maximum(a, np.where(rests >= 0, np.exp(lines), 0.0).max(-1))
            b = np.minimum(b, np.where(rests <= 0, np.exp(lines), np.inf).min(-1))
            goal = np.clip(np.exp(_root(lines, rests)), left[at], right[at])
            end[at] = now = np.where((goal > a) & (goal < b), goal, (a + b) / 2)
            total[at], worth[at], base[at] = self.energy(now, at)
            rest = np.log(worth[at])
            reach[at] = np.where(rest > 0, np.maximum(b, now), np.minimum(a, now)) - now
            done = (np.abs(rest) <= _CLOSE) | (b - a <= 4 * _SHORT * b)
            done |= (now == right[at]) & (rest >= 0) | (now == left[at]) & (rest <= 0)
            if done.all():
                break
            keep = ~done
            at, a, b = at[keep], a[keep], b[keep]
            lines = np.column_stack((lines, np.log(now)))[keep]
            rests = np.column_stack((rests, rest))[keep]
        return end, total, worth, base, reach

    def _sampled(
        self, groups: IntArray, left: FloatArray, right: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Logarithms of ends between two, and of the worths there, [groups, ends] each."""
        ends = left[:, None] * (right / left)[:, None] ** np.linspace(0, 1, _ENDS)
        worth = self.energy(ends.reshape(-1), groups.repeat(_ENDS))[1].reshape(ends.shape)
        return np.log(ends), np.log(worth)


def _root(lines: FloatArray, rests: FloatArray) -> FloatArray:
    """Where a decreasing curve is 0: inverse interpolation by the four values nearest to 0."""
    order = np.abs(rests).argsort(-1)[:, :4]  # NaN comes last
    x, y = (np.take_along_axis(points, order, -1) for points in (lines, rests))
    with np.errstate(all="ignore"):
        for step in range(1, x.shape[1]):  # Neville's scheme at 0
            first, last = y[:, :-step], y[:, step:]
            x_new = (last * x[:, :-1] - first * x[:, 1:]) / (last - first)
            x = np.where(np.isfinite(x_new), x_new, x[:, :-1])
    return np.asarray(x[:, 0])
