"""The reference workloads W1 and W2, and the plain PyTorch loop as a baseline.

60 clients with 1000 samples each take H = 20 SGD steps of batch size 50 from the same weights, and
their models are averaged; evaluation is not timed. W1 is the FCNN 784-300-10, W2 is LeNet-5
(28x28).
"""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import DataError
from wirelessfl.data import load_dataset
from wirelessfl.data.files import find_place
from wirelessfl.models import FCNN, LeNet5
from wirelessfl.models.submodels import Dealing, deal_masks, extract, make_partition
from wirelessfl.models.submodels.partition import even_sizes
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.executor import Executor, Job, TrainingData
from wirelessfl.training.objective import Objective
from wirelessfl.training.workers.processes import freed_memory_kept

CLIENTS, SAMPLES, STEPS, BATCH, LR = 60, 1000, 20, 50, 0.01


@dataclass(frozen=True)
class Reference:
    """A reference workload.

    Args:
        name: W1 or W2.
        module: the model that every client trains.
        flop: FLOP per round of 60 clients, three times the forward pass.
    """

    name: str
    module: nn.Module
    flop: float


def workloads() -> dict[str, Reference]:
    """The workloads W1 and W2 by name, with fixed initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return {
            "W1": Reference("W1", FCNN((1, 28, 28), 10), 85.75e9),
            "W2": Reference("W2", LeNet5((1, 28, 28), 10), 101.4e9),
        }


def load_samples(data_dir: Path | None) -> tuple[Tensor, Tensor, str]:
    """Fashion-MNIST if available, else random data of its shape; returns inputs, labels, name."""
    try:
        place = find_place("fashion-mnist", data_dir)
        if place.folder.is_dir():
            data = load_dataset("fashion-mnist", data_dir)
            return data.train_inputs, data.train_labels, "Fashion-MNIST"
    except DataError as error:
        if data_dir is not None:
            raise
        print(f"using random data instead of Fashion-MNIST: {error}", file=sys.stderr)
    return *random_samples(CLIENTS * SAMPLES), "random data"


def random_samples(count: int) -> tuple[Tensor, Tensor]:
    """Random inputs [count, 1, 28, 28] and labels [count] of ten classes."""
    random = Stream(0, ("bench",)).generator()
    x = random.uniform(-1, 1, (count, 1, 28, 28)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(random.integers(0, 10, count))


def client_data(x: Tensor, y: Tensor, clients: int = CLIENTS) -> TrainingData:
    """Assign the same number of random samples to each client, at most 1000."""
    order = Stream(0, ("parts",)).generator().permutation(len(y))
    samples = samples_each(len(y), clients)
    client_samples = [order[i * samples : (i + 1) * samples] for i in range(clients)]
    return TrainingData(x, y, BatchSource(client_samples, min(BATCH, samples), Stream(0)))


def samples_each(samples: int, clients: int) -> int:
    """Number of samples per client, for a total of ``samples``."""
    return min(SAMPLES, samples // clients)


def plain_loop(
    module: nn.Module,
    data: TrainingData,
    *,
    steps: int = STEPS,
    batch: int = BATCH,
    lr: float = LR,
) -> Tensor:
    """Train like typical research code: deepcopy, DataLoader and SGD per client, then the mean.

    It runs on the device of the module and the data.
    """
    total: Tensor | None = None
    for client_rows in data.source.client_samples:
        model = copy.deepcopy(module).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        rows = torch.from_numpy(client_rows).to(data.inputs.device)
        samples = TensorDataset(data.inputs[rows], data.labels[rows])
        loader, step = DataLoader(samples, batch_size=batch, shuffle=True), 0
        while step < steps:
            for inputs, labels in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs), labels).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                step += 1
                if step == steps:
                    break
        flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        total = flat if total is None else total + flat
    assert total is not None
    return total / len(data.source.client_samples)


def job_of(objective: Objective, clients: int, steps: int = STEPS) -> Job:
    """The local training of a round in which every client has the full model."""
    zero, who = np.zeros(clients, dtype=np.int64), np.arange(clients)
    start = objective.spec.from_module(objective.module)[None]
    return Job(FedAvg(lr=LR), objective.spec, {"params": start}, zero, who, zero, steps)


def submodel_job(objective: Objective, clients: int, cells: int) -> Job:
    """The local training of an edge round in ``cells`` cells, each with its HIST submodel."""
    partition = make_partition(objective.module, objective.spec)
    sizes = even_sizes(partition.width, cells)
    counts = np.repeat(np.array(sizes)[:, None], len(partition.layers), axis=1)
    dealing = Dealing(0, np.arange(cells), Stream(0), Stream(0))
    submodels = extract(partition, deal_masks("partition", partition.layers, counts, dealing))
    zero, who = np.zeros(clients, dtype=np.int64), np.arange(clients)
    servers = {"params": submodels.gather(objective.spec.from_module(objective.module))}
    node: IntArray = who * cells // clients
    return Job(FedAvg(lr=LR), submodels.spec, servers, node, who, zero, STEPS)


def trained(executor: Executor, job: Job) -> Tensor:
    """Train a job; returns the sum of the clients' updates at each node, [nodes, P]."""
    sums = torch.zeros_like(job.servers["params"])
    with freed_memory_kept:  # as in a run
        for chunk in executor.train(job):
            nodes = job.node[chunk.part].tolist()
            for node, update in zip(nodes, chunk.payloads["update"], strict=True):
                sums[node].add_(update)
    return sums
