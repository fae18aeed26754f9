"""Benchmark of ResNet-18 on random data of CIFAR's shape: an executor and a plain loop."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.timing import Rows, interleaved, wait
from benchmarks.workloads import BATCH, LR, client_data, job_of, trained
from wirelessfl.base.torch_state import torch_settings
from wirelessfl.models import ResNet18
from wirelessfl.training.module_executors import VmapExecutor
from wirelessfl.training.objective import Objective

PLAIN, AS_SET = "plain loop", "plain loop, torch's default settings"
Batches = list[list[tuple[Tensor, Tensor]]]


def resnet18_table(
    device: torch.device,
    repeats: int = 5,
    *,
    clients: int = 10,
    steps: int = 60,
    samples: int = 500,
    width: int = 64,
) -> dict[str, Rows]:
    """Time the local training of a round on ``device``; returns one table by its title.

    The plain loop trains the model with torch.optim.SGD, one client after the other, with its
    batches already on the device. The executor draws and gathers its batches, and records the steps
    once and replays them, for one client at a time or for all that fit into memory. Both use full
    float32 and deterministic algorithms, like a run. A second plain loop uses torch's default
    settings, with TF32 convolutions.

    Args:
        device: the device to measure.
        repeats: timed runs of each method; medians are reported.
        clients: clients per round, S in the FAdamGC paper's experiments.
        steps: local steps, K in that paper.
        samples: samples per client; batches have 50 samples, or all if there are fewer.
        width: channels of the model's first stage; 64 is ResNet-18.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = ResNet18((3, 32, 32), 10, width=width).to(device)
        x = (2 * torch.rand(clients * samples, 3, 32, 32) - 1).to(device)
        y = torch.randint(0, 10, (len(x),)).to(device)
    objective, data = Objective.of(module), client_data(x, y, clients)
    job = job_of(objective, clients, steps)
    drawn = job.batches(data.source).to(device)
    batches: Batches = [[(x[rows], y[rows]) for rows in client] for client in drawn.index]
    fitting = _chunk(lambda: plain_round(module, [batches[0][:2]]), device, clients)
    executors = {
        f"vmap, recorded, chunks of {chunk}": VmapExecutor(objective, data, chunk, recorded=True)
        for chunk in sorted({1, fitting})
    }

    def as_a_run(call: Callable[[], Tensor]) -> Callable[[], None]:
        def whole() -> None:
            with torch_settings(torch.get_num_threads()):
                call()
                wait(device)

        return whole

    def as_torch_is_set() -> None:
        plain_round(module, batches)
        wait(device)

    calls = {
        PLAIN: as_a_run(lambda: plain_round(module, batches)),
        AS_SET: as_torch_is_set,
    }
    for way, executor in executors.items():
        calls[way] = as_a_run(lambda e=executor: trained(e, job))  # type: ignore[misc]
    try:
        times = interleaved(calls, repeats)
    finally:
        for executor in executors.values():
            executor.close()
    median = {way: statistics.median(seen) for way, seen in times.items()}
    title = (
        f"ResNet-18 on {device}, random data of CIFAR's shape: {clients} clients, {steps} steps of "
        f"batch {min(BATCH, samples)}"
    )
    rows = [
        {
            "method": way,
            "seconds": seconds,
            "rounds_per_minute": 60 / seconds,
            "ratio": median[PLAIN] / seconds,
        }
        for way, seconds in median.items()
    ]
    return {title: rows}


def plain_round(module: nn.Module, batches: Batches) -> Tensor:
    """Train each client on its batches with torch.optim.SGD; returns the sum of the updates [P]."""
    total: Tensor | None = None
    before = _flat(module)
    for client_batches in batches:
        model = copy.deepcopy(module).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=LR)
        for inputs, labels in client_batches:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        change = _flat(model) - before
        total = change if total is None else total.add_(change)
    assert total is not None
    return total


def _flat(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def _chunk(step: Callable[[], Any], device: torch.device, clients: int) -> int:
    """Number of clients that fit into half of the free memory, given a plain step's peak."""
    if device.type != "cuda":
        return clients
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    step()
    peak = torch.cuda.max_memory_allocated(device) - before
    free, _ = torch.cuda.mem_get_info(device)
    return max(min(clients, free // (2 * peak)), 1)
