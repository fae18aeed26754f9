"""Sizes and a common time of the least weighted sum of seconds and joules.

With bits and cycles in proportion to q_j, the size of cell j and its fixed part, the least energy
within T is q_j v_j(T / q_j), where v_j is the energy of one unit. v_j is convex in its time, so
this perspective is convex in q_j and T together, and a tangent v_j(tau) >= a + s tau bounds it from
below by a q_j + s T for all sizes and times. Outer approximation (Duran and Grossmann, Mathematical
Programming 36, 1986): an integer program minimises the cost with all bounds known so far, and the
best time for its sizes gives further bounds, until the two costs agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray, IntArray
from solvers.joint.fronts import Fronts, Tangents
from solvers.joint.sized_energy_cells import SizedEnergyCells
from solvers.packages import quiet_highs

_ENOUGH = 1e-7
"""Relative gap at which the search ends; that of the integer program is a fraction of it."""
_MAX_TURNS = 100
_MOST = 10**6
"""With more steps, no integer program is solved: rounded fractions cost little more."""
_UNIT = 1e-3
"""Units of time and cost in the program, whose tolerances are absolute, relative to the best."""
_SECONDS = 10.0
"""Time limit of one integer program; its bound holds nevertheless."""
_STEEP = 1e12, 1e9, 1e6
"""Tangents with larger coefficients, errors to HiGHS, are left out; of more if it fails."""


class Weighted(NamedTuple):
    """The best sizes and time found.

    Args:
        steps: [cells].
        seconds: T.
        bound: on the cost, in joules.
        message: why the search has ended early, if it has.
    """

    steps: FloatArray
    seconds: float
    bound: float
    message: str = ""


def cheapest_time_and_sizes(
    cells: SizedEnergyCells, low: FloatArray, high: FloatArray, quota: int, second: float
) -> Weighted:
    """Minimise ``second`` x T + joules over T and steps [cells] from ``low`` to ``high``.

    Args:
        cells: with fixed parts in proportion (``SizedEnergyCells.offsets``) that can be sent.
        low, high: [cells], with sums around ``quota``; 0 for cells that cannot send.
        quota: sum of the steps.
        second: > 0, joules that a second is worth.
    """
    fronts, fixed = Fronts(cells), cells.offsets()[0]
    steps = rounded(_soonest(fronts.soonest[1], fixed, low, high, quota), low, high, quota)
    seconds, best = fronts.best_seconds(steps + fixed, second)
    if seconds == 0:  # nothing to compute or send
        return Weighted(steps, 0.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):  # larger sizes end after best / second
        ends = np.floor(best / second / fronts.soonest[0] - fixed + 1e-6)
    high = np.maximum(np.minimum(high, np.where(np.isnan(ends), np.inf, ends)), steps)
    program = _Program(fronts, fixed, low, high, quota, second)
    program.add(fronts.tau(steps + fixed, seconds) * np.geomspace(1 / 64, 64, 33)[:, None])
    bound, whole, message = 0.0, False, ""
    for _ in range(_MAX_TURNS):
        answer = program.solve(whole, seconds, best)
        if isinstance(answer, str):
            message = answer
            break
        trial, end, lower, ended = answer
        if not whole:  # fractions first, until their cost is known or their bound stays
            program.refine(fronts.tau(trial + fixed, end))
            cost = second * end + fronts.energy(trial + fixed, end)
            whole = min(cost - lower, lower - bound) <= _ENOUGH * lower
            trial = rounded(trial, low, high, quota)
        bound = max(bound, lower)
        end, cost = fronts.best_seconds(trial + fixed, second)
        if cost < best:
            steps, seconds, best = trial, end, cost
        if best - bound <= _ENOUGH * best or (whole and quota > _MOST):
            break
        if not ended:  # further programs take as long and bound little more
            message = "an integer program of HiGHS reached its time limit"
            break
        program.add(fronts.tau(trial + fixed, end)[None])
    return Weighted(steps, seconds, min(bound, best), message)


def _soonest(
    tau: FloatArray, fixed: FloatArray, low: FloatArray, high: FloatArray, quota: int
) -> FloatArray:
    """Fractions of steps [cells] that end together, as far as ``low`` and ``high`` permit."""
    begin, end = 0.0, float(((high + fixed) * tau).max())
    sizes = high
    for _ in range(100):
        middle = (begin + end) / 2
        quotients = np.divide(middle, tau, np.full(len(tau), np.inf), where=tau > 0)
        fitting = np.clip(quotients - fixed, low, high)
        if fitting.sum() < quota:
            begin = middle
        else:
            end, sizes = middle, fitting
    return sizes


def rounded(steps: FloatArray, low: FloatArray, high: FloatArray, quota: int) -> FloatArray:
    """Whole steps [cells] next to ``steps``, with sum ``quota``."""
    whole = np.clip(np.floor(steps), low, high)
    missing = int(quota - whole.sum())
    side = 1 if missing > 0 else -1
    while missing:
        room = high - whole if missing > 0 else whole - low
        order = np.argsort(side * (whole - steps), kind="stable")
        chosen = order[room[order] > 0][: abs(missing)]
        moved = np.minimum(room[chosen], abs(missing) // len(chosen))
        whole[chosen] += side * moved
        missing -= side * int(moved.sum())
    return whole


class _Program:
    """The least cost of sizes, time and energies above their bounds, by HiGHS.

    Its variables are the steps (in their sum's unit, if they need not be whole), the time and the
    energies of the cells; time and energy are in units of ``_UNIT`` x the best known ones.
    """

    def __init__(
        self,
        fronts: Fronts,
        fixed: FloatArray,
        low: FloatArray,
        high: FloatArray,
        quota: int,
        second: float,
    ) -> None:
        self._fronts, self._fixed = fronts, fixed
        self._low, self._high, self._quota = low, high, quota
        self._tau = np.stack([fronts.soonest[1]])
        self._tangents = fronts.tangents(self._tau)
        self._second = second

    def add(self, tau: FloatArray) -> None:
        """Bound the energies from below by the tangents at ``tau`` [points, cells] too."""
        pairs = zip(self._tangents, self._fronts.tangents(tau), strict=True)
        self._tangents = Tangents(*(np.concatenate(pair) for pair in pairs))
        self._tau = np.concatenate([self._tau, tau])

    def refine(self, tau: FloatArray) -> None:
        """Add tangents at ``tau`` [cells] and between it and its neighbours on either side."""
        below, above = self._tau < tau, self._tau > tau
        left = np.where(below.any(0), np.where(below, self._tau, 0.0).max(0), tau / 64)
        right = np.where(above, self._tau, np.inf).min(0)
        right = np.where(above.any(0), right, tau * 64)
        self.add(np.stack([np.sqrt(left * tau), tau, np.sqrt(tau * right)]))

    def solve(
        self, whole: bool, seconds: float, cost: float
    ) -> tuple[FloatArray, float, float, bool] | str:
        """Steps [cells], seconds, a bound on the cost and whether it is solved, or why not."""
        for steep in _STEEP:
            answer = self._solve(whole, seconds, cost, steep)
            if not isinstance(answer, str):
                break
        return answer

    def _solve(
        self, whole: bool, seconds: float, cost: float, steep: float
    ) -> tuple[FloatArray, float, float, bool] | str:
        """As ``solve``, without tangents whose coefficients are ``steep``."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # SciPy loads slowly
        from scipy.sparse import csr_array

        number, a_second, a_joule = len(self._low), _UNIT * seconds, _UNIT * cost
        used = self._high + self._fixed > 0
        soonest = np.where(used, self._fronts.soonest[0] / a_second, 0.0)
        step = 1.0 if whole else float(max(self._quota, 1))
        units = self._tangents.per_unit / a_joule
        slopes = self._tangents.per_second * a_second / a_joule
        flat = (units * step < steep) & (-slopes < steep)
        units, slopes = np.where(flat, units, 0.0), np.where(flat, slopes, 0.0)
        matrix = csr_array(_coefficients(step, soonest, units, slopes))
        upper = np.concatenate(
            [[self._quota / step], -soonest * self._fixed, (-units * self._fixed).ravel()]
        )
        lower = np.full(len(upper), -np.inf)
        lower[0] = upper[0]
        free = np.full(number + 1, np.inf)
        with quiet_highs:
            answer = milp(
                np.concatenate(
                    [np.zeros(number), [self._second * a_second / a_joule], np.ones(number)]
                ),
                integrality=np.concatenate([np.full(number, int(whole)), np.zeros(number + 1)]),
                bounds=Bounds(
                    np.concatenate([self._low / step, np.zeros(number + 1)]),
                    np.concatenate([self._high / step, free]),
                ),
                constraints=LinearConstraint(matrix, lower, upper),
                options={"mip_rel_gap": 0.1 * _ENOUGH, "time_limit": _SECONDS},
            )
        if answer.x is None:
            return f"the bound stays behind: HiGHS ended without a solution ({answer.message})"
        steps = np.clip(answer.x[:number] * step, self._low, self._high)
        steps = np.round(steps) if whole else steps
        value = answer.mip_dual_bound if whole else answer.fun
        seconds = float(answer.x[number] * a_second)
        return steps, seconds, float(value * a_joule), answer.status == 0


def _coefficients(
    step: float, soonest: FloatArray, units: FloatArray, slopes: FloatArray
) -> tuple[FloatArray, tuple[IntArray, IntArray]]:
    """The constraints' coefficients with their rows and columns.

    Rows: the sum of the steps; the end of each cell; the energy of each cell by each tangent.
    """
    number = len(soonest)
    cell = np.arange(number)
    ends, energies = 1 + cell, 1 + number + np.arange(units.size).reshape(units.shape)
    parts: list[tuple[FloatArray | float, IntArray | int, IntArray | int]] = [
        (1.0, 0, cell),
        (soonest * step, ends, cell),
        (-1.0, ends, number),
        (units * step, energies, cell),
        (slopes, energies, number),
        (-1.0, energies, number + 1 + cell),
    ]
    flat = [[array.ravel() for array in np.broadcast_arrays(*part)] for part in parts]
    value, row, column = (np.concatenate(arrays) for arrays in zip(*flat, strict=True))
    used = value != 0
    return value[used], (row[used], column[used])
