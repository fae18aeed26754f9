"""Benchmark of local training on a GPU, relative to a plain loop and the memory bandwidth."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import Rows, copy_rate, seconds_of, wait
from benchmarks.workloads import (
    BATCH,
    STEPS,
    client_data,
    job_of,
    plain_loop,
    trained,
    workloads,
)
from wirelessfl.training.module_executors import VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor

CHUNK = 256


def gpu_tables(
    x: Tensor, y: Tensor, clients: int, repeats: int, device: torch.device
) -> dict[str, Rows]:
    """Time W1 and W2 on ``device``, with the H steps recorded once and replayed.

    In each step a client at least reads its parameters twice, writes them once, and reads its
    batch. ``percent_of_bandwidth`` is the rate of these bytes relative to that of a large copy on
    the same device.

    Args:
        x: inputs [samples, ...].
        y: labels [samples].
        clients: number of clients.
        repeats: timed runs of each method; medians are reported.
        device: the device to measure.
    """
    inputs, labels = x.to(device), y.to(device)
    bandwidth = copy_rate(device)
    tables = {}
    for name, work in workloads().items():
        module = copy.deepcopy(work.module).to(device)
        objective, data = Objective.of(module), client_data(inputs, labels, clients)
        executors = {
            "vmap, recorded": VmapExecutor(objective, data, CHUNK, recorded=True),
            "stacked, recorded": StackedExecutor(objective, data, CHUNK, recorded=True),
        }
        job = job_of(objective, clients)
        calls: dict[str, Callable[[], Any]] = {
            "plain loop": lambda m=module, d=data: plain_loop(m, d)  # type: ignore[misc]
        }
        for way, executor in executors.items():
            calls[way] = lambda e=executor, j=job: trained(e, j)  # type: ignore[misc]
        times = {way: _timed(call, repeats, device) for way, call in calls.items()}
        plain = statistics.median(times["plain loop"])
        moved = 4 * clients * STEPS * (3 * objective.spec.size + BATCH * x[0].numel())
        rows = []
        for way, seen in times.items():
            median = statistics.median(seen)
            rows.append(
                {
                    "method": way,
                    "seconds": median,
                    "ratio": plain / median,
                    "percent_of_bandwidth": 100 * moved / median / bandwidth,
                }
            )
        tables[f"{name} on {device}, copies at {bandwidth / 1e9:.0f} GB/s"] = rows
    return tables


def _timed(call: Callable[[], Any], repeats: int, device: torch.device) -> list[float]:
    def whole() -> None:
        call()
        wait(device)

    whole()
    return [seconds_of(whole) for _ in range(repeats)]
