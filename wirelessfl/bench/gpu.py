"""The engine on a GPU: against the plain loop there, and against its memory's bandwidth."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wirelessfl.bench.timing import Rows, copy_rate, seconds_of, wait
from wirelessfl.bench.workloads import (
    BATCH,
    STEPS,
    client_data,
    job_of,
    plain_loop,
    trained,
    workloads,
)
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.vmapped import VmapExecutor

CHUNK = 256


def gpu_tables(
    x: Tensor, y: Tensor, clients: int, repeats: int, device: torch.device
) -> dict[str, Rows]:
    """W1 and W2 on ``device``, the H steps recorded once and replayed.

    Bytes that a round must move at the least: each step reads a client's parameters twice and
    writes them once, and reads its batch; ``percent_of_bandwidth`` is that over the measured time,
    against a large copy on the same device.
    """
    inputs, labels = x.to(device), y.to(device)
    bandwidth = copy_rate(device)
    tables = {}
    for name, work in workloads().items():
        module = copy.deepcopy(work.module).to(device)
        objective, data = Objective.of(module), client_data(inputs, labels, clients)
        executors = {
            "any module, recorded": VmapExecutor(objective, data, CHUNK, recorded=True),
            "stacked layers, recorded": StackedExecutor(objective, data, CHUNK, recorded=True),
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
                    "way": way,
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
