"""Benchmarks of what commands take besides training: their start, and sweeps of tiny runs."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from functools import partial

from benchmarks.timing import Rows, interleaved

TORCH = "import torch"
COMMANDS = ("--help", "list", "run hist --cels 3", "plan hist", "plan hist --dataset fashion-mnist")


def start_bench(repeats: int = 5) -> Rows:
    """Seconds of whole commands, from the start of Python to its end.

    Args:
        repeats: timed runs of each command, interleaved; medians are reported.
    """
    python = {TORCH: ["-c", TORCH]}
    python |= {f"wirelessfl {words}": ["-m", "wirelessfl", *words.split()] for words in COMMANDS}
    calls = {
        name: partial(subprocess.run, [sys.executable, *words], capture_output=True)
        for name, words in python.items()
    }
    times = {name: statistics.median(runs) for name, runs in interleaved(calls, repeats).items()}
    return [
        {"command": name, "seconds": seconds, "relative to import torch": seconds / times[TORCH]}
        for name, seconds in times.items()
    ]


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
