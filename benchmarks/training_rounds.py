"""Benchmark of ``optimize_rounds``: a whole grid in one solve, and point by point."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.timing import Rows, interleaved
from channels import section_vi_c
from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from solvers import optimize_rounds

_CELLS, _CLIENTS, _NEURONS = 4, 60, 300
_GOALS: dict[str, dict[str, Any]] = {
    "seconds": {},
    "joules by a deadline": {"weights": (0.0, 1.0)},
    "seconds and joules": {"weights": (1.0, 10.0)},
}
_LATER = 1.5
"""Deadline of the joules, relative to the fewest seconds."""


def rounds_bench(repeats: int = 5, local: int = 60, edge: int = 20, draws: int = 8) -> Rows:
    """Measure the median seconds of ``optimize_rounds`` on a grid, and of the grid point by point.

    Four cells of 15 clients each train masks of 300 neurons. The time of the grid point by point is
    the number of points times that of the best point alone.

    Args:
        repeats: timed runs of each case, interleaved.
        local, edge: H in 1..local and E in 1..edge.
        draws: channel draws.

    Returns:
        Rows with objective, points, seconds, ratio_point_by_point and gap.
    """
    steps, edges = np.arange(1, local + 1), np.arange(1, edge + 1)
    network = _network(draws)
    calls, cases = {}, {}
    for name, goal in _GOALS.items():
        if goal.get("weights") == (0.0, 1.0):
            fastest = _solve(network, steps, edges, {}).objective
            goal = goal | {"max_seconds": _LATER * fastest}
        best = _solve(network, steps, edges, goal)
        plan = best.value
        if plan is None:
            raise RuntimeError(f"no design: {best.message}.")
        one = np.array([plan.local_steps]), np.array([plan.edge_rounds])
        calls[name] = partial(_solve, network, steps, edges, goal)
        calls[f"{name}, a point"] = partial(_solve, network, *one, goal)
        cases[name] = best.gap
    taken = {name: median(times) for name, times in interleaved(calls, repeats).items()}
    points = local * edge
    return [
        {
            "objective": name,
            "points": points,
            "seconds": taken[name],
            "ratio_point_by_point": points * taken[f"{name}, a point"] / taken[name],
            "gap": gap,
        }
        for name, gap in cases.items()
    ]


def _network(draws: int) -> dict[str, Any]:
    """Arguments of ``optimize_rounds``, equal in all runs."""
    stream = Stream(0, ("bench", "training rounds"))
    network = section_vi_c(cells=_CELLS, clients=_CLIENTS, stream=stream)

    def rows(values: FloatArray) -> FloatArray:
        return np.asarray(network.by_cell(values).real)

    each = [network.draw(stream.child("channel", i)).gain_per_noise for i in range(draws)]
    cycles = np.broadcast_to(network.cycles_per_step, network.clients)
    return {
        "bits_per_unit": 32.0 * 795,
        "cycles_per_unit": 30 * rows(cycles) / _NEURONS,  # seconds of computation and uploads alike
        "gain_per_noise": np.stack([rows(gain) for gain in each]),
        "max_power_watts": rows(network.transmit_power_w),
        "max_cpu_hz": rows(network.cpu_hz),
        "kappa": rows(network.switched_capacitance),
        "bandwidth_hz": network.bandwidth_hz,
        "total": _NEURONS,
        "extra_seconds": np.array([0.1, 0.2, 0.3, 0.4]),
    }


def _solve(network: dict[str, Any], steps: IntArray, edges: IntArray, goal: dict[str, Any]) -> Any:
    h, e = np.meshgrid(steps, edges, indexing="ij")
    rounds = 3000 / (h * e) + 20 + 1.5 * h + 2 * e
    return optimize_rounds(rounds, **network, **goal, local_steps=steps, edge_rounds=edges)
