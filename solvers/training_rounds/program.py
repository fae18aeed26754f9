"""Sizes that are common to all draws, as a linear or an integer program (HiGHS).

Its variables are the sizes, the end of each draw's local phase, and the energy of each cell and
draw, which the tangents of its convex function of size and time bound from below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray
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


class Case(NamedTuple):
    """What a design of the round has to keep.

    Args:
        fixed: part of the work that does not depend on the size, in steps [cells].
        low, high: bounds in steps, [cells].
        quota: sum of the sizes in steps.
        lost: seconds that each cell cannot use, [draws, cells].
        latest: ends, [draws]; inf for no limit.
        weights: w_T and w_E.
    """

    fixed: FloatArray
    low: FloatArray
    high: FloatArray
    quota: int
    lost: FloatArray
    latest: FloatArray
    weights: tuple[float, float]


class Answer(NamedTuple):
    """The optimum of the program.

    Args:
        steps: [cells].
        ends: [draws].
        bound: on the mean cost of a draw.
    """

    steps: FloatArray
    ends: FloatArray
    bound: float


def solve_program(
    model: Model, case: Case, scales: tuple[float, float], whole: bool
) -> Answer | str:
    """The best sizes and ends for the tangents known so far, or why HiGHS has none.

    Args:
        model: tangents.
        case: constraints.
        scales: typical seconds of a local phase, and typical cost.
        whole: whether steps are integers, not fractions.
    """
    for steep in _STEEP if case.weights[1] else _STEEP[:1]:
        found = _solve(model, case, scales, whole, steep)
        if not isinstance(found, str):
            break
    return found


def _solve(
    model: Model, case: Case, scales: tuple[float, float], whole: bool, steep: float
) -> Answer | str:
    from scipy.optimize import Bounds, LinearConstraint, milp  # SciPy loads slowly
    from scipy.sparse import csr_array

    draws, number = model.shape
    a_second = _UNIT * scales[0]
    second, joule = (weight / draws for weight in case.weights)
    a_cost = _UNIT * scales[1]
    step = 1.0 if whole else float(max(case.quota, 1))
    used = case.high + case.fixed > 0
    soonest = np.where(used, model.surely / a_second, 0.0)
    lost = case.lost / a_second
    cell = np.broadcast_to(np.arange(number), (draws, number))
    end = number + np.broadcast_to(np.arange(draws)[:, None], (draws, number))
    place = np.arange(draws * number).reshape(draws, number)
    parts = [
        (np.ones(number), np.zeros(number, dtype=np.int64), np.arange(number)),
        (soonest * step, 1 + place, cell),
        (np.full((draws, number), -1.0), 1 + place, end),
    ]
    right = [np.array([case.quota / step]), (-soonest * case.fixed - lost).ravel()]
    cost = [np.zeros(number), np.full(draws, second * a_second / a_cost)]
    if joule:
        # Energies in units of cost, w_E / draws of a joule.
        units = model.tangents.per_unit * joule / a_cost
        slopes = model.tangents.per_second * joule * a_second / a_cost
        flat = (np.abs(units) * step < steep) & (-slopes < steep) & used
        points = np.flatnonzero(flat.any((1, 2)))
        units, slopes = (np.where(flat, x, 0.0)[points] for x in (units, slopes))
        row = 1 + place.size * (1 + np.arange(len(points)))[:, None, None] + place
        energy = number + draws + place
        parts += [
            (units * step, row, np.broadcast_to(cell, row.shape)),
            (slopes, row, np.broadcast_to(end, row.shape)),
            (np.full(row.shape, -1.0), row, np.broadcast_to(energy, row.shape)),
        ]
        right.append((slopes * lost - units * case.fixed).ravel())
        cost.append(np.ones(place.size))
    value, row_of, column = (np.concatenate([part[i].ravel() for part in parts]) for i in range(3))
    keep = value != 0
    upper, costs = np.concatenate(right), np.concatenate(cost)
    matrix = csr_array((value[keep], (row_of[keep], column[keep])), shape=(len(upper), len(costs)))
    lower = np.full(len(upper), -np.inf)
    lower[0] = upper[0]
    ends = case.latest / a_second
    first = np.zeros(draws) if case.weights[0] else ends
    rest = len(costs) - number - draws
    answer = None
    with quiet_highs:
        answer = milp(
            costs,
            integrality=np.concatenate([np.full(number, int(whole)), np.zeros(draws + rest)]),
            bounds=Bounds(
                np.concatenate([case.low / step, first, np.zeros(rest)]),
                np.concatenate([case.high / step, ends, np.full(rest, np.inf)]),
            ),
            constraints=LinearConstraint(matrix, lower, upper),
            options={"mip_rel_gap": _GAP, "time_limit": _SECONDS},
        )
    if answer.x is None:
        return f"HiGHS ended without a solution ({answer.message})"
    steps = np.clip(answer.x[:number] * step, case.low, case.high)
    steps = np.round(steps) if whole else steps
    bound = answer.mip_dual_bound if whole else answer.fun
    return Answer(steps, answer.x[number : number + draws] * a_second, float(bound * a_cost))
