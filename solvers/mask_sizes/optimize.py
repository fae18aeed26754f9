"""Mask sizes, computed by a backend and checked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.arrays import like
from solvers.backend import Catalogue
from solvers.mask_sizes.cell_steps import Floats
from solvers.mask_sizes.mask_size_backend import MaskSizeBackend
from solvers.mask_sizes.mask_size_problem import MaskSizeProblem, read_problem
from solvers.settings import settings_elsewhere
from solvers.solution import PROVEN_GAP, Solution, Status

if TYPE_CHECKING:
    from torch import Tensor

BACKENDS: Catalogue[MaskSizeBackend] = Catalogue(
    "backend",
    {
        "exact": "solvers.mask_sizes.exact:Exact",
        "gurobi": "solvers.mask_sizes.gurobi:Gurobi",
        "highs": "solvers.mask_sizes.highs:Highs",
        "cvxpy": "solvers.mask_sizes.cvxpy:Cvxpy",
    },
    "An instance of a MaskSizeBackend class is also accepted, e.g. Highs(time_limit_seconds=10).",
)


def available_backends() -> dict[str, str | None]:
    """Backends of ``optimize_mask_sizes``: maps each name to None or to why it is unavailable.

    >>> import solvers
    >>> solvers.available_backends()["exact"] is None
    True
    """
    return {name: BACKENDS.default(name).obstacle() for name in BACKENDS.classes}


@overload
def optimize_mask_sizes(
    seconds_per_unit: Tensor,
    total: int,
    *,
    offset_seconds: ArrayLike | Tensor = ...,
    cap: ArrayLike | Tensor | None = ...,
    lower: ArrayLike | Tensor = ...,
    granularity: int = ...,
    backend: str | MaskSizeBackend = ...,
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
    backend: str | MaskSizeBackend = ...,
) -> Solution[NDArray[np.int64]]: ...
@settings_elsewhere(
    time_limit_seconds="backend=Highs(time_limit_seconds=...), or Gurobi or Cvxpy, of "
    "solvers.mask_sizes"
)
def optimize_mask_sizes(
    seconds_per_unit: ArrayLike | Tensor,
    total: int,
    *,
    offset_seconds: ArrayLike | Tensor = 0.0,
    cap: ArrayLike | Tensor | None = None,
    lower: ArrayLike | Tensor = 0,
    granularity: int = 1,
    backend: str | MaskSizeBackend = "exact",
) -> Solution[Any]:
    """Find the submodel sizes that minimise the slowest cell's latency (HIST, problem (20)).

    Solves  min_p max_j (c_j p_j + b_j)  over integers p_j in [lower_j, cap_j], multiples of
    ``granularity``, with sum_j p_j = total. Latencies are computed in float64.

    >>> import solvers
    >>> solvers.optimize_mask_sizes([1.0, 1.0, 2.0], 10).value.tolist()
    [4, 4, 2]

    Args:
        seconds_per_unit: c, [..., cells], seconds per unit in a global round, finite and > 0;
            leading axes are a batch (``exact`` only). Array-like, or a torch tensor on any device.
        total: number of units to allocate, e.g. the hidden neurons of the partitioned layer.
        offset_seconds: b >= 0, seconds per cell that do not depend on its size, e.g. for shared
            layers.
        cap: maximum size of a cell, rounded down; None or inf for no limit. (19c) gives
            total * eps_th / (6 N delta_1^2).
        lower: minimum size of a cell, >= 0, rounded up.
        granularity: sizes are multiples of this number of units.
        backend: ``exact``, or ``gurobi``, ``highs`` or ``cvxpy`` as an independent reference for a
            single problem (mixed-integer linear programs, up to 10^9 steps of ``granularity``). A
            name selects default settings. For other settings give an instance of ``Exact``,
            ``Gurobi``, ``Highs``, ``Cvxpy`` or another subclass of ``MaskSizeBackend``, all of
            ``solvers.mask_sizes``.

    ``offset_seconds``, ``cap`` and ``lower`` are one number each, or broadcast to [..., cells].

    Returns:
        Sizes [..., cells], int64, with the array type and device of ``seconds_per_unit``.
        Objective and bound are in seconds; with the relative gap they are [...] float64, or floats
        for a single problem. ``exact`` proves its optimum: the bound equals the objective. Results
        of the other backends are OPTIMAL if the gap is at most 1e-6, even if they stopped at the
        time limit, and otherwise FEASIBLE. An infeasible single problem has the value None; an
        infeasible item of a batch has sizes -1. In both cases the objective is infinite, and the
        message names the constraint and the shortfall in units.

    Raises:
        ValueError: a latency is not finite and positive, a bound or offset is negative or NaN,
            shapes do not fit, ``total`` or ``granularity`` is not an integer in range, or the
            backend is unknown or does not support the batch or the number of steps.
        SolverUnavailableError: the backend is not installed or not licensed, or its licence does
            not allow a problem of this size.
        RuntimeError: the backend returned invalid sizes.
    """
    start = time.perf_counter()
    method = backend if isinstance(backend, MaskSizeBackend) else BACKENDS.default(backend)
    problem = read_problem(seconds_per_unit, total, offset_seconds, cap, lower, granularity)
    if problem.shape and not method.batches:
        raise ValueError(
            f"backend {method.name!r} solves one problem, but seconds_per_unit is a batch of shape "
            f"{problem.shape}: use backend 'exact', or loop over the batch."
        )
    solve = _batch if problem.shape else _single
    value, objective, bound, gap, status, message = solve(problem, seconds_per_unit, method)
    seconds = time.perf_counter() - start
    return Solution(value, objective, bound, gap, status, method.name, seconds, message)


# Value, objective, bound, gap, status and message of a Solution.
_Outcome = tuple[Any, Any, Any, Any, Status | NDArray[Any], str]


def _single(problem: MaskSizeProblem, model: Any, method: MaskSizeBackend) -> _Outcome:
    cells = problem.cells
    if not problem.feasible()[0]:
        return None, np.inf, np.inf, 0.0, Status.INFEASIBLE, problem.explain(0)
    steps, proven = method.solve(problem)
    bound = float(proven) if proven >= 0 else 0.0  # NaN proves nothing
    if steps is None:
        return None, np.inf, bound, np.inf, Status.UNKNOWN, ""
    _check(problem, steps, method)
    objective = float(cells.latency(steps).max())
    # A bound above the attained objective is a rounding error of the backend.
    bound = min(bound, objective)
    gap = (objective - bound) / objective if bound < objective else 0.0
    sizes = (cells.step * steps[0]).astype(np.int64)
    return like(model, sizes), objective, bound, gap, Status.of_gap(gap), ""


def _batch(problem: MaskSizeProblem, model: Any, method: MaskSizeBackend) -> _Outcome:
    feasible = problem.feasible()
    sizes = np.full(problem.cells.low.shape, -1, dtype=np.int64)
    objective = np.full(feasible.shape, np.inf)
    bound, gap = objective.copy(), np.zeros(feasible.shape)
    status = np.full(feasible.shape, Status.INFEASIBLE)
    if feasible.any():
        some = problem if feasible.all() else problem.rows(feasible)
        steps, proven = method.solve(some)
        if steps is None:
            raise RuntimeError(f"backend {method.name!r} returned no sizes for a batch.")
        _check(some, steps, method)
        sizes[feasible] = some.cells.step * steps
        attained = some.cells.latency(steps).max(-1)
        lower_bound = np.minimum(np.where(np.greater_equal(proven, 0), proven, 0), attained)
        rest = np.divide(
            attained - lower_bound, attained, np.zeros_like(attained), where=attained > lower_bound
        )
        objective[feasible], bound[feasible], gap[feasible] = attained, lower_bound, rest
        ended = np.full(rest.shape, Status.FEASIBLE)
        ended[rest <= PROVEN_GAP] = Status.OPTIMAL
        status[feasible] = ended
    message = ""
    if not feasible.all():
        rows = np.flatnonzero(~feasible)
        item = ", ".join(str(int(i)) for i in np.unravel_index(rows[0], problem.shape))
        message = f"{len(rows)} of {feasible.size} problems are infeasible; "
        message += f"item [{item}]: {problem.explain(int(rows[0]))}"
    objective, bound, gap = (
        like(model, array.reshape(problem.shape)) for array in (objective, bound, gap)
    )
    value = like(model, sizes.reshape(*problem.shape, problem.cells.low.shape[-1]))
    return value, objective, bound, gap, status.reshape(problem.shape), message


def _check(problem: MaskSizeProblem, steps: Floats, method: MaskSizeBackend) -> None:
    """Raise unless a backend's steps are feasible."""
    cells = problem.cells
    if not isinstance(steps, np.ndarray):
        raise RuntimeError(
            f"backend {method.name!r} returned steps of type {type(steps).__name__}: it must "
            "return a NumPy array [..., cells]."
        )
    if steps.shape != cells.low.shape:
        raise RuntimeError(
            f"backend {method.name!r} returned steps of shape {steps.shape} for cells of shape "
            f"{cells.low.shape}."
        )
    nearest = np.minimum(np.maximum(np.rint(steps), cells.low), cells.high)
    if (steps != nearest).any() or (steps.sum(-1) != problem.quota).any():
        raise RuntimeError(
            f"backend {method.name!r} returned sizes that violate the bounds or the sum."
        )
