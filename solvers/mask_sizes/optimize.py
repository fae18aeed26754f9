"""Mask sizes: how many units (neurons) of a layer each cell trains, so that rounds end soonest."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arguments import is_number
from channels.checks import shown
from solvers.arrays import like
from solvers.mask_sizes import exact as mask_sizes_exact
from solvers.mask_sizes.problem import Problem, read_problem
from solvers.mask_sizes.programs import BACKENDS
from solvers.solution import Solution, Status

if TYPE_CHECKING:
    from torch import Tensor


@overload
def optimize_mask_sizes(
    seconds_per_unit: Tensor,
    total: int,
    *,
    offset_seconds: ArrayLike | Tensor = ...,
    cap: ArrayLike | Tensor | None = ...,
    lower: ArrayLike | Tensor = ...,
    granularity: int = ...,
    backend: str = ...,
    time_limit_seconds: float | None = ...,
) -> Solution[Tensor]: ...
@overload
def optimize_mask_sizes(
    seconds_per_unit: ArrayLike,
    total: int,
    *,
    offset_seconds: ArrayLike | Tensor = ...,
    cap: ArrayLike | Tensor | None = ...,
    lower: ArrayLike | Tensor = ...,
    granularity: int = ...,
    backend: str = ...,
    time_limit_seconds: float | None = ...,
) -> Solution[NDArray[np.int64]]: ...
def optimize_mask_sizes(
    seconds_per_unit: ArrayLike | Tensor,
    total: int,
    *,
    offset_seconds: ArrayLike | Tensor = 0.0,
    cap: ArrayLike | Tensor | None = None,
    lower: ArrayLike | Tensor = 0,
    granularity: int = 1,
    backend: str = "exact",
    time_limit_seconds: float | None = None,
) -> Solution[Any]:
    """Submodel sizes that minimise the slowest cell's latency (HIST, problem (20)).

    Solves  min_p max_j (c_j p_j + b_j)  over integers p_j in [lower_j, cap_j], multiples of
    ``granularity``, with sum_j p_j = total. Latencies are as float64 computes them.

    Args:
        seconds_per_unit: c, [..., cells], seconds a unit costs in a global round, finite and > 0;
            leading axes are a batch (``exact`` only). NumPy or alike, or torch on any device.
        total: units to hand out, e.g. the hidden neurons of the partitioned layer.
        offset_seconds: b >= 0, seconds a cell spends whatever its size, e.g. on shared layers.
        cap: largest size of a cell, rounded down; None or inf for no limit. (19c) gives
            total * eps_th / (6 N delta_1^2).
        lower: smallest size of a cell, >= 0, rounded up.
        granularity: units that stay together: sizes are its multiples.
        backend: ``exact``, or for a single problem an independent ``gurobi``, ``highs`` or
            ``cvxpy`` to compare with (mixed-integer linear programs, of up to 10^9 steps of
            ``granularity``).
        time_limit_seconds: after which those stop with what they have; ``exact`` needs no limit.

    ``offset_seconds``, ``cap`` and ``lower`` are one number, or broadcast to [..., cells].

    Returns:
        Sizes [..., cells], int64, of the kind and device of ``seconds_per_unit``; objective, bound
        and gap in seconds, [...] float64, floats for a single problem. ``exact`` proves its
        optimum: the bound equals the objective. The others are OPTIMAL with a gap up to 1e-6, also
        where the time limit stopped them, else FEASIBLE. An infeasible single problem has value
        None, an infeasible item of a batch sizes -1; their objective is infinite, and the message
        names the constraint and the shortfall in units.

    Raises:
        ValueError: a latency is not finite and positive, a bound or an offset is negative or NaN,
            shapes do not fit, total or granularity is no whole number in range, a backend is
            unknown, or given a batch or more steps than it can tell apart.
        SolverUnavailableError: the backend is not installed, not licensed, or its licence refuses
            a problem of this size.
    """
    start = time.perf_counter()
    if not isinstance(backend, str) or backend not in ("exact", *BACKENDS):
        names = ", ".join(("exact", *BACKENDS))
        raise ValueError(f"backend is {shown(backend)}: choose one of {names}.")
    problem = read_problem(seconds_per_unit, total, offset_seconds, cap, lower, granularity)
    if backend != "exact" and problem.shape:
        raise ValueError(
            f"backend {backend!r} takes one problem, and seconds_per_unit is a batch of shape "
            f"{problem.shape}: use backend 'exact', or a loop."
        )
    limit = time_limit_seconds
    if limit is not None and not (is_number(limit) and limit > 0):
        raise ValueError(f"time_limit_seconds is {shown(limit)}: give a number above 0.")
    if problem.shape:
        value, objective, bound, gap, status, message = _batch(problem, seconds_per_unit)
    else:
        value, objective, bound, gap, status, message = _single(
            problem, seconds_per_unit, backend, time_limit_seconds
        )
    seconds = time.perf_counter() - start
    return Solution(value, objective, bound, gap, status, backend, seconds, message)


# Value, objective, bound, gap, status and message of a Solution.
_Outcome = tuple[Any, Any, Any, Any, Status | NDArray[Any], str]


def _single(problem: Problem, given: Any, backend: str, time_limit: float | None) -> _Outcome:
    cells, quota = problem.cells, problem.quota
    if not problem.feasible()[0]:
        return None, np.inf, np.inf, 0.0, Status.INFEASIBLE, problem.explain(0)
    if backend == "exact":
        steps, bound = mask_sizes_exact.solve(cells, quota), np.inf
    else:
        found, bound = BACKENDS[backend](cells, quota, time_limit)
        if found is None:
            return None, np.inf, bound, np.inf, Status.UNKNOWN, ""
        steps = found
    objective = float(cells.latency(steps).max())
    # A bound above an objective that is attained is the backend's rounding.
    bound = min(bound, objective)
    gap = (objective - bound) / objective if bound < objective else 0.0
    sizes = (cells.step * steps[0]).astype(np.int64)
    return like(given, sizes), objective, bound, gap, Status.of_gap(gap), ""


def _batch(problem: Problem, given: Any) -> _Outcome:
    feasible = problem.feasible()
    sizes = np.full(problem.cells.low.shape, -1, dtype=np.int64)
    objective = np.full(feasible.shape, np.inf)
    status = np.full(feasible.shape, Status.INFEASIBLE)
    if feasible.any():
        cells = problem.cells if feasible.all() else problem.cells.rows(feasible)
        steps = mask_sizes_exact.solve(cells, problem.quota)
        sizes[feasible] = cells.step * steps
        objective[feasible] = cells.latency(steps).max(-1)
        status[feasible] = Status.OPTIMAL
    message = ""
    if not feasible.all():
        rows = np.flatnonzero(~feasible)
        item = ", ".join(str(int(i)) for i in np.unravel_index(rows[0], problem.shape))
        message = f"{len(rows)} of {feasible.size} problems are infeasible; "
        message += f"item [{item}]: {problem.explain(int(rows[0]))}"
    arrays = (array.reshape(problem.shape) for array in (objective, np.zeros_like(objective)))
    least, gap = (like(given, array) for array in arrays)
    value = like(given, sizes.reshape(*problem.shape, problem.cells.low.shape[-1]))
    # The bound is a copy, so that changing one in place leaves the other.
    return value, least, least + gap, gap, status.reshape(problem.shape), message
