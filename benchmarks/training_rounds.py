"""Benchmarks of ``optimize_rounds``: a whole grid against point by point, and many cells."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.timing import Rows, interleaved
from channels import ChannelDraw, Load, section_vi_c
from channels.arrays import IntArray
from channels.streams import Stream
from solvers import TrainingProblem, optimize_rounds
from solvers.training_rounds import grid_search

_CELLS, _NEURONS = 4, 300
_BACKHAUL = 0.1, 0.4
"""Seconds of the first and the last cell that follow the edge rounds."""
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


def cells_bench(
    repeats: int = 5, cells: tuple[int, ...] = (16, 32), draws: int = 1, highs: int = 16
) -> Rows:
    """Measure the median seconds of many cells, by branch and bound and by HiGHS.

    Seconds and joules count; 10 x 5 points.

    Args:
        repeats: timed runs of each case, interleaved.
        cells: numbers of cells, of 15 clients each.
        draws: channel draws.
        highs: most cells with a run of HiGHS.

    Returns:
        Rows with cells, seconds, ratio_highs and gap.
    """
    steps, edges = np.arange(1, 11), np.arange(1, 6)
    calls: dict[str, Callable[[], Any]] = {}
    gaps = []
    for number in cells:
        network = _network(draws, number)
        solve = partial(_solve, network, steps, edges, _GOALS["seconds and joules"])
        gaps.append(solve().gap)
        calls[str(number)] = solve
        if number <= highs:
            calls[f"{number} by HiGHS"] = partial(_by_highs, solve)
    taken = {name: median(times) for name, times in interleaved(calls, repeats).items()}
    return [
        {
            "cells": number,
            "seconds": taken[str(number)],
            "ratio_highs": taken[f"{number} by HiGHS"] / taken[str(number)]
            if number <= highs
            else None,
            "gap": gap,
        }
        for number, gap in zip(cells, gaps, strict=True)
    ]


def _by_highs(solve: Callable[[], Any]) -> Any:
    """Solve with integer programs for any number of cells."""
    most, grid_search.MANY = grid_search.MANY, 10**9
    try:
        return solve()
    finally:
        grid_search.MANY = most


def _network(draws: int, cells: int = _CELLS) -> tuple[Load, ChannelDraw]:
    """The load of a neuron and a local step, and the channels, equal in all runs."""
    stream = Stream(0, ("bench", "training rounds"))
    network = section_vi_c(cells=cells, clients=15 * cells, stream=stream)
    blocks = [network.draw(stream.child("channel", i)).h for i in range(draws)]
    # Seconds of computation and uploads alike.
    neuron = Load(30 * network.cycles_per_step / _NEURONS, elements=795)
    return neuron, ChannelDraw(network, np.stack(blocks))


def _solve(
    network: tuple[Load, ChannelDraw], steps: IntArray, edges: IntArray, goal: dict[str, Any]
) -> Any:
    h, e = np.meshgrid(steps, edges, indexing="ij")
    rounds = 3000 / (h * e) + 20 + 1.5 * h + 2 * e
    backhaul = np.linspace(*_BACKHAUL, network[1].network.cells)
    problem = TrainingProblem.of_load(*network, _NEURONS, extra_seconds=backhaul)
    return optimize_rounds(problem, rounds, local_steps=steps, edge_rounds=edges, **goal)
