"""The engine against a plain PyTorch loop on the reference works W1 and W2.

60 clients with 1000 samples each take H = 20 SGD steps of batch 50 from the same weights, and are
averaged; evaluation is not timed. W1 is the FCNN 784-300-10, W2 is LeNet-5 (28x28).
"""

from __future__ import annotations

import copy
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from channels.streams import Stream
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.data import load_dataset
from wirelessfl.data.files import find_place
from wirelessfl.errors import DataError
from wirelessfl.models import FCNN, LeNet5
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.executor import Executor, Job, TrainingData
from wirelessfl.training.loop import LoopExecutor
from wirelessfl.training.task import Task
from wirelessfl.training.vmapped import VmapExecutor

CLIENTS, SAMPLES, STEPS, BATCH, LR = 60, 1000, 20, 50, 0.01


@dataclass(frozen=True)
class Work:
    """A reference work.

    Args:
        name: W1 or W2.
        module: what every client trains.
        flop: of a round, three times the forward pass.
    """

    name: str
    module: nn.Module
    flop: float


def works() -> list[Work]:
    """W1 and W2, with fixed initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return [
            Work("W1", FCNN((1, 28, 28), 10), 85.75e9),
            Work("W2", LeNet5((1, 28, 28), 10), 101.4e9),
        ]


def training_data(data_dir: Path | None) -> tuple[Tensor, Tensor, str]:
    """Fashion-MNIST where it is at hand, else random data of its shape."""
    try:
        place = find_place("fashion-mnist", data_dir)
        if place.folder.is_dir():
            data = load_dataset("fashion-mnist", data_dir)
            return data.train_inputs, data.train_labels, "Fashion-MNIST"
    except DataError as error:
        if data_dir is not None:
            raise
        print(f"random data instead of Fashion-MNIST: {error}", file=sys.stderr)
    random = Stream(0, ("bench",)).generator()
    x = random.uniform(-1, 1, (CLIENTS * SAMPLES, 1, 28, 28)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(random.integers(0, 10, len(x))), "random data"


def plain_loop(module: nn.Module, x: Tensor, y: Tensor, parts: list[Any]) -> Tensor:
    """Research code: deepcopy, DataLoader, torch.optim.SGD, client by client, then the mean."""
    total: Tensor | None = None
    for part in parts:
        model = copy.deepcopy(module).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=LR)
        loader = DataLoader(TensorDataset(x[part], y[part]), batch_size=BATCH, shuffle=True)
        for inputs, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        total = flat if total is None else total + flat
    assert total is not None
    return total / len(parts)


def engine_round(executor: Executor, task: Task, start: Tensor, parts: list[Any]) -> Tensor:
    """The same round through an executor."""
    clients, zero = np.arange(len(parts)), np.zeros(len(parts), dtype=np.int64)
    job = Job(FedAvg(lr=LR), task.spec, {"params": start[None]}, zero, clients, zero, STEPS)
    total = torch.zeros_like(start)
    for chunk in executor.train(job):
        total += chunk.payloads["update"].sum(0)
    return start + total / len(parts)


def sgemm_rate(size: int = 2048, repeats: int = 5) -> float:
    """Measured float32 matrix products, in FLOP/s, the best of a few."""
    a, b = torch.ones(size, size), torch.ones(size, size)
    best = min(_seconds(lambda: a @ b) for _ in range(repeats + 1))
    return 2 * size**3 / best


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _one_thread(call: Callable[[], Any]) -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return call()
    finally:
        torch.set_num_threads(threads)


def engine_bench(
    repeats: int = 5, data_dir: Path | None = None, clients: int = CLIENTS
) -> list[dict[str, Any]]:
    """Interleaved medians on W1 and W2.

    Returns:
        Rows with work, way, seconds a round, ratio to the plain loop on one thread in the same run,
        and percent of the floor (the work's FLOP at the sgemm rate measured here).
    """
    x, y, source = training_data(data_dir)
    order = Stream(0, ("parts",)).generator().permutation(len(y))
    parts = [order[i * SAMPLES : (i + 1) * SAMPLES] for i in range(clients)]
    rate = sgemm_rate()
    rows = []
    for work in works():
        task = Task.of(work.module)
        start = task.spec.from_module(work.module)
        data = TrainingData(x, y, BatchSource(parts, BATCH, Stream(0)))
        loop, vmapped = LoopExecutor(task, data), VmapExecutor(task, data, chunk=10)
        module = work.module

        def by(executor: Executor, task: Task = task, start: Tensor = start) -> Tensor:
            return engine_round(executor, task, start, parts)

        ways: dict[str, Callable[[], Any]] = {
            "plain loop, one thread": lambda m=module: _one_thread(  # type: ignore[misc]
                lambda: plain_loop(m, x, y, parts)
            ),
            "loop executor": lambda e=loop, b=by: b(e),  # type: ignore[misc]
            "vmap, chunks of 10": lambda e=vmapped, b=by: b(e),  # type: ignore[misc]
        }
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(repeats):
            for way, call in ways.items():
                times[way].append(_seconds(call))
        medians = {way: statistics.median(seen) for way, seen in times.items()}
        floor = work.flop * clients / CLIENTS / rate
        plain = medians["plain loop, one thread"]
        rows += [
            {
                "work": f"{work.name} ({source})",
                "way": way,
                "seconds": seconds,
                "ratio": plain / seconds,
                "percent_of_floor": 100 * floor / seconds,
            }
            for way, seconds in medians.items()
        ]
        rows.append(
            {
                "work": f"{work.name} ({source})",
                "way": f"floor at {rate / 1e9:.0f} GFLOP/s, {torch.get_num_threads()} threads",
                "seconds": floor,
                "ratio": plain / floor,
                "percent_of_floor": 100.0,
            }
        )
    return rows
