"""Benchmark of planning: wall-clock time of the plans of a run, without training."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

from benchmarks.timing import Rows, interleaved
from wirelessfl.config import Config
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.runs.build.configured import configured
from wirelessfl.runs.build.planners import planner_without_data

CELLS, CLIENTS = 4, 60
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "hfedavg, tdma": ("hfedavg", {}),
    "hist uniform, tdma": ("hist", {}),
    "hist optimized, tdma": ("hist", {"mask_sizes": "optimized"}),
    "hist optimized, ofdma": ("hist", {"mask_sizes": "optimized", "uplink": "ofdma"}),
    "hist uniform, aircomp": ("hist", {"uplink": "aircomp"}),
}


def planning_bench(repeats: int = 5, rounds: int = 1000) -> Rows:
    """Measure the median seconds of planning rounds of 4 cells with 15 clients each.

    A plan has participants, channel draws, submodels and the seconds of its round. Over the air,
    the beamformers, which only joules and training need, are not optimised. The model is that of
    Fashion-MNIST.

    Args:
        repeats: timed runs of each case, interleaved.
        rounds: number of planned rounds.

    Returns:
        Rows with run, rounds, seconds, and milliseconds per round.
    """
    planners = {name: _planner(*run) for name, run in RUNS.items()}
    calls = {name: partial(_plan, planner, rounds) for name, planner in planners.items()}
    taken = interleaved(calls, repeats)
    return [
        {
            "run": name,
            "rounds": rounds,
            "seconds": median(seconds),
            "ms_per_round": 1000 * median(seconds) / rounds,
        }
        for name, seconds in taken.items()
    ]


def _planner(algorithm: str, flags: dict[str, Any]) -> Planner:
    setting = {"dataset": "fashion-mnist", "cells": CELLS, "clients": CLIENTS}
    return planner_without_data(configured(Config.from_flags(algorithm, **setting, **flags)))


def _plan(planner: Planner, rounds: int) -> float:
    """Simulated seconds of the first rounds."""
    return sum(float(planner.plan(number).price.seconds.max()) for number in range(rounds))
