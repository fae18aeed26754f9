"""Gaps of baselines to certified optima, by network and by what is minimised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from channels.arrays import FloatArray
from channels.streams import Stream
from experiments import records
from experiments.allocation import baselines
from experiments.allocation.networks import KAPPA, NETWORKS, Cells, drawn
from solvers import (
    Solution,
    allocate_bandwidth,
    allocate_energy,
    optimize_mask_sizes,
    optimize_masks_and_bands,
    schedule_uplink,
    select_clients,
)

FILE = Path(__file__).with_name("gaps.json")
"""The gaps of 1000 cells per network, in the repository."""
PROBLEMS = 1000
SHARE = 4
"""One of this many clients is selected."""
SLACK = 1.5
"""Deadline of the problems of energy, relative to the least seconds."""
ALTERNATIONS = 20
NEURONS, GROUP, GROUP_CLIENTS, CAP = 300, 4, 15, 1.5
"""One model is split over the cells of a group; a cell trains at most CAP even shares."""


class Gap(NamedTuple):
    """The excess of a baseline over the optimum, over the cells of a network.

    Args:
        network: name of the network.
        quantity: what is minimised.
        baseline: the rule.
        median: of (baseline - optimum) / optimum, in percent.
        low, high: 5th and 95th percentile.
        bound: largest relative gap of the optimum to its own bound.
        cells: number of cells.
    """

    network: str
    quantity: str
    baseline: str
    median: float
    low: float
    high: float
    bound: float
    cells: int


def measure(problems: int = PROBLEMS, greedy: int = 100) -> list[Gap]:
    """All gaps.

    Args:
        problems: cells per network, four at least.
        greedy: cells per network on which the greedy selection is tried, which takes longest.
    """
    gaps = []
    for name in NETWORKS:
        cells = drawn(name, problems)
        for quantity, study in STUDIES.items():
            optimum, others = study(cells, greedy)
            for baseline, values in others.items():
                best = np.asarray(optimum.objective)[: len(values)]
                excess = 100 * (values / best - 1)
                low, median, high = np.percentile(excess, [5, 50, 95])
                gap = float(np.max(optimum.gap))
                row = Gap(name, quantity, baseline, median, low, high, gap, len(values))
                gaps.append(row)
    return gaps


def _seconds(cells: Cells, greedy: int) -> tuple[Solution[FloatArray], dict[str, FloatArray]]:
    optimum = allocate_bandwidth(
        cells.bits, cells.compute_seconds, cells.snr_hz, cells.bandwidth_hz
    )
    whole = np.full(cells.bits.shape, cells.bandwidth_hz)
    alone = baselines.upload_seconds(cells, whole)
    return optimum, {
        "equal bands": baselines.seconds_of_equal_bands(cells),
        "equal slots": schedule_uplink(cells.compute_seconds, alone, "slots").objective,
        "one by one": schedule_uplink(cells.compute_seconds, alone).objective,
    }


def _sizes(cells: Cells, greedy: int) -> tuple[Solution[Any], dict[str, FloatArray]]:
    """Groups of four cells with fifteen clients each, among which one model is split."""
    groups = len(cells.bits) // GROUP
    shape = groups, GROUP, GROUP_CLIENTS
    part = Cells(*(array[: groups * GROUP, :GROUP_CLIENTS] for array in cells[:4]), *cells[4:])
    bits, ready, snr = (
        array.reshape(shape) for array in (part.bits, part.compute_seconds, part.snr_hz)
    )
    arrays, limit = (bits / NEURONS, ready / NEURONS, snr, part.bandwidth_hz), CAP * NEURONS / GROUP
    even = baselines.seconds_of_equal_bands(part).reshape(groups, GROUP)
    best = allocate_bandwidth(*arrays).objective.max(-1) * NEURONS / GROUP
    return optimize_masks_and_bands(*arrays, NEURONS, cap=limit), {
        "equal sizes, equal bands": even.max(-1) / GROUP,
        "best sizes, equal bands": optimize_mask_sizes(
            even / NEURONS, NEURONS, cap=limit
        ).objective,
        "equal sizes, best bands": best,
    }


def _selection(cells: Cells, greedy: int) -> tuple[Solution[FloatArray], dict[str, FloatArray]]:
    count = max(cells.bits.shape[1] // SHARE, 1)
    optimum = select_clients(
        cells.bits, cells.compute_seconds, cells.snr_hz, cells.bandwidth_hz, count=count
    )
    best = baselines.some_clients(cells, baselines.best_channels(cells, count))
    dice = Stream(0, ("allocation", "random clients")).generator()
    order = dice.random(cells.bits.shape).argsort(-1)[:, :count]
    few = Cells(*(array[:greedy] for array in cells[:4]), *cells[4:])
    return optimum, {
        "random, equal bands": baselines.seconds_of_equal_bands(
            baselines.some_clients(cells, order)
        ),
        "best channels, equal bands": baselines.seconds_of_equal_bands(best),
        "best channels, best bands": allocate_bandwidth(
            best.bits, best.compute_seconds, best.snr_hz, best.bandwidth_hz
        ).objective,
        "greedy": baselines.greedy_selection(few, count)[1],
    }


def _energy(cells: Cells, greedy: int) -> tuple[Solution[FloatArray], dict[str, FloatArray]]:
    least = allocate_bandwidth(cells.bits, cells.compute_seconds, cells.snr_hz, cells.bandwidth_hz)
    even = baselines.seconds_of_equal_bands(cells)
    deadline = np.maximum(SLACK * least.objective, even)
    optimum = allocate_energy(
        cells.bits,
        cells.cycles,
        cells.gain_per_noise,
        cells.bandwidth_hz,
        deadline_seconds=deadline,
        max_power_watts=cells.max_power_watts,
        max_cpu_hz=cells.max_cpu_hz,
        kappa=KAPPA,
    )
    bands = baselines.equal_bands(cells)
    full = baselines.upload_seconds(cells, bands)
    window = baselines.best_windows(cells, bands, deadline)
    joules = {
        "equal bands, full power": baselines.joules(cells, bands, full, deadline),
        "equal bands, best power": baselines.joules(cells, bands, window, deadline),
    }
    for _ in range(ALTERNATIONS):
        bands = baselines.best_bands(cells, window, baselines.least_bands(cells, window))
        window = baselines.best_windows(cells, bands, deadline)
    joules["alternation"] = baselines.joules(cells, bands, window, deadline)
    return optimum, joules


def _both(cells: Cells, greedy: int) -> tuple[Solution[FloatArray], dict[str, FloatArray]]:
    least = allocate_bandwidth(cells.bits, cells.compute_seconds, cells.snr_hz, cells.bandwidth_hz)
    limits = {
        "max_power_watts": cells.max_power_watts,
        "max_cpu_hz": cells.max_cpu_hz,
        "kappa": KAPPA,
    }
    task = cells.bits, cells.cycles, cells.gain_per_noise, cells.bandwidth_hz
    late = allocate_energy(*task, deadline_seconds=SLACK * least.objective, **limits)
    weights = 1 / least.objective, 1 / late.objective
    optimum = allocate_energy(*task, weights=weights, **limits)
    bands = baselines.equal_bands(cells)

    def cost(bands: FloatArray, window: FloatArray) -> FloatArray:
        end = baselines.best_end(cells, window, *weights)
        return weights[0] * end + weights[1] * baselines.joules(cells, bands, window, end)

    full = baselines.upload_seconds(cells, bands)
    half = cells._replace(max_power_watts=cells.max_power_watts / 2)
    window = baselines.upload_seconds(half, bands)
    better = baselines.best_bands(cells, window, baselines.least_bands(cells, window))
    return optimum, {
        "equal bands, full power": cost(bands, full),
        "equal bands, half power": cost(bands, window),
        "two blocks": cost(better, window),
    }


STUDIES: dict[str, Callable[[Cells, int], tuple[Solution[Any], dict[str, FloatArray]]]] = {
    "least seconds": _seconds,
    "least seconds of a quarter": _selection,
    "least seconds of four cells": _sizes,
    "least joules": _energy,
    "seconds and joules": _both,
}


def load(file: Path = FILE) -> list[Gap]:
    """Read the gaps."""
    return records.load(Gap, file)
