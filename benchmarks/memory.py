"""Peak memory of a round of training, measured in fresh processes.

Proportional set size (PSS) counts a page that several processes share once. The result is the peak
PSS of this process and its workers during training, minus their PSS just before, which includes
idle workers and data. ``python -m benchmarks.memory WORK METHOD CLIENTS CHUNK`` prints it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.executors import PLAIN, build, variants
from benchmarks.workloads import (
    client_data,
    job_of,
    load_samples,
    plain_loop,
    trained,
    workloads,
)
from wirelessfl.training.objective import Objective
from wirelessfl.training.workers.workers_executor import WorkersExecutor

SAMPLE_SECONDS = 0.02


def pss_bytes(pids: Sequence[int]) -> int:
    """Total proportional set size of some processes, from /proc."""
    total = 0
    for pid in pids:
        with suppress(OSError):  # it has ended
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += 1024 * int(line.split()[1])
    return total


def peak_added(call: Callable[[], Any], pids: Sequence[int]) -> int:
    """Peak memory of the processes during ``call`` minus their memory before it, in bytes."""
    before, peak, done = pss_bytes(pids), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(SAMPLE_SECONDS):
            peak = max(peak, pss_bytes(pids))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:
        done.set()
        watcher.join()
    return max(peak - before, 0)


def peak_mb(
    work: str, way: str, clients: int, chunk: int = 1, data_dir: Path | None = None
) -> float | None:
    """Peak memory in megabytes, without data and idle processes; None without /proc.

    Args:
        work: W1 or W2.
        way: a key of ``variants()``, or the plain loop.
        clients: number of clients.
        chunk: number of clients that train together. The caller computes it, because computing it
            in the measured process would allocate memory.
        data_dir: folder of the data sets.
    """
    if not Path("/proc/self/smaps_rollup").exists():
        return None
    command = [sys.executable, "-m", "benchmarks.memory", work, way, str(clients), str(chunk)]
    if data_dir is not None:
        command.append(str(data_dir.resolve()))
    checkout = Path(__file__).parents[1]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=checkout)
    return float(done.stdout)


def _measure(work: str, way: str, clients: int, chunk: int, data_dir: Path | None) -> float:
    import os

    import torch

    x, y, _ = load_samples(data_dir)
    data, chosen = client_data(x, y, clients), workloads()[work]
    pids, objective = [os.getpid()], Objective.of(chosen.module)
    if way == PLAIN:
        torch.set_num_threads(1)
        small = client_data(x[:2000], y[:2000], 2)
        plain_loop(chosen.module, small)  # triggers one-time allocations of libraries
        return peak_added(lambda: plain_loop(chosen.module, data), pids) / 1e6
    variant = variants()[way]._replace(chunk=chunk)
    torch.set_num_threads(variant.threads)
    executor = build(variant, objective, data)
    if isinstance(executor, WorkersExecutor):
        executor.start()
        pids += executor.pids
    job = job_of(objective, clients)
    try:
        return peak_added(lambda: trained(executor, job), pids) / 1e6
    finally:
        executor.close()


if __name__ == "__main__":
    _, named, how, number, size, *folder = sys.argv
    print(_measure(named, how, int(number), int(size), Path(folder[0]) if folder else None))
