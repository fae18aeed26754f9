"""Timing of calls, and measurements of the machine's speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

Rows = list[dict[str, Any]]
"""A table: values by column for each row."""
AT_SGEMM = "FLOP at the sgemm rate"
"""Row with the time that the work's FLOP would take at the measured matrix product rate."""


def seconds_of(call: Callable[[], Any]) -> float:
    """Wall-clock seconds of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(calls: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each call in interleaved runs, after one warm-up call each."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(seconds_of(call))
    return times


def with_threads(threads: int, call: Callable[[], Any]) -> Any:
    """Run ``call`` with torch set to ``threads`` CPU threads; returns its result."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return call()
    finally:
        torch.set_num_threads(before)


def wait(device: torch.device) -> None:
    """Wait until ``device`` has finished all work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def sgemm_rate(size: int = 2048, repeats: int = 5) -> float:
    """Measured rate of float32 matrix products in FLOP/s, the best of a few runs."""
    a, b = torch.ones(size, size), torch.ones(size, size)
    best = min(seconds_of(lambda: a @ b) for _ in range(repeats + 1))
    return 2 * size**3 / best


def copy_rate(device: torch.device, megabytes: int = 256) -> float:
    """Measured rate of a large copy in bytes per second, counting reads and writes."""
    source = torch.ones(megabytes * 250_000, device=device)
    target = torch.empty_like(source)

    def once() -> None:
        target.copy_(source)
        wait(device)

    once()
    return 8 * source.numel() / min(seconds_of(once) for _ in range(5))
