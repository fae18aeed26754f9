"""The search of the grid of local steps and edge rounds, as a solution with its bound."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import is_complex, is_number
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.plausible import noted
from channels.validation import shown
from solvers.joint.joint_problem import few_units
from solvers.solution import Solution, Status
from solvers.training_rounds.grid_problem import GridProblem, read_problem
from solvers.training_rounds.grid_search import FoundPoint, GridSearch
from solvers.training_rounds.training_problem import TrainingProblem

PROVEN = 1e-4
"""Largest relative gap of an optimal design."""
_BACKEND = "grid and outer approximation"


@dataclass(frozen=True, eq=False)
class TrainingRounds:
    """A design of all global rounds of a training.

    >>> import solvers
    >>> gain = [[1e9, 1e9], [1e8, 1e8]]
    >>> problem = solvers.TrainingProblem(1e4, 1e6, gain, 0.1, 1e9, 1e-28, [1e6, 1e6], 10)
    >>> plan = solvers.optimize_rounds(
    ...     problem,
    ...     [[90.0, 60.0], [50.0, 40.0]],  # R for H = 1 and 5, E = 1 and 2
    ...     local_steps=[1, 5],
    ...     edge_rounds=[1, 2],
    ... ).value
    >>> plan.local_steps, plan.edge_rounds, plan.sizes.tolist(), plan.bandwidth_hz.shape
    (1, 1, [6, 4], (1, 2, 2))

    Args:
        local_steps: H.
        edge_rounds: E.
        largest: m, the limit on the largest mask relative to equal masks that R allows for; the
            largest mask itself if R does not depend on it.
        rounds: R, number of global rounds.
        sizes: units of each cell, [cells]; 1 for cells that train the whole model.
        seconds: of each draw's global round, [draws].
        joules: of all clients in each draw's global round, [draws].
        phase_seconds: of each cell's local phase, after its start, [draws, cells].
        bandwidth_hz, upload_seconds, power_watts, cpu_hz: of each client, [draws, cells, clients].
        costs: least cost of the training for H and E, [local steps, edge rounds]; NaN where a bound
            excludes the pair, inf where it is infeasible.
        bounds: proven bounds on ``costs``.
    """

    local_steps: int
    edge_rounds: int
    largest: float
    rounds: float
    sizes: IntArray
    seconds: FloatArray
    joules: FloatArray
    phase_seconds: FloatArray
    bandwidth_hz: FloatArray
    upload_seconds: FloatArray
    power_watts: FloatArray
    cpu_hz: FloatArray
    costs: FloatArray
    bounds: FloatArray

    @property
    def total_seconds(self) -> float:
        """Mean seconds of the training."""
        return float(self.rounds * self.seconds.mean())

    @property
    def total_joules(self) -> float:
        """Mean joules of all clients in the training."""
        return float(self.rounds * self.joules.mean())


@noted
def optimize_rounds(
    problem: TrainingProblem,
    rounds: ArrayLike,
    *,
    local_steps: ArrayLike,
    edge_rounds: ArrayLike,
    largest: ArrayLike | None = None,
    weights: tuple[float, float] = (1.0, 0.0),
    max_seconds: float | None = None,
    within: float = 0.0,
) -> Solution[TrainingRounds]:
    """Find local steps, edge rounds, mask sizes, bands, powers and clocks that cost the least.

    Solves

        min  R(m, H, E) x mean over draws of (w_T seconds + w_E joules) of a global round,
        seconds = max_j (E (d_j(p_j) + t_j) + x_j(p_j)),  joules = E sum_j V_j(p_j, t_j; H),
        d_j(p) = start_seconds_j + p start_seconds_per_unit_j,
        x_j(p) = extra_seconds_j + p extra_seconds_per_unit_j,

    over H, E and m of a grid; over integers p_j in [lower_j, cap_j], multiples of ``granularity``,
    with sum_j p_j = total and max_j p_j <= m total / cells, which all draws share; and, in each
    draw, over the bands, powers, CPU frequencies and ends t_j of the local phases, with V_j the
    least energy as in ``allocate_energy``. Draws are a sample of the channels: the mean over them
    is an estimate, see ``evaluate_rounds``.

    >>> import solvers
    >>> gain = [[1e9, 1e9], [1e8, 1e8]]
    >>> problem = solvers.TrainingProblem(1e4, 1e6, gain, 0.1, 1e9, 1e-28, [1e6, 1e6], 10)
    >>> solution = solvers.optimize_rounds(
    ...     problem,
    ...     [[90.0, 60.0], [50.0, 40.0]],  # R for H = 1 and 5, E = 1 and 2
    ...     local_steps=[1, 5],
    ...     edge_rounds=[1, 2],
    ...     weights=(1.0, 10.0),
    ... )
    >>> solution.status.name, solution.value.local_steps, solution.gap < 1e-4
    ('OPTIMAL', 1, True)

    Args:
        problem: the cells.
        rounds: R, number of global rounds until the target, [local steps, edge rounds], or
            [largest, local steps, edge rounds] with ``largest``; inf where it is never reached.
        local_steps, edge_rounds: H and E of the grid, increasing.
        largest: m of the grid, increasing: limits on the largest mask relative to equal masks.
        weights: w_T and w_E, cost of a second and of a joule of all clients; w_T > 0, or there is
            ``max_seconds``.
        max_seconds: limit on the seconds of the training; in each draw, a round may take
            max_seconds / R.
        within: points of the grid that cost up to this fraction more than the best are solved too,
            in fractions of units that are then rounded; inf for the whole grid. For maps of
            ``costs``, as it takes longer.

    Returns:
        ``TrainingRounds``. The objective is the mean cost of the training; no design of the grid
        costs less than the bound. Designs with a gap up to 1e-4 are OPTIMAL. Where offsets are not
        those of the same number of units for bits and cycles of all clients of a cell, designs are
        enumerated, up to 4000 phases of cells (sizes x grid x draws x cells). Of more designs, the
        bound leaves out part of the offsets, and the status may be FEASIBLE: no move of units
        between two cells improves the sizes. With w_E = 0, plans have the least energy for their
        ends. Infeasible problems have no value, and the message names the constraint and the
        shortfall. Whole sizes of up to 8 cells, or without joules, or with a limit of time, are
        those of integer programs (HiGHS); of more cells those of a branch and bound, and the
        message says where programs stopped at their time limit or left a gap.

    The convexity in sizes, bands, powers, clocks and ends together follows from that in bands and
    times (Mo and Xu, arXiv:2003.00199) by perspectives; sizes by outer approximation (Duran and
    Grossmann, Mathematical Programming 36, 1986).
    """
    start = time.perf_counter()
    grid = read_problem(
        problem, rounds, (local_steps, edge_rounds, largest), (weights, max_seconds)
    )
    reason = _impossible(grid)
    if reason:
        return _infeasible(reason, start)
    search = GridSearch(grid)
    if not search.alive.any():
        return _infeasible(_too_late(search), start)
    optimum = search.run(_within(within))
    if isinstance(optimum, str):
        if not search.alive.any():
            return _infeasible(optimum, start)
        bound = float(search.cost(search.lower).min())
        wall = time.perf_counter() - start
        return Solution(None, np.inf, bound, np.inf, Status.UNKNOWN, _BACKEND, wall, optimum)
    return _solution(search, optimum, start)


def _within(value: Any) -> float:
    if not is_number(value) or is_complex(value) or not value >= 0:
        raise ValueError(f"within is {shown(value)}: give a number >= 0.")
    return float(value)


def _impossible(problem: GridProblem) -> str:
    """Why no sizes are possible at any point of the grid, or ""."""
    if not np.isfinite(problem.rounds).any():
        return "rounds is inf everywhere: no point of the grid reaches the target"
    good = problem.sizes.feasible()
    if not good.any():
        last = len(good) - 1
        text = problem.sizes.explain(last)
        return (
            text
            if np.isnan(problem.largest[last])
            else (f"with largest {problem.largest[last]:g}: {text}")
        )
    if not np.isfinite(problem.rounds[good]).any():
        return "rounds is inf wherever largest allows for sizes"
    row = int(np.flatnonzero(good)[-1])
    why = problem.named(problem.low[row])
    if why:
        return why
    if problem.high[row].sum() < problem.quota:
        units = int(problem.high[row].sum()) * problem.sizes.cells.step
        return few_units(problem.sizes.total, units, problem.named(np.ones(problem.shape[1])))
    return ""


def _infeasible(message: str, start: float) -> Solution[TrainingRounds]:
    wall = time.perf_counter() - start
    return Solution(None, np.inf, np.inf, 0.0, Status.INFEASIBLE, _BACKEND, wall, message)


def _too_late(search: GridSearch) -> str:
    """How many seconds the fastest design needs if the slowest draw counts."""
    problem = search.problem
    good = search.possible
    rounds = np.where(good, problem.rounds, 1.0)
    low = problem.low[:, None, None]
    high = problem.high[:, None, None]

    def fits(seconds: FloatArray) -> BoolArray:
        latest = (seconds[..., None] - search.shared) / problem.edge_rounds[:, None]
        most = np.minimum(search.largest(latest), high)
        return np.asarray((most >= low).all(-1) & (most.sum(-1) >= problem.quota))

    begin = np.zeros(rounds.shape)
    end = np.full(rounds.shape, problem.max_seconds / rounds)
    for _ in range(200):
        more = ~fits(end)
        if not more.any():
            break
        end = np.where(more, 2 * end, end)
    for _ in range(60):
        middle = (begin + end) / 2
        good_ = fits(middle)
        begin, end = np.where(good_, begin, middle), np.where(good_, middle, end)
    total = np.where(good, problem.rounds, np.inf) * end
    m, h, e = np.unravel_index(int(total.argmin()), total.shape)
    return problem.too_late(float(total[m, h, e]), int(h), int(e))


def _solution(search: GridSearch, optimum: FoundPoint, start: float) -> Solution[TrainingRounds]:
    problem = search.problem
    m, h, e = optimum.point
    phases = search.phases(optimum.point, optimum.steps[None])
    times, joules = int(problem.edge_rounds[e]), phases.joules[0]
    rounds = float(problem.rounds[m, h, e])
    seconds = times * phases.ends[0] + search.shared[e]
    second, joule = problem.weights
    cost = rounds * float((second * seconds + joule * times * joules).mean())
    costs, bounds = optimum.costs.copy(), optimum.bounds
    costs[m, h, e] = cost
    bound = min(float(np.nanmin(bounds)), cost)
    sizes = problem.whole(optimum.steps)
    share = float(problem.largest[m])
    if np.isnan(share):
        share = float(sizes.max() * problem.shape[1] / max(int(sizes.sum()), 1))
    finite = np.where(np.isnan(costs), np.inf, costs)
    at = finite.argmin(0)
    least = np.take_along_axis(costs, at[None], 0)[0]
    band, window, power, clock = phases.clients
    value = TrainingRounds(
        int(problem.local_steps[h]),
        times,
        share,
        rounds,
        sizes,
        seconds,
        times * joules,
        phases.until[0],
        band[0],
        window[0],
        power[0],
        clock[0],
        least,
        bounds.min(0),
    )
    gap = abs(cost - bound) / cost if cost else 0.0
    wall = time.perf_counter() - start
    status = Status.of_gap(gap, PROVEN)
    return Solution(value, cost, bound, gap, status, _BACKEND, wall, optimum.message)
