"""Benchmarks of planning: plans of a run without training, and many networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import channels
from benchmarks.timing import Rows, interleaved
from wirelessfl import price
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


def network_bench(repeats: int = 5, count: int = 10_000) -> Rows:
    """Measure the median seconds of building many networks and of pricing 30 rounds over them.

    They are drops of 20 clients in 4 urban micro cells, each from its own stream.

    Args:
        repeats: timed runs of each case, interleaved.
        count: number of networks.

    Returns:
        Rows with step, seconds, and the speed relative to building them one by one.
    """
    config = Config.from_flags("hfedavg", cells=CELLS, clients=20, rounds=30)
    streams = [channels.Stream(seed) for seed in range(count)]
    together = channels.umi(CELLS, 20, stream=streams)
    calls: dict[str, Callable[[], Any]] = {
        "build, one by one": lambda: [channels.umi(CELLS, 20, stream=one) for one in streams],
        "build, together": lambda: channels.umi(CELLS, 20, stream=streams),
        "price": lambda: price(config, network=together),
    }
    taken = {name: median(seconds) for name, seconds in interleaved(calls, repeats).items()}
    alone = next(iter(taken.values()))
    return [
        {"step": name, "networks": count, "seconds": seconds, "ratio": alone / seconds}
        for name, seconds in taken.items()
    ]
