"""Mask sizes by mixed-integer linear programming: independent references for the exact method.

Each backend solves  min t  with  w_j q_j + b_j <= t,  sum_j q_j = quota,  low <= q <= high integer.
The programs' tolerances are absolute, so latencies are scaled to make t about 1000. (In units of
the median of w = c g, ratios of 1e6 between cells put t below the tolerances: measured, answers
up to 15 times too slow.) They still limit how many steps can be told apart, and a backend may err
without noticing: what it claims is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from solvers.mask_sizes.exact import Cells, Floats
from solvers.packages import import_solver, quiet_cvxpy
from solvers.solution import PROVEN_GAP, SolverUnavailableError

_MOST_STEPS = 10**9  # measured at 10^10: "optimal" answers up to 4.5 times too slow


class Program(NamedTuple):
    """One scaled problem; arrays [cells]."""

    width: Floats
    offset: Floats
    low: Floats
    high: Floats
    quota: int


class Result(NamedTuple):
    """What a backend found: steps [1, cells], None if nothing, and a bound on the objective."""

    steps: Floats | None
    bound: float


_Answer = tuple[Any, Any, bool]
"""Steps [cells] or None, bound or None (both scaled), whether it ran to the end."""


def available_backends() -> dict[str, str | None]:
    """Backends of ``optimize_mask_sizes``: None where usable, else the reason why not."""
    return {"exact": None} | {name: _obstacle(name) for name in BACKENDS}


def _gurobi(program: Program, time_limit: float | None) -> _Answer:
    gurobipy = import_solver("gurobipy", "exact")
    with _gurobi_environment() as environment, gurobipy.Model(env=environment) as model:
        model.Params.MIPGap = model.Params.MIPGapAbs = 0
        model.Params.FeasibilityTol = model.Params.IntFeasTol = 1e-9
        if time_limit is not None:
            model.Params.TimeLimit = time_limit
        steps = model.addMVar(len(program.low), lb=program.low, ub=program.high, vtype="I")
        slowest = model.addMVar(1)
        model.addConstr(program.width * steps + program.offset <= slowest)
        model.addConstr(steps.sum() == program.quota)
        model.setObjective(slowest.sum())
        try:
            model.optimize()
        except gurobipy.GurobiError as error:
            if error.errno != gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED:
                raise
            raise SolverUnavailableError(
                f"gurobi's licence refuses {len(program.low)} cells: the one that comes from the "
                "package index is limited to 2000 variables, that is 1999 cells. Use backend "
                "'exact', which has no limit."
            ) from error
        if model.Status not in (gurobipy.GRB.OPTIMAL, gurobipy.GRB.TIME_LIMIT):
            raise RuntimeError(f"gurobi stopped with status {model.Status} on a feasible problem.")
        found = steps.X if model.SolCount else None
        return found, model.ObjBound, model.Status == gurobipy.GRB.OPTIMAL


def _highs(program: Program, time_limit: float | None) -> _Answer:
    optimize, sparse = (
        import_solver("scipy.optimize", "exact"),
        import_solver("scipy.sparse", "exact"),
    )
    cells = len(program.low)
    ones = np.ones((cells, 1))
    rows = sparse.block_array([[sparse.diags_array(program.width), -ones], [ones.T, None]])
    quota = float(program.quota)
    answer = optimize.milp(
        np.append(np.zeros(cells), 1),
        integrality=np.append(np.ones(cells), 0),
        bounds=optimize.Bounds(np.append(program.low, 0), np.append(program.high, np.inf)),
        constraints=optimize.LinearConstraint(
            rows,
            np.append(np.full(cells, -np.inf), quota),
            np.append(-program.offset, quota),
        ),
        options={"mip_rel_gap": 0} | ({} if time_limit is None else {"time_limit": time_limit}),
    )
    if answer.status not in (0, 1):
        raise RuntimeError(f"highs failed on a feasible problem: {answer.message}")
    found = None if answer.x is None else answer.x[:cells]
    return found, answer.mip_dual_bound, answer.status == 0


def _cvxpy(program: Program, time_limit: float | None) -> _Answer:
    cvxpy = import_solver("cvxpy", "exact")
    cells = len(program.low)
    steps = cvxpy.Variable(cells, integer=True, bounds=[program.low, program.high])
    latency = cvxpy.multiply(program.width, steps) + program.offset
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.max(latency)), [cvxpy.sum(steps) == program.quota])
    limit = {} if time_limit is None else {"time_limit": time_limit}
    if _cvxpy_solver() == "HIGHS":
        exact = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "mip_feasibility_tolerance": 1e-9}
        options: dict[str, Any] = exact | limit
    else:
        options = {"scipy_options": {"mip_rel_gap": 0.0} | limit}
    with quiet_cvxpy():
        try:
            problem.solve(solver=_cvxpy_solver(), **options)
        except cvxpy.SolverError:  # nothing found within the time limit
            if time_limit is None:
                raise
            return None, None, False
    known = problem.solver_stats.extra_stats
    bound = known.get("mip_dual_bound") if isinstance(known, dict) else known.mip_dual_bound
    return steps.value, bound, problem.status == cvxpy.OPTIMAL


def _run(
    name: str, solve: Callable[[Program, float | None], _Answer]
) -> Callable[[Cells, int, float | None], Result]:
    """The backend with its units restored and its answer checked."""

    def run(cells: Cells, quota: int, time_limit: float | None) -> Result:
        if quota > _MOST_STEPS:
            raise ValueError(
                f"total is {quota * cells.step}, {quota} steps of granularity {cells.step}: beyond "
                f"{_MOST_STEPS:.0e} steps the tolerances of backend {name!r} make its answers "
                "wrong. Use backend 'exact', which has none."
            )
        obstacle = _obstacle(name)
        if obstacle:
            raise SolverUnavailableError(f"backend {name!r}: {obstacle}")
        offset, low, high = cells.offset[0], cells.low[0], cells.high[0]
        width = cells.seconds[0] * cells.step
        level, attained = _bracket(Program(width, offset, low, high, quota))
        unit = level / 1000 or 1.0
        program = Program(width / unit, offset / unit, low, high, quota)
        found, bound, finished = solve(program, time_limit)
        least = 0.0 if bound is None else max(float(bound), 0.0) * unit
        steps = None if found is None else np.rint(found)
        if steps is None or steps.sum() != quota or (steps < low).any() or (steps > high).any():
            if finished:
                raise RuntimeError(f"{name} returned sizes that violate the bounds or the sum.")
            steps = None
        else:
            steps = steps[None]
            attained = min(attained, float(cells.latency(steps).max()))
        if not least <= attained * (1 + PROVEN_GAP):
            least = level  # the backend's bound is disproved, or NaN
        return Result(steps, least)

    return run


BACKENDS = {
    "gurobi": _run("gurobi", _gurobi),
    "highs": _run("highs", _highs),
    "cvxpy": _run("cvxpy", _cvxpy),
}


def _bracket(program: Program) -> tuple[float, float]:
    """Latency of the problem in real numbers, and with these rounded: around the optimum."""
    width, offset, low, high, quota = program
    least = float((offset + width * low).max())
    below, above = 0.0, max(float((offset + width * high).max()), least)
    for _ in range(60):
        middle = (below + above) / 2
        if np.clip((middle - offset) / width, low, high).sum() < quota:
            below = middle
        else:
            above = middle
    level = max(least, above)
    steps = np.floor(np.clip((level - offset) / width, low, high))
    ends = np.where(steps < high, offset + width * (steps + 1), np.inf)
    missing = max(int(quota - steps.sum()), 0)  # at most one a cell
    return level, float(np.sort(ends)[:missing].max(initial=level))


@cache
def _obstacle(name: str) -> str | None:
    """Why a backend cannot be used here, None if it can; found out once."""
    try:
        if name == "gurobi":
            _gurobi_environment().dispose()
        elif name == "cvxpy":
            _cvxpy_solver()
        else:
            import_solver("scipy.optimize", "exact")
    except SolverUnavailableError as error:
        return str(error)
    return None


def _gurobi_environment() -> Any:
    """A silent environment; starting it is what asks for a licence."""
    gurobipy = import_solver("gurobipy", "exact")
    environment = gurobipy.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    try:
        environment.start()
    except gurobipy.GurobiError as error:
        environment.dispose()
        raise SolverUnavailableError(
            f"gurobipy has no valid licence ({error}): renew it, or use backend 'exact'"
        ) from error
    return environment


@cache
def _cvxpy_solver() -> str:
    """The mixed-integer solver that cvxpy is to use; not Gurobi, which is a backend itself."""
    installed = import_solver("cvxpy", "exact").installed_solvers()
    for name in ("HIGHS", "SCIPY"):
        if name in installed:
            return name
    raise SolverUnavailableError("cvxpy finds neither HIGHS nor SCIPY: pip install highspy")
