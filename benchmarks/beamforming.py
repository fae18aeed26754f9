"""Benchmark of receive beamforming: quality relative to the best known, and throughput."""

from __future__ import annotations

import time
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from channels.arrays import FloatArray
from channels.streams import Stream
from solvers import SolverUnavailableError, Status, optimize_beamformer
from solvers.beamforming import (
    Anneal,
    BeamformerBackend,
    BranchAndBound,
    MirrorProx,
    Sca,
    Sdr,
)

_FAST = 16  # number of starts of the fast setting


class _Case(NamedTuple):
    antennas: int
    clients: int
    path_gain_db: float = 0.0
    factor: float = 1.0
    exact: bool = False  # whether to run branch and bound


_CASES = (
    _Case(10, 10, exact=True),
    _Case(10, 15),
    _Case(4, 15, exact=True),
    _Case(4, 30, exact=True),
    _Case(10, 60),
    _Case(10, 15, path_gain_db=20),
    _Case(4, 30, path_gain_db=20, exact=True),
    _Case(10, 60, path_gain_db=20),
    _Case(10, 15, factor=1e-8),
    _Case(10, 15, factor=1e8),
)
_METHODS: dict[str, BeamformerBackend] = {
    "anneal": Anneal(),
    f"anneal, {_FAST} starts": Anneal(starts=_FAST),
    "mirror_prox": MirrorProx(),
    "sca (cvxpy)": Sca(),
    "sdr (cvxpy)": Sdr(),
}


def beamforming_bench(
    repeats: int = 5,
    *,
    problems: int = 50,
    batch: int = 1000,
    limit_seconds: float = 60.0,
    starts: int = 10_000,
) -> dict[str, list[dict[str, object]]]:
    """Measure quality and throughput of every method, on one thread.

    Channels are i.i.d. CN(0, 1); some cases have path gains within +-20 dB or are scaled by 1e-8
    and 1e8. The reference of a problem is the best result of all methods, including 10,000 starts
    with another seed. In some cases branch and bound also tries to certify the optimum to 1e-4
    within its time limit; it stops after ten limits per case. ``certified`` counts the certified
    optima.

    Args:
        repeats: timed runs for throughput; medians are reported.
        problems: number of problems per case.
        batch: problems solved together in the throughput measurement.
        limit_seconds: time limit of branch and bound per problem.
        starts: number of starts in the search for the reference.

    Returns:
        Two tables: quality, and problems per second with 10 antennas and 15 clients.
    """
    quality = [row for case in _CASES for row in _quality(case, problems, limit_seconds, starts)]
    return {
        "beamforming: objective relative to the best known": quality,
        "beamforming: problems per second, M = 10, K = 15": _throughput(repeats, batch),
    }


def _channels(case: _Case, problems: int) -> NDArray[np.complex128]:
    name = f"M = {case.antennas}, K = {case.clients}, {case.path_gain_db:g} dB, {case.factor:g}"
    dice = Stream(0, ("bench", "beamforming", name)).generator()
    shape = (problems, case.clients, case.antennas, 2)
    h = dice.standard_normal(shape).view(np.complex128)[..., 0] / np.sqrt(2)
    gain = dice.uniform(-case.path_gain_db, case.path_gain_db, (problems, case.clients, 1))
    return np.asarray(case.factor * h * 10 ** (gain / 20))


def _quality(
    case: _Case, problems: int, limit_seconds: float, many_starts: int
) -> list[dict[str, object]]:
    h = _channels(case, problems)
    results: dict[str, tuple[FloatArray, float]] = {}
    for method, backend in _METHODS.items():
        try:
            solution = optimize_beamformer(h, backend=backend)
        except SolverUnavailableError:
            continue
        results[method] = solution.objective, solution.seconds / problems
    many = optimize_beamformer(h, backend=Anneal(starts=many_starts, seed=1)).objective
    best = np.maximum.reduce([many, *(objective for objective, _ in results.values())])
    certified = 0
    deadline = time.monotonic() + 10 * limit_seconds
    for number in range(problems if case.exact else 0):
        if time.monotonic() > deadline:
            break
        exact = optimize_beamformer(
            h[number], backend=Anneal(seed=1), certificate=BranchAndBound(limit_seconds)
        )
        best[number] = max(best[number], exact.objective)
        certified += exact.status is Status.OPTIMAL
    bound = optimize_beamformer(h, backend=Anneal(starts=1), certificate="sdr").bound
    rows: list[dict[str, object]] = []
    for method, (objective, seconds) in results.items():
        ratio = objective / best
        rows.append(
            {
                "problem": _name(case),
                "method": method,
                "mean_ratio": float(ratio.mean()),
                "min_ratio": float(ratio.min()),
                "ratio_to_sdr_bound": float((objective / bound).mean()),
                "ms_per_problem": 1e3 * seconds,
                "certified": f"{certified} of {problems}",
            }
        )
    return rows


def _name(case: _Case) -> str:
    name = f"M={case.antennas} K={case.clients}"
    if case.path_gain_db:
        name += f" +-{case.path_gain_db:g} dB"
    return name + (f" x{case.factor:g}" if case.factor != 1 else "")


def _throughput(repeats: int, batch: int) -> list[dict[str, object]]:
    """Problems per second; runs of the methods are interleaved, after one warm-up run each."""
    h = _channels(_Case(10, 15), batch).astype(np.complex64)
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    methods = {
        f"{method}, {device}" if len(devices) > 1 else method: (backend, device)
        for device in devices
        for method, backend in _METHODS.items()
        if "cvxpy" not in method
    }
    taken: dict[str, list[float]] = {method: [] for method in methods}
    for repeat in range(repeats + 1):
        for method, (backend, device) in methods.items():
            tensor = torch.from_numpy(h).to(device)
            start = time.perf_counter()
            optimize_beamformer(tensor, backend=backend)
            if device == "cuda":
                torch.cuda.synchronize()
            if repeat:
                taken[method].append(time.perf_counter() - start)
    slowest = max(median(seconds) for seconds in taken.values())
    return [
        {
            "method": method,
            "problems_per_second": batch / median(seconds),
            "ratio_to_slowest": slowest / median(seconds),
            "batch": batch,
        }
        for method, seconds in taken.items()
    ]
