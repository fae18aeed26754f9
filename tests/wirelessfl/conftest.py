"""Small problems that train in a fraction of a second, and a plain training loop."""

import copy
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

from channels import Network
from channels.streams import Stream
from tests.executors import EXECUTORS
from tests.launching import wait_until
from wirelessfl.algorithms import find_algorithm
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.executor import Job, TrainingData
from wirelessfl.training.objective import Objective

SAMPLES = 300
NETWORK = ("clients", "cells")


def make_dataset(samples=240, features=12, classes=4, seed=0):
    """Gaussian classes with random centres, which an FCNN learns in a few rounds."""
    random = Stream(seed, ("toy",)).generator()
    centres = random.standard_normal((classes, features))
    labels = np.tile(np.arange(classes), samples // classes + 60)
    points = centres[labels] + 0.7 * random.standard_normal((len(labels), features))
    x, y = torch.from_numpy(points).float().clamp(-3, 3) / 3, torch.from_numpy(labels)
    return Dataset("toy", x[:samples], y[:samples], x[samples:], y[samples:], classes)


@pytest.fixture(scope="session")
def toy():
    return make_dataset()


@pytest.fixture
def config(tmp_path):
    """Factory of configurations for the toy data, each with a new output folder.

    ``network=True``, or the path of a network, omits cells and clients, which it determines.
    """
    made = []

    def make(algorithm="hist", *, network=False, **flags):
        made.append(algorithm)
        small = {
            "clients": 6,
            "local_steps": 3,
            "rounds": 3,
            "batch_size": 8,
            "lr": 0.1,
            "threads": 1,
            "chunk": 4,  # a chunk chosen by timing could prevent bit-identical runs
            "out": tmp_path / f"run{len(made)}",
        }
        if find_algorithm(algorithm).topology != "star":
            small["cells"] = 3
        if network:
            small = {key: value for key, value in small.items() if key not in NETWORK}
            small |= {"network": network} if isinstance(network, str) else {}
        return Config.from_flags(algorithm, **(small | flags))

    return make


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


def full_batch_round(training, spec, module, data, params, clients, lr):
    """One FedAvg round with a full-batch step per client, in plain PyTorch."""
    changes = []
    for client in clients:
        rows = training.client_samples[client]
        leaf = params.clone().requires_grad_()
        logits = functional_call(module, spec.views(leaf), (data.train_inputs[rows],))
        loss = F.cross_entropy(logits, data.train_labels[rows])
        changes.append(-lr * torch.autograd.grad(loss, leaf)[0])
    return params + torch.stack(changes).mean(0)


def wait_for_rows(folder, rows, process):
    """Wait until a run has written ``rows`` rows; fail if ``process`` ends earlier."""
    file = folder / "rows.jsonl"

    def written():
        assert process.poll() is None, "the run ended before it could be killed"
        return file.exists() and file.read_bytes().count(b"\n") >= rows

    wait_until(written, 120)


def holder(file):
    """Id of the process that has ``file`` open, such as the configuration that a run locks."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(file) in {os.readlink(fd) for fd in (entry / "fd").iterdir()}:
                return int(entry.name)
        except OSError:  # belongs to another user, or has ended
            continue
    raise AssertionError(f"no process has {file} open")


@pytest.fixture(scope="session")
def engine():
    """Helpers for tests of executors: jobs on random data, and a plain loop as reference."""
    return SimpleNamespace(
        samples=samples,
        samples_of=samples_of,
        job_for=job_for,
        training_data=training_data,
        updates=updates,
        plain_loop=plain_loop,
        paths=EXECUTORS,
        full_batch_round=full_batch_round,
        wait_until=wait_until,
        wait_for_rows=wait_for_rows,
        holder=holder,
    )


@pytest.fixture(params=EXECUTORS)
def path(request):
    """Name of an executor variant; a test that uses it runs with each variant."""
    return request.param


@pytest.fixture
def trace(tmp_path):
    """Factory of trace files from stays (client, join, leave)."""

    def make(*stays):
        lines = [",".join(map(str, stay)) for stay in stays]
        file = tmp_path / "stays.csv"
        file.write_text("\n".join(["client,join,leave", *lines]) + "\n")
        return file

    return make


def without_wall(rows):
    return [{k: v for k, v in row.items() if k != "wall_seconds"} for row in rows]


@pytest.fixture(scope="session")
def bare():
    """Function that removes wall-clock times, which differ between equal runs, from rows."""
    return without_wall


@pytest.fixture(scope="session")
def same():
    """Function that asserts bit-identical rows and parameters, except for wall-clock times."""

    def check(first, second):
        assert without_wall(first.rows) == without_wall(second.rows)
        assert first.params.keys() == second.params.keys()
        for name, value in first.params.items():
            assert torch.equal(value, second.params[name]), name

    return check


@pytest.fixture(scope="session")
def network_of():
    """Factory of networks from the cell of each client."""

    def make(cell_of, speed=1e9):
        return Network.from_snr(cell_of, cpu_hz=speed, snr_db=20)

    return make


@pytest.fixture
def halt_at():
    """Factory of row callbacks that interrupt a run at a given row, counted from 0."""

    def make(last):
        rows = iter(range(last))

        def on_row(row):
            if next(rows, None) is None:
                raise KeyboardInterrupt

        return on_row

    return make


class Copies(list):
    """A list of copies of a run's folder, one per row, as a kill after that row would leave it."""

    def __init__(self, parent):
        super().__init__()
        self.parent = parent

    def of(self, folder):
        """Return a row callback that copies ``folder``."""

        def on_row(row):
            self.append(shutil.copytree(folder, self.parent / f"copy{len(self)}"))

        return on_row


@pytest.fixture
def copies(tmp_path):
    """An empty list of copies of a run's folder."""
    return Copies(tmp_path)
