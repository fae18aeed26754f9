"""Benchmark of commands that do not train, relative to loading PyTorch."""

from __future__ import annotations

import statistics
import subprocess
import sys
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
