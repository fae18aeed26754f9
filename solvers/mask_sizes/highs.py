"""Mask sizes by HiGHS, which SciPy includes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.mask_sizes.milp import MilpAnswer, Program, ProgramBackend
from solvers.packages import import_solver, quiet_highs


@dataclass(frozen=True)
class Highs(ProgramBackend):
    """Solve by ``scipy.optimize.milp``.

    >>> import solvers
    >>> from solvers.mask_sizes import Highs
    >>> backend = Highs(time_limit_seconds=10.0)
    >>> solvers.optimize_mask_sizes([1.0, 3.0], 8, backend=backend).value.tolist()
    [6, 2]
    """

    name = "highs"

    @classmethod
    def check(cls) -> None:
        """Raise unless SciPy is installed."""
        import_solver("scipy.optimize", "exact")

    def run(self, program: Program) -> MilpAnswer:
        """Solve a scaled program."""
        optimize = import_solver("scipy.optimize", "exact")
        sparse = import_solver("scipy.sparse", "exact")
        cells = len(program.low)
        ones = np.ones((cells, 1))
        rows = sparse.block_array([[sparse.diags_array(program.width), -ones], [ones.T, None]])
        quota = float(program.quota)
        limit = {} if self.time_limit_seconds is None else {"time_limit": self.time_limit_seconds}
        with quiet_highs:
            answer = optimize.milp(
                np.append(np.zeros(cells), 1),
                integrality=np.append(np.ones(cells), 0),
                bounds=optimize.Bounds(np.append(program.low, 0), np.append(program.high, np.inf)),
                constraints=optimize.LinearConstraint(
                    rows,
                    np.append(np.full(cells, -np.inf), quota),
                    np.append(-program.offset, quota),
                ),
                options={"mip_rel_gap": 0} | limit,
            )
        if answer.status not in (0, 1):
            raise RuntimeError(f"highs failed on a feasible problem: {answer.message}")
        values = None if answer.x is None else answer.x[:cells]
        return MilpAnswer(values, answer.mip_dual_bound, answer.status == 0)
