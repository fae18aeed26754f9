"""Mask sizes by mixed-integer linear programming: independent references for the exact method.

Each backend solves  min t  with  w_j q_j + b_j <= t,  sum_j q_j = quota,  low <= q <= high integer.
The solvers' tolerances are absolute, so latencies are scaled to make t about 1000. (In units of the
median of w = c g, ratios of 1e6 between cells put t below the tolerances, and the solutions found
were up to 15 times too slow.) The tolerances still limit the number of steps that can be
distinguished, and a solver may return a wrong answer without an error, so its claims are checked.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from solvers.mask_sizes.cell_steps import Floats
from solvers.mask_sizes.mask_size_backend import FoundSizes, MaskSizeBackend
from solvers.mask_sizes.mask_size_problem import MaskSizeProblem
from solvers.settings import check_time_limit
from solvers.solution import PROVEN_GAP, SolverUnavailableError

_MAX_STEPS = 10**9  # at 10^10 steps, some "optimal" answers were 4.5 times too slow


class Program(NamedTuple):
    """One scaled problem; arrays [cells]."""

    width: Floats
    offset: Floats
    low: Floats
    high: Floats
    quota: int


class MilpAnswer(NamedTuple):
    """A package's answer to a program: steps [cells], a bound, and whether it ran to completion.

    Steps or bound are None if the package found none.
    """

    steps: Any
    bound: Any
    finished: bool


@dataclass(frozen=True)
class ProgramBackend(MaskSizeBackend):
    """A backend that solves a mixed-integer program, for a single problem of up to 10^9 steps.

    Args:
        time_limit_seconds: time after which it stops with its best solution; None for no limit.
    """

    time_limit_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.time_limit_seconds is not None:
            check_time_limit(self.time_limit_seconds)

    @classmethod
    @abstractmethod
    def check(cls) -> None:
        """Raise unless the package is available.

        Raises:
            SolverUnavailableError: the package is unavailable; the message says why.
        """

    @abstractmethod
    def run(self, program: Program) -> MilpAnswer:
        """Solve a scaled program."""

    def obstacle(self) -> str | None:
        """The reason why the backend is unavailable, or None; cached after the first call."""
        return find_obstacle(type(self))

    def solve(self, problem: MaskSizeProblem) -> FoundSizes:
        """Solve a problem, restore its units and check the package's claims."""
        cells, quota = problem.cells, problem.quota
        if quota > _MAX_STEPS:
            raise ValueError(
                f"total is {quota * cells.step}, {quota} steps of granularity {cells.step}: above "
                f"{_MAX_STEPS:.0e} steps the tolerances of backend {self.name!r} make its answers "
                "wrong. Use backend 'exact', which has no such limit."
            )
        obstacle = self.obstacle()
        if obstacle:
            raise SolverUnavailableError(f"backend {self.name!r}: {obstacle}")
        offset, low, high = cells.offset[0], cells.low[0], cells.high[0]
        width = cells.seconds[0] * cells.step
        level, attained = _bracket(Program(width, offset, low, high, quota))
        unit = level / 1000 or 1.0
        values, bound, finished = self.run(Program(width / unit, offset / unit, low, high, quota))
        lower_bound = 0.0 if bound is None else max(float(bound), 0.0) * unit
        steps = None if values is None else np.rint(values)
        if steps is None or steps.sum() != quota or (steps < low).any() or (steps > high).any():
            if finished:
                raise RuntimeError(
                    f"{self.name} returned sizes that violate the bounds or the sum."
                )
            steps = None
        else:
            steps = steps[None]
            attained = min(attained, float(cells.latency(steps).max()))
        if not lower_bound <= attained * (1 + PROVEN_GAP):
            lower_bound = level  # the backend's bound is wrong or NaN
        return FoundSizes(steps, lower_bound)


@cache
def find_obstacle(backend: type[ProgramBackend]) -> str | None:
    """The reason why a backend is unavailable, or None if it is available."""
    try:
        backend.check()
    except SolverUnavailableError as error:
        return str(error)
    return None


def _bracket(program: Program) -> tuple[float, float]:
    """Bounds on the optimum: the latencies of the relaxation and of its rounded solution."""
    width, offset, low, high, quota = program
    min_latency = float((offset + width * low).max())
    below, above = 0.0, max(float((offset + width * high).max()), min_latency)
    for _ in range(60):
        middle = (below + above) / 2
        if np.clip((middle - offset) / width, low, high).sum() < quota:
            below = middle
        else:
            above = middle
    level = max(min_latency, above)
    steps = np.floor(np.clip((level - offset) / width, low, high))
    ends = np.where(steps < high, offset + width * (steps + 1), np.inf)
    missing = max(int(quota - steps.sum()), 0)  # at most one per cell
    return level, float(np.sort(ends)[:missing].max(initial=level))
