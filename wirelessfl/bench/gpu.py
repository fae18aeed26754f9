"""The engine on a GPU: against the plain loop there, and against its memory's bandwidth."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wirelessfl.bench.works import BATCH, STEPS, dealt, job_of, plain_loop, trained, works
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.vmapped import VmapExecutor

CHUNK = 256


def gpu_tables(
    x: Tensor, y: Tensor, clients: int, repeats: int, device: torch.device
) -> dict[str, list[dict[str, Any]]]:
    """W1 and W2 on ``device``, the H steps recorded once and replayed.

    Bytes that a round must move at the least: each step reads a client's parameters twice and
    writes them once, and reads its batch; ``percent_of_bandwidth`` is that over the measured time,
    against a large copy on the same device.
    """
    inputs, labels = x.to(device), y.to(device)
    bandwidth = copy_rate(device)
    tables = {}
    for name, work in works().items():
        module = copy.deepcopy(work.module).to(device)
        objective, data = Objective.of(module), dealt(inputs, labels, clients)
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
    from wirelessfl.bench.engine import seconds_of

    def whole() -> None:
        call()
        wait(device)

    whole()
    return [seconds_of(whole) for _ in range(repeats)]


def wait(device: torch.device) -> None:
    """Until all that was asked of ``device`` is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def copy_rate(device: torch.device, megabytes: int = 256) -> float:
    """Bytes a second that a large copy reads and writes."""
    from wirelessfl.bench.engine import seconds_of

    source = torch.ones(megabytes * 250_000, device=device)
    target = torch.empty_like(source)

    def once() -> None:
        target.copy_(source)
        wait(device)

    once()
    return 8 * source.numel() / min(seconds_of(once) for _ in range(5))
