"""Benchmark of mask sizes: wall-clock time of the exact method and mixed-integer programs."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from channels.arrays import FloatArray
from channels.streams import Stream
from solvers import Status, available_backends, optimize_mask_sizes
from solvers.mask_sizes import Cvxpy, Exact, Gurobi, Highs

_LIMIT_SECONDS = 5.0
_PROGRAMS = {backend.name: backend for backend in (Gurobi, Highs, Cvxpy)}


class _Case(NamedTuple):
    name: str
    shape: tuple[int, ...]
    backends: tuple[str, ...]


_CASES = (
    _Case("N = 4", (4,), ("exact", "gurobi", "highs", "cvxpy")),
    _Case("N = 60", (60,), ("exact", "gurobi", "highs", "cvxpy")),
    _Case("N = 1000", (1000,), ("exact", "gurobi", "highs")),
    _Case("N = 1e6", (10**6,), ("exact",)),
    _Case("1e5 problems of N = 4", (10**5, 4), ("exact",)),
)


def mask_size_bench(repeats: int = 5) -> list[dict[str, object]]:
    """Measure the median seconds of each backend on each problem.

    Problems have latencies log-uniform over [0.1, 10] microseconds per unit, 75 units per cell and
    caps of 1.5 times an even share. After one warm-up run each, runs of the backends are
    interleaved, so that load on the machine affects all of them. A backend that reaches its time
    limit of 5 s is not run again on that problem.

    Args:
        repeats: timed runs of each backend.

    Returns:
        Rows with problem, backend, seconds (None if the backend did not run), ratio_to_exact, note.
        An unavailable backend has one row, whose note is the reason.
    """
    unavailable = {name: why for name, why in available_backends().items() if why}
    rows: list[dict[str, object]] = []
    for case in _CASES:
        rows += _measure(case, [name for name in case.backends if name not in unavailable], repeats)
    return rows + [_row("all", name, None, None, why) for name, why in unavailable.items()]


def _measure(case: _Case, backends: list[str], repeats: int) -> list[dict[str, object]]:
    powers = Stream(0, ("bench", "mask sizes", case.name)).generator().uniform(-7, -5, case.shape)
    seconds = 10**powers
    taken: dict[str, list[float]] = {name: [] for name in backends}
    notes = dict.fromkeys(backends, "")
    for repeat in range(repeats + 1):
        for name in backends:
            if notes[name]:
                continue
            elapsed, notes[name] = _time(seconds, name)
            if repeat or notes[name]:
                taken[name].append(elapsed)
    exact = median(taken["exact"])
    return [
        _row(case.name, name, median(taken[name]), median(taken[name]) / exact, notes[name])
        for name in backends
    ]


def _time(seconds: FloatArray, backend: str) -> tuple[float, str]:
    """Wall-clock seconds of one solve, and a note if it did not prove an optimum."""
    cells = seconds.shape[-1]
    method = Exact() if backend == "exact" else _PROGRAMS[backend](_LIMIT_SECONDS)
    solution = optimize_mask_sizes(seconds, 75 * cells, cap=112.5, backend=method)
    if solution.status is Status.UNKNOWN:
        return solution.seconds, f"no solution after {_LIMIT_SECONDS:g} s"
    if solution.status is Status.FEASIBLE:
        return solution.seconds, f"gap {solution.gap:.2g} after {_LIMIT_SECONDS:g} s"
    return solution.seconds, ""


def _row(
    problem: str, backend: str, seconds: float | None, ratio: float | None, note: str | None
) -> dict[str, object]:
    return {
        "problem": problem,
        "backend": backend,
        "seconds": seconds,
        "ratio_to_exact": ratio,
        "note": note or "",
    }
