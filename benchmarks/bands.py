"""Benchmark of bands: wall-clock time of ``allocate_bandwidth`` and of a cone program."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray
from channels.streams import Stream
from solvers import SolverUnavailableError, allocate_bandwidth
from solvers.packages import import_solver, quiet_cvxpy

_BAND_HZ = 20e6


class _Case(NamedTuple):
    problems: int
    clients: int
    methods: tuple[str, ...]

    @property
    def name(self) -> str:
        count = f"{self.problems} x " if self.problems > 1 else ""
        return f"{count}{self.clients} clients"


_CASES = (
    _Case(1, 15, ("newton", "cvxpy")),
    _Case(1, 50, ("newton", "cvxpy")),
    _Case(100_000, 15, ("newton",)),
    _Case(1, 1_000_000, ("newton",)),
)


class BandProblems(NamedTuple):
    """Uploads of random clients.

    Args:
        bits: [problems, clients], log-uniform over three decades.
        seconds: [problems, clients] of computation.
        snr_hz: [problems, clients], SNRs of -10 to 40 dB in the whole band.
    """

    bits: FloatArray
    seconds: FloatArray
    snr_hz: FloatArray


def band_bench(repeats: int = 5, most: int = 1_500_000) -> list[dict[str, object]]:
    """Measure the median seconds per problem of ``allocate_bandwidth`` and of cvxpy with Clarabel.

    After one warm-up run each, runs of both methods are interleaved, so that load on the machine
    affects both. Times of cvxpy include building the program, as for a user who calls it.

    Args:
        repeats: timed runs of each method.
        most: largest number of clients in all problems of a case; smaller for tests.

    Returns:
        Rows with problem, backend, seconds, ratio_to_newton, gap, note.
    """
    rows: list[dict[str, object]] = []
    for case in _CASES:
        clients = min(case.clients, most)
        problems = max(min(case.problems, most // clients), 1)
        rows += _measure(case._replace(problems=problems, clients=clients), repeats)
    return rows


def _measure(case: _Case, repeats: int) -> list[dict[str, object]]:
    uploads = drawn(case.problems, case.clients)
    taken: dict[str, list[float]] = {name: [] for name in case.methods}
    gaps: dict[str, float] = {}
    notes = dict.fromkeys(case.methods, "")
    best = np.inf
    for repeat in range(repeats + 1):
        for name in case.methods:
            if notes[name]:
                continue
            start = time.perf_counter()
            try:
                gaps[name], best = _METHODS[name](uploads, best)
            except SolverUnavailableError as error:
                notes[name] = str(error)
                continue
            if repeat:
                taken[name].append((time.perf_counter() - start) / case.problems)
    newton = median(taken["newton"])
    return [
        {
            "problem": case.name,
            "backend": name,
            "seconds": median(taken[name]) if taken[name] else None,
            "ratio_to_newton": median(taken[name]) / newton if taken[name] else None,
            "gap": gaps.get(name),
            "note": notes[name],
        }
        for name in case.methods
    ]


def drawn(problems: int, clients: int) -> BandProblems:
    """Random uploads, equal in all runs."""
    dice = Stream(0, ("bench", "bands", problems, clients)).generator()
    shape = problems, clients
    snr = 10 ** dice.uniform(-1, 4, shape)
    return BandProblems(10 ** dice.uniform(4, 7, shape), dice.uniform(0, 1, shape), snr * _BAND_HZ)


def _newton(uploads: BandProblems, best: float) -> tuple[float, float]:
    solution = allocate_bandwidth(*uploads, _BAND_HZ)
    return float(solution.gap.max()), float(solution.objective[0])


def _cvxpy(uploads: BandProblems, best: float) -> tuple[float, float]:
    """The relative distance of cvxpy's time to ``best``, that of ``allocate_bandwidth``."""
    cvxpy = import_solver("cvxpy", "newton")
    bits, seconds, snr_hz = (array[0] for array in uploads)
    end, band = cvxpy.Variable(), cvxpy.Variable(len(bits))  # the band in MHz
    rate = -cvxpy.rel_entr(band, band + snr_hz / 1e6) / np.log(2)
    needed = cvxpy.multiply(bits / 1e6, cvxpy.inv_pos(end - seconds))
    problem = cvxpy.Problem(
        cvxpy.Minimize(end), [rate >= needed, cvxpy.sum(band) <= _BAND_HZ / 1e6]
    )
    with quiet_cvxpy():
        problem.solve(solver="CLARABEL")
    return abs(float(end.value) / best - 1), best


_METHODS: dict[str, Callable[[BandProblems, float], tuple[float, float]]] = {
    "newton": _newton,
    "cvxpy": _cvxpy,
}
