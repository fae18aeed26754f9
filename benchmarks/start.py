"""Benchmarks of the start of commands, relative to loading PyTorch, and of sweeps of tiny runs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import wirelessfl
from benchmarks.timing import Rows, interleaved
from wirelessfl.data.files import find_place

TORCH = "import torch"
COMMANDS = ("--help", "list", "run hist --cels 3", "plan hist", "plan hist --dataset fashion-mnist")
DATASETS = ("digits", "fashion-mnist")
FIRST_ROW = "round 0/"
"""Beginning of the line of a run's first row."""
ENDED = ", first row"
"""End of the name of a run that is killed at its first row."""


def start_bench(repeats: int = 5, data_dir: Path | None = None) -> Rows:
    """Seconds of whole commands, and of runs to their first row, from the start of Python.

    Their CPU time is that of all threads. Bytecode is stored, as by an installation.

    Args:
        repeats: timed runs of each command, interleaved; medians are reported.
        data_dir: folder of the data sets; runs of those that it lacks are left out.
    """
    commands = {TORCH: ["-c", TORCH]}
    commands |= {f"wirelessfl {words}": ["-m", "wirelessfl", *words.split()] for words in COMMANDS}
    folder = [] if data_dir is None else ["--data-dir", str(data_dir)]
    for dataset in DATASETS:
        if dataset == "digits" or find_place(dataset, data_dir).folder.is_dir():
            run = f"run hist --dataset {dataset}"
            commands[f"wirelessfl {run}{ENDED}"] = ["-m", "wirelessfl", *run.split(), *folder]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as outs:
        for number in range(repeats + 1):  # the first ones store bytecode, and are not counted
            for name, words in commands.items():
                out = ["--out", f"{outs}/{number} {name}"] if name.endswith(ENDED) else []
                seconds = _seconds([*words, *out])
                times[name] += [seconds] if number else []
    medians = {
        name: [statistics.median(run[kind] for run in runs) for kind in (0, 1)]
        for name, runs in times.items()
    }
    return [
        {
            "command": name,
            "seconds": seconds,
            "relative to import torch": seconds / medians[TORCH][0],
            "CPU seconds": cpu,
            "CPU relative to import torch": cpu / medians[TORCH][1],
        }
        for name, (seconds, cpu) in medians.items()
    ]


def _seconds(words: list[str]) -> tuple[float, float]:
    """Wall-clock and CPU seconds of a command, which is killed at the first row of its run."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    begun, cpu = time.perf_counter(), _cpu_of_children()
    process = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(FIRST_ROW):
                process.kill()
                break
    return time.perf_counter() - begun, _cpu_of_children() - cpu


def _cpu_of_children() -> float:
    used = os.times()
    return used.children_user + used.children_system


MEASURE = """
import ctypes, os, subprocess, sys, time

if sys.platform.startswith("linux"):  # what the command leaves behind becomes a child
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
begun = time.perf_counter()
subprocess.run([sys.executable, *sys.argv[1:]], stdout=subprocess.DEVNULL, check=True)
print(time.perf_counter() - begun)
try:
    while True:
        os.wait()
except ChildProcessError:
    print(sum(os.times()[2:4]))
"""
"""Prints wall-clock and CPU seconds of a command with all its processes."""


def sweep_bench(repeats: int = 5, runs: int = 64) -> Rows:
    """CPU and wall-clock seconds of ``wirelessfl sweep`` with one process and with two.

    Each run trains four clients of digits for two rounds.

    Args:
        repeats: timed sweeps of each kind, interleaved; medians are reported.
        runs: number of runs of a sweep, which differ in their seed.
    """
    settings = "-m wirelessfl sweep fedavg --clients 4 --rounds 2 --local-steps 2 --quiet --seed"
    words = [*settings.split(), ",".join(map(str, range(runs)))]
    times: dict[int, list[tuple[float, ...]]] = {1: [], 2: []}
    for _ in range(repeats):
        for jobs, seen in times.items():
            with tempfile.TemporaryDirectory() as out:
                command = [*words, "--jobs", str(jobs), "--out", out]
                done = subprocess.run(
                    [sys.executable, "-c", MEASURE, *command], capture_output=True, check=True
                )
            seen.append(tuple(map(float, done.stdout.split())))
    medians = {
        jobs: [*map(statistics.median, zip(*seen, strict=True))] for jobs, seen in times.items()
    }
    return [
        {
            "jobs": jobs,
            "runs": runs,
            "seconds": wall,
            "cpu_seconds": cpu,
            "seconds_relative_to_one_job": wall / medians[1][0],
            "cpu_relative_to_one_job": cpu / medians[1][1],
        }
        for jobs, (wall, cpu) in medians.items()
    ]


def shared_data_bench(
    repeats: int = 5,
    data_dir: Path | None = None,
    *,
    dataset: str = "fashion-mnist",
    runs: int = 8,
) -> Rows:
    """Seconds of short runs in one process: each by a call of ``run``, and all by one of ``sweep``.

    Runs of ``hist`` differ in their seed, and train for one local step in each of two edge rounds.

    Args:
        repeats: timed calls of each kind, interleaved; medians are reported.
        data_dir: folder of the data sets.
        dataset: name of the data set.
        runs: number of runs.

    Returns:
        The table; empty if the data set is not available.
    """
    if dataset != "digits" and not find_place(dataset, data_dir).folder.is_dir():
        print(f"skipping sweeps: data set {dataset} is not available", file=sys.stderr)
        return []
    configs = [
        wirelessfl.Config.from_flags(
            "hist",
            dataset=dataset,
            data_dir=data_dir,
            rounds=1,
            edge_rounds=2,
            local_steps=1,
            seed=seed,
        )
        for seed in range(runs)
    ]

    def one_by_one() -> None:
        with tempfile.TemporaryDirectory() as out:
            for number, config in enumerate(configs):
                wirelessfl.run(config.with_run({"out": Path(out, str(number))}), on_note=_ignore)

    def together() -> None:
        with tempfile.TemporaryDirectory() as out:
            wirelessfl.sweep(configs, out, on_note=_ignore)

    ways = {"run": one_by_one, "sweep": together}
    return _relative(ways, repeats, "runs by", {"data set": dataset, "runs": runs})


def together_bench(repeats: int = 5, *, rounds: int = 3, runs: int = 8) -> Rows:
    """Seconds of ``sweep`` for runs on digits that differ in their seed: in turn, and together.

    Args:
        repeats: timed sweeps of each kind, interleaved; medians are reported.
        rounds: global rounds of ``hist``; ``fedavg`` with two of 20 clients has ten times as many.
        runs: number of runs.
    """
    table: Rows = []
    for algorithm, flags in (
        ("hist", {"rounds": rounds}),
        ("fedavg", {"rounds": 10 * rounds, "clients": 20, "clients_per_round": 2}),
    ):
        configs = [
            wirelessfl.Config.from_flags(algorithm, dataset="digits", seed=seed, **flags)
            for seed in range(runs)
        ]

        def swept(configs: list[wirelessfl.Config], *, together: bool) -> None:
            with tempfile.TemporaryDirectory() as out:
                wirelessfl.sweep(configs, out, together=together, on_note=_ignore)

        ways = {
            name: partial(swept, configs, together=name == "together")
            for name in ("in turn", "together")
        }
        table += _relative(ways, repeats, "trained", {"algorithm": algorithm, "runs": runs})
    return table


def _relative(
    ways: Mapping[str, Callable[[], None]], repeats: int, title: str, facts: dict[str, Any]
) -> Rows:
    """Median seconds of each way, and relative to the first one; ``title`` is that of the ways."""
    times = interleaved(ways, repeats)
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    first = next(iter(medians))
    return [
        {title: name, **facts, "seconds": seconds, f"relative to {first}": seconds / medians[first]}
        for name, seconds in medians.items()
    ]


def _ignore(note: str) -> None:
    pass
