"""Benchmark of a whole command, including start-up, against a plain loop, with and without load."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.executors import PLAIN
from benchmarks.timing import Rows, seconds_of, with_threads
from benchmarks.workloads import BATCH, CLIENTS, STEPS, client_data, plain_loop, workloads
from wirelessfl.data import load_dataset
from wirelessfl.data.files import find_place
from wirelessfl.models import FCNN

WAYS: dict[str, list[str]] = {"default": [], "one process": ["--workers", "1"]}


def command_bench(
    repeats: int = 3,
    data_dir: Path | None = None,
    *,
    dataset: str = "fashion-mnist",
    rounds: int = 40,
    clients: int = CLIENTS,
    others: int = 3,
) -> dict[str, Rows]:
    """Time ``wirelessfl run hfedavg`` on W1, relative to the plain loop.

    The command starts Python, loads the data, trains ``rounds`` rounds, evaluates every fifth round
    and writes its run directory; the plain loop only trains, on data that are already loaded.

    Args:
        repeats: timed runs of each method, interleaved; medians are reported.
        data_dir: folder of the data sets.
        dataset: name of the data set.
        rounds: number of rounds.
        clients: number of clients, in a single cell.
        others: number of processes that keep the CPU busy while the second table is measured; 0
            omits that table.

    Returns:
        Tables by title: the first for all rounds without load, the second for a quarter of the
        rounds under load. The result is empty if the data set is not available.
    """
    if dataset != "digits" and not find_place(dataset, data_dir).folder.is_dir():
        print(f"skipping whole commands: data set {dataset} is not available", file=sys.stderr)
        return {}
    data = load_dataset(dataset, data_dir)
    loop_data = client_data(data.train_inputs, data.train_labels, clients)
    module = workloads()["W1"].module if clients == CLIENTS else FCNN(data.input_shape, 10)

    with tempfile.TemporaryDirectory() as folder:
        runs = itertools.count()

        def loop(rounds: int) -> None:
            for _ in range(rounds):
                plain_loop(module, loop_data)

        def command(flags: list[str], rounds: int) -> None:
            words = [*_words(dataset, data_dir, rounds, clients), *flags]
            out = Path(folder, str(next(runs)))
            subprocess.run([*words, "--out", str(out)], check=True, capture_output=True)

        calls: dict[str, Callable[[int], Any]] = {
            PLAIN: lambda rounds: with_threads(1, lambda: loop(rounds))
        }
        calls |= {name: partial(command, flags) for name, flags in WAYS.items()}
        work = f"{clients} clients, {data.name}"
        tables = {f"whole command on W1: {rounds} rounds, {work}": _rows(calls, rounds, repeats)}
        fewer = max(rounds // 4, 1)
        if others:
            with busy(others):
                beside = _rows(calls, fewer, repeats)
            title = f"whole command on W1: {fewer} rounds, {work}, {others} busy processes"
            tables[title] = beside
    return tables


def _words(dataset: str, data_dir: Path | None, rounds: int, clients: int) -> list[str]:
    settings = {
        "dataset": dataset,
        "model": "fcnn",
        "cells": 1,
        "clients": clients,
        "local-steps": STEPS,
        "batch-size": BATCH,
        "edge-rounds": 1,
        "rounds": rounds,
        "eval-every": 5,
    }
    if data_dir is not None:
        settings["data-dir"] = str(data_dir)
    flags = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "wirelessfl", "run", "hfedavg", *flags]


def _rows(calls: Mapping[str, Callable[[int], Any]], rounds: int, repeats: int) -> Rows:
    """Time the calls ``repeats`` times, interleaved."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(seconds_of(partial(call, rounds)))
    medians = {name: statistics.median(seen) for name, seen in times.items()}
    return [
        {
            "method": name,
            "seconds": medians[name],
            "range": f"{min(seen):.3g} - {max(seen):.3g}",
            "ratio": medians[PLAIN] / medians[name],
        }
        for name, seen in times.items()
    ]


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep ``count`` processes busy in the background."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in others:
            process.kill()
            process.wait()
