"""Jobs on random data for tests of executors, and a plain training loop as reference."""

import copy

import numpy as np
import torch
from torch.nn import functional as F

from channels.streams import Stream
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.executor import Job, TrainingData
from wirelessfl.training.objective import Objective

SAMPLES = 300


def samples(shape, classes=4, seed=0):
    random = Stream(seed, ("data",)).generator()
    x = torch.from_numpy(random.standard_normal((SAMPLES, *shape))).float()
    return x, torch.from_numpy(random.integers(0, classes, SAMPLES))


def samples_of(sizes):
    ends = np.cumsum(sizes)
    return [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def job_for(module, data, *, lr=0.1, steps=7, submodels=None, node=None):
    objective = Objective.of(module)
    start = objective.spec.from_module(module)
    clients = np.arange(len(data.source.client_samples))
    spec = objective.spec if submodels is None else submodels.spec
    servers = start[None] if submodels is None else submodels.gather(start)
    none = np.zeros(len(clients), dtype=np.int64)
    node = none if node is None else node
    job = Job(FedAvg(lr=lr), spec, {"params": servers}, node, clients, none, steps, "round 1")
    return objective, job


def training_data(shape, sizes, *, batch_size=16, classes=4):
    x, y = samples(shape, classes)
    return TrainingData(x, y, BatchSource(samples_of(sizes), batch_size, Stream(2)))


def updates(executor, job):
    return torch.cat([chunk.payloads["update"].clone() for chunk in executor.train(job)])


def plain_loop(module, data, job, lr, **options):
    """Train a copy of the module for each client with torch.optim.SGD, batch by batch."""
    changes = []
    batches = job.batches(data.source)
    x, y = data.inputs, data.labels
    for row in range(len(job.clients)):
        model = copy.deepcopy(module).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, **options)
        for index, weight in zip(batches.index[row], batches.weight[row], strict=True):
            rows = index[weight > 0]
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        after = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        before = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
        changes.append(after - before)
    return torch.stack(changes)
