"""Mask sizes by mixed-integer linear programming: independent references for the exact method.

Each backend solves  min t  with  w_j q_j + b_j <= t,  sum_j q_j = quota,  low <= q <= high integer.
The programs' tolerances are absolute, so latencies are scaled to make t about 1000. (In units of
the median of w = c g, ratios of 1e6 between cells put t below the tolerances: measured, answers
up to 15 times too slow.) They still limit how many steps can be told apart, and a backend may err
without noticing: what it claims is checked.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from solvers.mask_sizes.backend import Found, MaskSizeBackend
from solvers.mask_sizes.cells import Floats
from solvers.mask_sizes.problem import Problem
from solvers.settings import check_time_limit
from solvers.solution import PROVEN_GAP, SolverUnavailableError

_MAX_STEPS = 10**9  # measured at 10^10: "optimal" answers up to 4.5 times too slow


class Program(NamedTuple):
    """One scaled problem; arrays [cells]."""

    width: Floats
    offset: Floats
    low: Floats
    high: Floats
    quota: int


class Answer(NamedTuple):
    """What a package says of a program: steps [cells] and a bound, None where it has none, and
    whether it ran to the end."""

    steps: Any
    bound: Any
    finished: bool


@dataclass(frozen=True)
class ProgramBackend(MaskSizeBackend):
    """A backend by a mixed-integer program, for a single problem of up to 10^9 steps.

    Args:
        time_limit_seconds: after which it stops with what it has; None for no limit.

    Raises:
        ValueError: a setting is out of range.
    """

    time_limit_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.time_limit_seconds is not None:
            check_time_limit(self.time_limit_seconds)

    @classmethod
    @abstractmethod
    def check(cls) -> None:
        """Raise unless the package can be used here.

        Raises:
            SolverUnavailableError: it cannot; the message says why.
        """

    @abstractmethod
    def run(self, program: Program) -> Answer:
        """The package's answer to a scaled program."""

    def obstacle(self) -> str | None:
        """Why it cannot be used here, None if it can; found out once."""
        return find_obstacle(type(self))

    def solve(self, problem: Problem) -> Found:
        """The package's answer, with its units restored and its claims checked."""
        cells, quota = problem.cells, problem.quota
        if quota > _MAX_STEPS:
            raise ValueError(
                f"total is {quota * cells.step}, {quota} steps of granularity {cells.step}: beyond "
                f"{_MAX_STEPS:.0e} steps the tolerances of backend {self.name!r} make its answers "
                "wrong. Use backend 'exact', which has none."
            )
        obstacle = self.obstacle()
        if obstacle:
            raise SolverUnavailableError(f"backend {self.name!r}: {obstacle}")
        offset, low, high = cells.offset[0], cells.low[0], cells.high[0]
        width = cells.seconds[0] * cells.step
        level, attained = _bracket(Program(width, offset, low, high, quota))
        unit = level / 1000 or 1.0
        found, bound, finished = self.run(Program(width / unit, offset / unit, low, high, quota))
        lower_bound = 0.0 if bound is None else max(float(bound), 0.0) * unit
        steps = None if found is None else np.rint(found)
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
            lower_bound = level  # the backend's bound is disproved, or NaN
        return Found(steps, lower_bound)


@cache
def find_obstacle(backend: type[ProgramBackend]) -> str | None:
    """Why a backend cannot be used here, None if it can."""
    try:
        backend.check()
    except SolverUnavailableError as error:
        return str(error)
    return None


def _bracket(program: Program) -> tuple[float, float]:
    """Latency of the problem in real numbers, and with these rounded: around the optimum."""
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
    missing = max(int(quota - steps.sum()), 0)  # at most one a cell
    return level, float(np.sort(ends)[:missing].max(initial=level))
