"""Mask sizes by cvxpy with an installed mixed-integer solver."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from solvers.mask_sizes.milp import MilpAnswer, Program, ProgramBackend
from solvers.packages import import_solver, quiet_cvxpy, quiet_highs
from solvers.solution import SolverUnavailableError


@dataclass(frozen=True)
class Cvxpy(ProgramBackend):
    """Solve by cvxpy, which calls HiGHS or, without ``highspy``, SciPy.

    >>> import solvers
    >>> from solvers.mask_sizes import Cvxpy
    >>> backend = Cvxpy(time_limit_seconds=10.0)
    >>> solvers.optimize_mask_sizes([1.0, 3.0], 8, backend=backend).value.tolist()
    [6, 2]
    """

    name = "cvxpy"

    @classmethod
    def check(cls) -> None:
        """Raise unless cvxpy and a solver are installed."""
        find_solver()

    def run(self, program: Program) -> MilpAnswer:
        """Solve a scaled program."""
        cvxpy = import_solver("cvxpy", "exact")
        cells = len(program.low)
        steps = cvxpy.Variable(cells, integer=True, bounds=[program.low, program.high])
        latency = cvxpy.multiply(program.width, steps) + program.offset
        problem = cvxpy.Problem(
            cvxpy.Minimize(cvxpy.max(latency)), [cvxpy.sum(steps) == program.quota]
        )
        limit = {} if self.time_limit_seconds is None else {"time_limit": self.time_limit_seconds}
        if find_solver() == "HIGHS":
            exact = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "mip_feasibility_tolerance": 1e-9}
            options: dict[str, Any] = exact | limit
        else:
            options = {"scipy_options": {"mip_rel_gap": 0.0} | limit}
        with quiet_cvxpy(), quiet_highs:
            try:
                problem.solve(solver=find_solver(), **options)
            except cvxpy.SolverError:  # no solution within the time limit
                if self.time_limit_seconds is None:
                    raise
                return MilpAnswer(None, None, False)
        stats = problem.solver_stats.extra_stats
        bound = stats.get("mip_dual_bound") if isinstance(stats, dict) else stats.mip_dual_bound
        return MilpAnswer(steps.value, bound, problem.status == cvxpy.OPTIMAL)


@cache
def find_solver() -> str:
    """The mixed-integer solver for cvxpy; not Gurobi, which is a separate backend."""
    installed = import_solver("cvxpy", "exact").installed_solvers()
    for name in ("HIGHS", "SCIPY"):
        if name in installed:
            return name
    raise SolverUnavailableError("cvxpy finds neither HIGHS nor SCIPY: pip install highspy")
