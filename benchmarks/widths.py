"""Benchmark of widths: wall-clock time of the exact method and a mixed-integer program."""

from __future__ import annotations

import time
from statistics import median
from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from solvers import fastest_widths
from solvers.packages import quiet_highs

_LIMIT_SECONDS = 5.0


class _Case(NamedTuple):
    clients: int
    levels: int
    backends: tuple[str, ...]


_CASES = (
    _Case(60, 10, ("exact", "highs")),
    _Case(1000, 10, ("exact", "highs")),
    _Case(10_000, 300, ("exact",)),
)


def width_bench(repeats: int = 5) -> list[dict[str, object]]:
    """Measure the median seconds of ``fastest_widths`` and of HiGHS (from scipy) on each problem.

    A client's seconds for the full model are log-uniform over [1, 100]; up to a tenth of them does
    not depend on the width, and the rest is proportional to it. Each neuron must be covered by 9 of
    10 clients, so that the optimum does not depend only on the slowest client's smallest level.
    After one warm-up run each, runs of both methods are interleaved, so that load on the machine
    affects both. HiGHS is not run again on a
    problem if it reaches its time limit of 5 s.

    Args:
        repeats: timed runs of each backend.

    Returns:
        Rows with problem, backend, seconds, ratio_to_exact, note.
    """
    return [row for case in _CASES for row in _measure(case, repeats)]


def _measure(case: _Case, repeats: int) -> list[dict[str, object]]:
    seconds, neurons, coverage = _problem(case.clients, case.levels)
    taken: dict[str, list[float]] = {name: [] for name in case.backends}
    notes = dict.fromkeys(case.backends, "")
    for repeat in range(repeats + 1):
        for name in case.backends:
            if notes[name]:
                continue
            start = time.perf_counter()
            if name == "exact":
                fastest_widths(seconds, neurons, coverage)
            else:
                _, notes[name] = highs_widths(seconds, neurons, coverage, _LIMIT_SECONDS)
            if repeat or notes[name]:
                taken[name].append(time.perf_counter() - start)
    exact = median(taken["exact"])
    return [
        {
            "problem": f"{case.clients} clients, {case.levels} levels",
            "backend": name,
            "seconds": median(taken[name]),
            "ratio_to_exact": median(taken[name]) / exact,
            "note": notes[name],
        }
        for name in case.backends
    ]


def _problem(clients: int, levels: int) -> tuple[FloatArray, IntArray, int]:
    dice = Stream(0, ("bench", "widths", clients, levels)).generator()
    full = 10 ** dice.uniform(0, 2, (clients, 1))
    fixed = dice.uniform(0, 0.1, (clients, 1))  # fraction of the time that is independent of width
    neurons = np.arange(1, levels + 1)
    return full * (fixed + (1 - fixed) * neurons / levels), neurons, 9 * clients // 10


def highs_widths(
    seconds: FloatArray,
    neurons: IntArray,
    coverage: int,
    limit_seconds: float,
) -> tuple[float | None, str]:
    """Solve the problem of ``fastest_widths`` with HiGHS.

    Binary variables y[n, k], k >= 1, are 1 if client n's level is at least k. The program is  min t
    with  s_n0 + sum_k (s_nk - s_n,k-1) y_nk <= t,  y_nk nonincreasing in k,  and
    sum_nk (w_k - w_k-1) y_nk >= Gamma* K - n w_0.

    Args:
        seconds: [clients, levels], at least two levels.
        neurons: [levels].
        coverage: Gamma*.
        limit_seconds: time limit, after which HiGHS stops with its best solution.

    Returns:
        Seconds of the shortest round found, and a note if it is not proven optimal.
    """
    from scipy import optimize, sparse

    clients, levels = seconds.shape
    size = clients * (levels - 1)
    slower = sparse.block_diag(np.diff(seconds)[:, None, :])
    order = sparse.kron(sparse.identity(clients), np.diff(np.identity(levels - 1), axis=0))
    rows = sparse.bmat(
        [
            [slower, -np.ones((clients, 1))],
            [order, None],
            [np.tile(np.diff(neurons), clients)[None], None],
        ]
    )
    missing = coverage * neurons[-1] - clients * neurons[0]
    free = np.full(order.shape[0], -np.inf)
    with quiet_highs:
        answer = optimize.milp(
            np.append(np.zeros(size), 1),
            integrality=np.append(np.ones(size), 0),
            bounds=optimize.Bounds(0, np.append(np.ones(size), np.inf)),
            constraints=optimize.LinearConstraint(
                rows.tocsr(),
                np.concatenate([np.full(clients, -np.inf), free, [missing]]),
                np.concatenate([-seconds[:, 0], np.zeros(len(free)), [np.inf]]),
            ),
            options={"mip_rel_gap": 0, "time_limit": limit_seconds},
        )
    if answer.status == 0:
        return answer.fun, ""
    ending = "no solution" if answer.mip_gap is None else f"gap {answer.mip_gap:.2g}"
    return answer.fun, f"{ending} after {limit_seconds:g} s"
