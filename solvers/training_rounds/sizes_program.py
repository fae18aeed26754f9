"""Sizes that are common to all draws, as a linear or an integer program (HiGHS).

Its variables are the sizes, the end of each draw's local phase, and the energy of each cell and
draw, which the tangents of its convex function of size and time bound from below. The multipliers
of the linear program bound the cost at all other points of the grid too, see ``Cut``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.packages import quiet_highs
from solvers.training_rounds.units import Model

_UNIT = 1e-3
"""Units of time and energy, whose tolerances are absolute, relative to their size."""
_SECONDS = 10.0
"""Time limit of one integer program; its bound holds nevertheless."""
_STEEP = 1e12, 1e9, 1e6
"""Tangents with larger coefficients, errors to HiGHS, are left out; of more if it fails."""
_GAP = 1e-6
"""Relative gap of an integer program."""


class SizesCase(NamedTuple):
    """What a design of the round has to keep.

    Args:
        local: place of the local steps.
        fixed: part of the work that does not depend on the size, in steps [cells].
        low, high: bounds in steps, [cells].
        quota: sum of the sizes in steps.
        lost: seconds that each cell cannot use, [draws, cells].
        growth: further ones per step of the size, [draws, cells].
        latest: ends, [draws]; inf for no limit.
        weights: w_T and w_E.
    """

    local: int
    fixed: FloatArray
    low: FloatArray
    high: FloatArray
    quota: int
    lost: FloatArray
    growth: FloatArray
    latest: FloatArray
    weights: tuple[float, float]

    def lost_with(self, steps: FloatArray) -> FloatArray:
        """Seconds that each cell cannot use [draws, cells], with sizes in steps [cells]."""
        return self.lost + self.growth * steps


class Cut(NamedTuple):
    """Multipliers of the constraints: a lower bound for all points of the grid.

    With mu >= 0 for the end of each cell, and weights of the tangents of its energy,

        U >= sum_j [(mu tau_H + a + g H) q_j + (mu - s) lost_j(p_j)] + sum_w r_w T_w

    for all sizes p_j and ends that are possible, where q_j is p_j and its fixed part, tau_H is the
    time of a unit, lost_j grows with p_j, and r_w is what the multipliers leave of the cost of a
    second.

    Args:
        per_time: mu, [draws, cells].
        base, per_step, per_second: a, g and s, [draws, cells].
        rest: r, [draws]; >= 0, or the end is limited.
    """

    per_time: FloatArray
    base: FloatArray
    per_step: FloatArray
    per_second: FloatArray
    rest: FloatArray


class SizesAnswer(NamedTuple):
    """The optimum of the program.

    Args:
        steps: [cells].
        ends: [draws].
        bound: on the mean cost of a draw.
        cut: None for whole sizes.
        ended: whether the program was solved, not stopped.
    """

    steps: FloatArray
    ends: FloatArray
    bound: float
    cut: Cut | None
    ended: bool = True


def solve_program(
    model: Model, case: SizesCase, lines: BoolArray, scales: tuple[float, float], whole: bool
) -> SizesAnswer | str:
    """The best sizes and ends for the tangents known so far, or why HiGHS has none.

    Args:
        model: tangents.
        case: constraints.
        lines: which of the tangents to use, [lines, draws, cells].
        scales: typical seconds of a local phase, and typical cost.
        whole: whether steps are integers, not fractions.
    """
    for steep in _STEEP if case.weights[1] else _STEEP[:1]:
        program = _Program(model, case, lines, scales, 1.0 if whole else max(case.quota, 1), steep)
        answer = program.integers() if whole else program.fractions()
        if not isinstance(answer, str):
            break
    return answer


class _Program:
    """Constraints and costs in the program's units.

    Rows: the end of each draw and cell; then the energies above their tangents.
    """

    def __init__(
        self,
        model: Model,
        case: SizesCase,
        lines: BoolArray,
        scales: tuple[float, float],
        step: float,
        steep: float,
    ) -> None:
        self.model, self.case, self.step = model, case, step
        draws, number = self.shape = model.units.shape
        self.second, self.cost = (_UNIT * scale for scale in scales)
        second, joule = (weight / draws for weight in case.weights)
        used = case.high + case.fixed > 0
        soonest = np.where(used, model.units.soonest[case.local] / self.second, 0.0)
        lost, growth = case.lost / self.second, case.growth / self.second
        place = np.arange(draws * number).reshape(draws, number)
        draw, cell = np.divmod(place, number)
        parts: list[tuple[FloatArray, IntArray, IntArray]] = [
            ((soonest + growth) * step, place, cell),
            (np.full(place.shape, -1.0), place, number + draw),
        ]
        right = [(-soonest * case.fixed - lost).ravel()]
        self.costs = np.concatenate(
            [np.zeros(number), np.full(draws, second * self.second / self.cost)]
        )
        self.lines = np.nonzero(np.zeros(lines.shape))
        if joule:
            units, slopes = (x * joule / self.cost for x in model.lines(case.local))
            slopes = slopes * self.second
            sizes = units - slopes * growth
            keep = lines & used & (np.abs(sizes) * step < steep) & (-slopes < steep)
            keep &= (units != 0) | (slopes != 0)
            self.lines = np.nonzero(keep)
            _, draw, cell = self.lines
            units, slopes, sizes = units[keep], slopes[keep], sizes[keep]
            row = place.size + np.arange(len(draw))
            parts += [
                (sizes * step, row, cell),
                (slopes, row, number + draw),
                (np.full(len(row), -1.0), row, number + draws + place[draw, cell]),
            ]
            right.append(slopes * lost[draw, cell] - units * case.fixed[cell])
            self.costs = np.concatenate([self.costs, np.ones(place.size)])
        self.value, self.row, self.column = (
            np.concatenate([part[i].ravel() for part in parts]) for i in range(3)
        )
        self.upper = np.concatenate(right)
        ends = case.latest / self.second
        first = np.zeros(draws) if case.weights[0] else ends
        rest = len(self.costs) - number - draws
        self.bounds = (
            np.concatenate([case.low / step, first, np.zeros(rest)]),
            np.concatenate([case.high / step, ends, np.full(rest, np.inf)]),
        )

    def _matrix(self) -> Any:
        from scipy.sparse import csr_array  # SciPy loads slowly

        keep = self.value != 0
        entries = self.value[keep], (self.row[keep], self.column[keep])
        return csr_array(entries, shape=(len(self.upper), len(self.costs)))

    def _sum(self) -> FloatArray:
        """Coefficients [1, variables] of the sum of the sizes."""
        return np.asarray(np.arange(len(self.costs)) < self.shape[1], dtype=float)[None]

    def _answer(self, x: FloatArray, bound: float, cut: Cut | None) -> SizesAnswer:
        draws, number = self.shape
        steps = np.clip(x[:number] * self.step, self.case.low, self.case.high)
        return SizesAnswer(steps, x[number : number + draws] * self.second, bound, cut)

    def integers(self) -> SizesAnswer | str:
        """Whole sizes."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # SciPy loads slowly

        quota = float(self.case.quota)
        with quiet_highs:
            answer = milp(
                self.costs,
                integrality=self._sum()[0],
                bounds=Bounds(*self.bounds),
                constraints=[
                    LinearConstraint(self._sum(), quota, quota),
                    LinearConstraint(self._matrix(), -np.inf, self.upper),
                ],
                options={"mip_rel_gap": _GAP, "time_limit": _SECONDS},
            )
        if answer.x is None:
            return f"HiGHS ended without a solution ({answer.message})"
        rounded = self._answer(answer.x, float(answer.mip_dual_bound) * self.cost, None)
        return rounded._replace(steps=np.round(rounded.steps), ended=answer.status == 0)

    def fractions(self) -> SizesAnswer | str:
        """Fractions of steps, with multipliers."""
        from scipy.optimize import linprog  # SciPy loads slowly

        with quiet_highs:
            answer = linprog(
                self.costs,
                A_ub=self._matrix(),
                b_ub=self.upper,
                A_eq=self._sum(),
                b_eq=np.array([self.case.quota / self.step]),
                bounds=np.stack(self.bounds, -1),
                method="highs",
            )
        if answer.x is None:
            return f"HiGHS ended without a solution ({answer.message})"
        cut = self._cut(np.maximum(-answer.ineqlin.marginals, 0.0))
        return self._answer(answer.x, float(answer.fun) * self.cost, cut)

    def _cut(self, prices: FloatArray) -> Cut:
        """A bound that also holds if the multipliers are inexact, [rows] in program units."""
        case, (draws, number) = self.case, self.shape
        per_time = prices[: draws * number].reshape(self.shape) * self.cost / self.second
        share = np.zeros(self.shape)  # of the tangents of each energy; at most 1
        base, per_step, per_second = np.zeros((3, *self.shape))
        if case.weights[1]:
            weight = prices[draws * number :]
            at = self.lines[1:]
            np.add.at(share, at, weight)
            weight = weight / np.maximum(share, 1.0)[at] * case.weights[1] / draws
            for total, lines in zip(
                (base, per_step, per_second), self.model.known(self.lines), strict=True
            ):
                np.add.at(total, at, weight * lines)
        second = case.weights[0] / draws
        taken = (per_time - per_second).sum(-1)
        free = (taken > second) & np.isinf(case.latest)
        scale = np.where(free, second / np.where(free, taken, 1.0), 1.0)
        per_time, base, per_step, per_second = (
            x * scale[:, None] for x in (per_time, base, per_step, per_second)
        )
        rest = np.where(free, 0.0, second - taken)
        return Cut(per_time, base, per_step, per_second, rest)
