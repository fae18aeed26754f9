"""Mask sizes by Gurobi, a commercial package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solvers.mask_sizes.milp import MilpAnswer, Program, ProgramBackend
from solvers.packages import import_solver
from solvers.solution import SolverUnavailableError


@dataclass(frozen=True)
class Gurobi(ProgramBackend):
    """Solve by gurobipy; the licence included in its package allows up to 1999 cells.

    >>> import solvers
    >>> from solvers.mask_sizes import Gurobi
    >>> backend = Gurobi(time_limit_seconds=10.0)
    >>> solvers.optimize_mask_sizes([1.0, 3.0], 8, backend=backend).value.tolist()
    [6, 2]
    """

    name = "gurobi"

    @classmethod
    def check(cls) -> None:
        """Raise unless gurobipy is installed and licensed."""
        _environment().dispose()

    def run(self, program: Program) -> MilpAnswer:
        """Solve a scaled program."""
        gurobipy = import_solver("gurobipy", "exact")
        with _environment() as environment, gurobipy.Model(env=environment) as model:
            model.Params.MIPGap = model.Params.MIPGapAbs = 0
            model.Params.FeasibilityTol = model.Params.IntFeasTol = 1e-9
            if self.time_limit_seconds is not None:
                model.Params.TimeLimit = self.time_limit_seconds
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
                    f"gurobi's licence does not allow {len(program.low)} cells: the one included "
                    "in its package is limited to 2000 variables, that is 1999 cells. Use backend "
                    "'exact', which has no limit."
                ) from error
            if model.Status not in (gurobipy.GRB.OPTIMAL, gurobipy.GRB.TIME_LIMIT):
                raise RuntimeError(
                    f"gurobi stopped with status {model.Status} on a feasible problem."
                )
            values = steps.X if model.SolCount else None
            return MilpAnswer(values, model.ObjBound, model.Status == gurobipy.GRB.OPTIMAL)


def _environment() -> Any:
    """Start a silent environment, which checks the licence."""
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
