"""Benchmark of local training on a GPU, relative to a plain loop and the memory bandwidth."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import Rows, copy_rate, interleaved, seconds_of, wait
from benchmarks.workloads import (
    BATCH,
    CLIENTS,
    SAMPLES,
    STEPS,
    client_data,
    job_of,
    load_samples,
    plain_loop,
    trained,
    workloads,
)
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.torch_state import running
from wirelessfl.models import CifarCNN
from wirelessfl.training.module_executors import VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.precision import reduced
from wirelessfl.training.stacked import StackedExecutor

CHUNK = 256
MANY = 1000
"""Clients of W1 besides ``CLIENTS``, in several chunks."""


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


def throughput_table(x: Tensor, y: Tensor, repeats: int, device: torch.device) -> Rows:
    """Clients per second of the stacked executor, recorded, in each precision of ``device``.

    Args:
        x: inputs [samples, 1, 28, 28].
        y: labels [samples].
        repeats: timed runs of each case, interleaved by precision; medians are reported.
        device: the device to measure.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        images = 2 * torch.rand(10 * SAMPLES, 3, 32, 32) - 1
        cnn = CifarCNN((3, 32, 32), 10)
    labels = torch.arange(len(images)) % 10
    work = {name: reference.module for name, reference in workloads().items()}
    cases = [("W1", work["W1"], x, y, clients) for clients in (CLIENTS, MANY)]
    cases += [("W2", work["W2"], x, y, CLIENTS), ("CIFAR CNN", cnn, images, labels, 10)]
    cases += [("CIFAR CNN", cnn, images, labels, CLIENTS)]
    rows: Rows = []
    for name, module, inputs, classes, clients in cases:
        data = client_data(inputs.to(device), classes.to(device), clients)
        objective = Objective.of(copy.deepcopy(module).to(device))
        job = job_of(objective, clients)
        calls: dict[str, Callable[[], Any]] = {}
        for precision in ("float32", *reduced(device)):
            task = replace(objective, precision=precision)
            executor = StackedExecutor(task, data, CHUNK, recorded=True)
            calls[precision] = lambda e=executor, j=job: trained(e, j).sum().item()  # type: ignore[misc]
        with running:
            times = interleaved(calls, repeats)
        for precision, seen in times.items():
            median = statistics.median(seen)
            rows.append(
                {
                    "model": name,
                    "clients": clients,
                    "steps": STEPS,
                    "batch": data.source.batch_size,
                    "precision": precision,
                    "milliseconds": 1e3 * median,
                    "clients_per_second": clients / median,
                }
            )
    return rows


def gpu_bench(repeats: int, data_dir: Path | None) -> dict[str, Rows]:
    """``wirelessfl bench gpu``: clients per second on the first GPU."""
    if not torch.cuda.is_available():
        raise ConfigError(
            "torch finds no GPU on this machine, so there is nothing to measure: run `wirelessfl "
            "bench gpu` on a machine with one."
        )
    x, y, source = load_samples(data_dir)
    table = throughput_table(x, y, repeats, torch.device("cuda"))
    return {f"{torch.cuda.get_device_name()}, {source}": table}


def _timed(call: Callable[[], Any], repeats: int, device: torch.device) -> list[float]:
    def whole() -> None:
        call()
        wait(device)

    whole()
    return [seconds_of(whole) for _ in range(repeats)]
