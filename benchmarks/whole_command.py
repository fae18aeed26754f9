"""Benchmark of whole commands, from the start of Python to the summary, beside whole programs."""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.memory import pss_bytes
from benchmarks.peers import PEERS
from benchmarks.timing import Rows, seconds_of
from benchmarks.workloads import BATCH, CLIENTS, STEPS
from wirelessfl.data.files import find_place

WAYS: dict[str, list[str]] = {"default": [], "one process": ["--workers", "1"]}
PACKAGES = {"JAX vmap": "jax", "Flower": "flwr"}
SAMPLE_SECONDS = 0.2
Words = Sequence[str]


def command_bench(
    repeats: int = 3,
    data_dir: Path | None = None,
    *,
    dataset: str = "fashion-mnist",
    rounds: Mapping[str, int] | None = None,
    clients: int = CLIENTS,
    others: int = 3,
) -> dict[str, Rows]:
    """Time ``wirelessfl run hfedavg`` on W1 and W2 beside programs that do the same.

    All of them start Python, load the data, train, and evaluate every fifth round.

    Args:
        repeats: timed runs of each command, interleaved, after one that shows the memory.
        data_dir: folder of the data sets.
        dataset: name of the data set; the other programs read only Fashion-MNIST.
        rounds: number of rounds of each model; 40 of ``fcnn`` and 10 of ``lenet5`` by default.
        clients: number of clients, in a single cell.
        others: number of processes that keep the CPU busy while a last table is measured, with a
            quarter of the first model's rounds; 0 omits it.

    Returns:
        Tables by title; ``ratio`` is the time relative to the default command's. The result is
        empty if the data set is not available.
    """
    place = find_place(dataset, data_dir).folder
    if dataset != "digits" and not place.is_dir():
        print(f"skipping whole commands: data set {dataset} is not available", file=sys.stderr)
        return {}
    tables: dict[str, Rows] = {}
    rounds = rounds or {"fcnn": 40, "lenet5": 10}
    peers = PEERS if dataset == "fashion-mnist" and clients == CLIENTS else ()
    with tempfile.TemporaryDirectory() as folder:
        runs = itertools.count()

        def command(flags: Words, model: str, count: int) -> list[str]:
            out = ["--out", str(Path(folder, str(next(runs))))]
            return [*_words(dataset, data_dir, model, count, clients), *flags, *out]

        def program(peer: str, model: str, count: int) -> list[str]:
            return [sys.executable, "-m", "benchmarks.peers", peer, model, str(count), str(place)]

        methods: dict[str, Callable[[str, int], list[str]]] = {
            name: partial(command, flags) for name, flags in WAYS.items()
        }
        for peer in peers:
            if find_spec(PACKAGES.get(peer, "torch")) is not None:
                methods[peer] = partial(program, peer)
        for model, count in rounds.items():
            calls = {name: partial(method, model, count) for name, method in methods.items()}
            if model == "lenet5" and find_spec("numba") is not None:
                stacked = ["--executor", "stacked"]
                calls["default without fused layers"] = partial(command, stacked, model, count)
            title = f"whole commands: {model}, {count} rounds, {clients} clients, {dataset}"
            tables[title] = _rows(calls, repeats)
        if others:
            model, count = next(iter(rounds.items()))
            count = max(count // 4, 1)
            calls = {name: partial(methods[name], model, count) for name in WAYS}
            with busy(others):
                tables[f"{model}, {count} rounds, {others} busy processes"] = _rows(calls, repeats)
    return tables


def _words(dataset: str, data_dir: Path | None, model: str, rounds: int, clients: int) -> list[str]:
    settings = {
        "dataset": dataset,
        "model": model,
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


def _rows(commands: Mapping[str, Callable[[], Words]], repeats: int) -> Rows:
    peaks = {name: _peak_mib(command()) for name, command in commands.items()}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            words = command()
            times[name].append(seconds_of(partial(_run, words)))
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    reference = next(iter(medians.values()))
    return [
        {
            "command": name,
            "seconds": medians[name],
            "range": f"{min(seconds):.3g} - {max(seconds):.3g}",
            "ratio": medians[name] / reference,
            "peak_mib": peaks[name],
        }
        for name, seconds in times.items()
    ]


def _run(words: Words) -> None:
    subprocess.run(words, check=True, capture_output=True, cwd=Path(__file__).parents[1])


def _peak_mib(words: Words) -> float | None:
    """Peak proportional set size of a command and all its processes; None without /proc."""
    if not Path("/proc/self/smaps_rollup").exists():
        _run(words)
        return None
    peak, done, ours = 0, threading.Event(), set(_descendants())

    def watch() -> None:
        nonlocal peak
        while not done.wait(SAMPLE_SECONDS):
            peak = max(peak, pss_bytes(sorted(set(_descendants()) - ours)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        _run(words)
    finally:
        done.set()
        watcher.join()
    return peak / 2**20


def _descendants() -> list[int]:
    """The processes that this one and its children have started."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    processes = [os.getpid()]
    for process in processes:  # the list grows meanwhile
        processes += children.get(process, [])
    return processes[1:]


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
