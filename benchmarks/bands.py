"""Benchmark of bands, constant and varying in time, against cone programs."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from channels.arrays import FloatArray
from channels.streams import Stream
from solvers import SolverUnavailableError, allocate_bands_in_time, allocate_bandwidth
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


_IN_TIME = (
    _Case(1, 20, ("prices", "cvxpy in time")),
    _Case(1, 40, ("prices",)),
    _Case(1, 160, ("prices",)),
    _Case(1, 640, ("prices",)),
)
_LOADED = 0.6
"""Seconds in which clients become ready, relative to those that uploads at once would take."""


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
    return _rows(_CASES, repeats, most)


def in_time_bench(repeats: int = 5, most: int = 640) -> list[dict[str, object]]:
    """As ``band_bench``, of ``allocate_bands_in_time`` and of cvxpy with Clarabel.

    Args:
        repeats: timed runs of each method.
        most: largest number of clients; smaller for tests.

    Returns:
        Rows with problem, backend, seconds, ratio_to_prices, gap, note.
    """
    return _rows(_IN_TIME, repeats, most)


def _rows(cases: tuple[_Case, ...], repeats: int, most: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for case in cases:
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
    first = case.methods[0]
    reference = median(taken[first])
    return [
        {
            "problem": case.name,
            "backend": name,
            "seconds": median(taken[name]) if taken[name] else None,
            f"ratio_to_{first}": median(taken[name]) / reference if taken[name] else None,
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


def _prices(uploads: BandProblems, best: float) -> tuple[float, float]:
    solution = allocate_bands_in_time(*_loaded(uploads), _BAND_HZ)
    return float(solution.gap), float(solution.objective)


def _loaded(uploads: BandProblems) -> BandProblems:
    """The first problem, whose clients become ready while others send."""
    bits, seconds, snr_hz = (array[0] for array in uploads)
    at_once = allocate_bandwidth(bits, 0.0, snr_hz, _BAND_HZ).objective
    return BandProblems(bits, _LOADED * at_once * seconds, snr_hz)


def _cvxpy_in_time(uploads: BandProblems, best: float) -> tuple[float, float]:
    """The relative distance of cvxpy's time to ``best``, that of ``allocate_bands_in_time``."""
    cvxpy = import_solver("cvxpy", "prices")
    bits, seconds, snr_hz = _loaded(uploads)
    order = seconds.argsort()
    bits, ready, snr_hz = bits[order] / 1e6, seconds[order], snr_hz[order] / 1e6
    end = cvxpy.Variable()
    lengths = [*np.diff(ready), end - ready[-1]]
    sent: list[Any] = [0.0] * len(bits)
    limits = [end >= ready[-1]]
    for k, length in enumerate(lengths):
        part = cvxpy.Variable(k + 1, nonneg=True)  # MHz x seconds of the clients that are ready
        limits.append(cvxpy.sum(part) <= _BAND_HZ / 1e6 * length)
        rates = -cvxpy.rel_entr(part, part + snr_hz[: k + 1] * length) / np.log(2)
        for i in range(k + 1):
            sent[i] += rates[i]
    limits += [sent[i] >= bits[i] for i in range(len(bits))]
    problem = cvxpy.Problem(cvxpy.Minimize(end), limits)
    with quiet_cvxpy():
        problem.solve(solver="CLARABEL")
    return abs(float(end.value) / best - 1), best


_METHODS: dict[str, Callable[[BandProblems, float], tuple[float, float]]] = {
    "newton": _newton,
    "cvxpy": _cvxpy,
    "prices": _prices,
    "cvxpy in time": _cvxpy_in_time,
}
