"""The engine against a plain PyTorch loop written out here; batches against their definition."""

import copy
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from channels.streams import Stream
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.errors import ConfigError, TrainingError
from wirelessfl.models import FCNN, LeNet5
from wirelessfl.submodels import deal_neurons, extract, make_partition
from wirelessfl.training.batches import draw_batches
from wirelessfl.training.evaluate import evaluate
from wirelessfl.training.executor import Job
from wirelessfl.training.loop import LoopExecutor
from wirelessfl.training.task import Task, why_alone
from wirelessfl.training.tuning import candidates, fastest_chunk
from wirelessfl.training.vmapped import VmapExecutor

SAMPLES = 300


def data(shape, classes=4, seed=0):
    random = Stream(seed, ("data",)).generator()
    x = torch.from_numpy(random.standard_normal((SAMPLES, *shape))).float()
    return x, torch.from_numpy(random.integers(0, classes, SAMPLES))


def parts_of(sizes):
    ends = np.cumsum(sizes)
    return [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]


@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 50), st.integers(1, 25))
def test_batches_pass_over_the_data_again_and_again(size, batch_size, first, steps):
    """From any step on: the passes, cut into batches, are permutations of the client's samples."""
    own = np.arange(size) * 3 + 5
    batches = draw_batches([own], np.array([0]), np.array([first]), steps, batch_size, Stream(1))
    per_pass = -(-size // batch_size)
    from_start = draw_batches(
        [own], np.array([0]), np.array([0]), first + steps, batch_size, Stream(1)
    )
    assert torch.equal(batches.index[0], from_start.index[0, first:])
    assert torch.equal(batches.keys[0], from_start.keys[0, first:])
    drawn = [
        row[w > 0].tolist()
        for row, w in zip(*map(list, (from_start.index[0], from_start.weight[0])), strict=True)
    ]
    for turn in range((first + steps) // per_pass):
        whole = [i for b in drawn[turn * per_pass : (turn + 1) * per_pass] for i in b]
        assert sorted(whole) == own.tolist()
    for row in from_start.weight[0]:
        assert float(row.sum()) == pytest.approx(1.0)


def test_batches_do_not_depend_on_who_else_trains():
    parts, stream = parts_of([50, 30, 70]), Stream(3)
    steps = np.array([4, 4, 4])
    together = draw_batches(parts, np.arange(3), steps, 5, 16, stream)
    alone = draw_batches(parts, np.array([2]), steps[2:], 5, 16, stream)
    assert torch.equal(together.index[2], alone.index[0])
    assert torch.equal(together.keys[2], alone.keys[0])
    assert not torch.equal(together.index[1], together.index[2])


def job_for(module, x, parts, *, lr=0.1, steps=7, batch_size=16, submodels=None, node=None):
    task = Task.of(module)
    start = task.spec.from_module(module)
    clients = np.arange(len(parts))
    batches = draw_batches(
        parts, clients, np.zeros(len(parts), dtype=int), steps, batch_size, Stream(2)
    )
    spec = task.spec if submodels is None else submodels.spec
    servers = start[None] if submodels is None else submodels.gather(start)
    node = np.zeros(len(parts), dtype=np.int64) if node is None else node
    job = Job(FedAvg(lr=lr), spec, {"params": servers}, node, clients, steps, batches.of, "round 1")
    return task, job


def updates(executor, job):
    return torch.cat([chunk.payloads["update"] for chunk in executor.train(job)])


def plain_loop(module, x, y, job, lr):
    """Every client: a deep copy, torch.optim.SGD, one batch after the other."""
    changes = []
    batches = job.batches(slice(None))
    for row in range(len(job.clients)):
        model = copy.deepcopy(module).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for index, weight in zip(batches.index[row], batches.weight[row], strict=True):
            rows = index[weight > 0]
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        after = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        before = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
        changes.append(after - before)
    return torch.stack(changes)


MODELS = {
    "fcnn": (lambda: FCNN((9,), 4, hidden=(13,)), (9,)),
    "lenet5": (lambda: LeNet5((1, 28, 28), 4), (1, 28, 28)),
    "groupnorm": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.GELU(), nn.Flatten(), nn.Linear(64, 4)
        ),
        (1, 6, 6),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_executor_equals_the_plain_loop(name):
    """Clients with 20, 5 and 50 samples: padded batches, small batches, several passes."""
    torch.manual_seed(0)
    make, shape = MODELS[name]
    module = make()
    x, y = data(shape)
    task, job = job_for(module, x, parts_of([20, 5, 50, 16, 33]))
    expected = plain_loop(module, x, y, job, lr=0.1)
    assert float(expected.abs().max()) > 1e-3
    for executor in (
        VmapExecutor(task, x, y, chunk=5),
        VmapExecutor(task, x, y, chunk=2),
        VmapExecutor(task, x, y, chunk=1),
        LoopExecutor(task, x, y),
    ):
        assert torch.allclose(updates(executor, job), expected, atol=2e-6), executor.name


def test_executors_agree_under_dropout():
    module = FCNN((9,), 4, hidden=(40,), dropout=0.5)
    x, y = data((9,))
    task, job = job_for(module, x, parts_of([20, 5, 50]))
    vmapped = updates(VmapExecutor(task, x, y, chunk=2), job)
    assert torch.allclose(vmapped, updates(LoopExecutor(task, x, y), job), atol=2e-6)
    without = FCNN((9,), 4, hidden=(40,))
    without.load_state_dict(module.state_dict(), strict=False)
    other, job = job_for(without, x, parts_of([20, 5, 50]))
    assert not torch.allclose(vmapped, updates(VmapExecutor(other, x, y, chunk=2), job), atol=1e-3)


def test_unequal_widths_train_in_one_batch():
    """Three cells of 1, 4 and 8 neurons together equal each alone, and padding stays zero."""
    module = FCNN((9,), 4, hidden=(13,), dropout=0.3)
    x, y = data((9,))
    partition = make_partition(module, Task.of(module).spec)
    cells = deal_neurons(partition, [1, 4, 8], [Stream(0).generator()])
    together = extract(partition, cells)
    node = np.array([0, 0, 1, 2])
    task, job = job_for(module, x, parts_of([20, 30, 5, 50]), submodels=together, node=node)
    sent = updates(VmapExecutor(task, x, y, chunk=3), job)
    assert sent.shape == (4, (9 + 1 + 4) * 8 + 4)
    assert sent.shape[1] < task.spec.size
    for client, cell in enumerate(node):
        padding = together.index[cell] < 0
        assert (sent[client][padding] == 0).all()
        alone = extract(partition, [cells[cell]])
        own = Job(
            job.algorithm,
            alone.spec,
            {"params": alone.gather(task.spec.from_module(module))},
            np.zeros(1, dtype=np.int64),
            np.array([client]),
            job.local_steps,
            lambda part, client=client: job.batches(slice(client, client + 1)),
        )
        found = torch.zeros(task.spec.size + 1)
        found[together.index[cell]] = sent[client]
        expected = torch.zeros(task.spec.size + 1)
        expected[alone.index[0]] = updates(VmapExecutor(task, x, y, chunk=1), own)[0]
        assert torch.allclose(found[:-1], expected[:-1], atol=1e-6)


def test_memory_is_bounded_by_the_chunk(monkeypatch):
    """No tensor of the engine holds more clients than a chunk."""
    module = FCNN((9,), 4, hidden=(13,))
    x, y = data((9,))
    task, job = job_for(module, x, parts_of([10] * 20))
    seen = []
    drawn = []
    job = replace(job, batches=lambda part, draw=job.batches: drawn.append(part) or draw(part))
    executor = VmapExecutor(task, x, y, chunk=6)
    real = executor._gradients

    def spy(params, inputs, *rest):
        seen.append(inputs.shape[0])
        return real(params, inputs, *rest)

    monkeypatch.setattr(executor, "_gradients", spy)
    chunks = list(executor.train(job))
    assert max(seen) == max(part.stop - part.start for part in drawn) == 5
    assert [c.payloads["update"].shape[0] for c in chunks] == [5, 5, 5, 5]
    assert [c.part for c in chunks][-1] == slice(15, 20)


def test_the_loop_says_where_it_failed():
    module = FCNN((9,), 4, hidden=(13,))
    x, y = data((9,))
    x[27] = float("nan")
    task, job = job_for(module, x, parts_of([20, 20]))
    with pytest.raises(
        TrainingError, match=r"client 1, round 1, local step \d: the loss is nan.*27"
    ):
        updates(LoopExecutor(task, x, y), job)


def test_modules_that_draw_by_themselves_repeat_in_the_loop():
    module = nn.Sequential(nn.Linear(9, 30), nn.ReLU(), nn.Dropout(0.5), nn.Linear(30, 4))
    x, y = data((9,))
    task, job = job_for(module, x, parts_of([20, 20]))
    assert "global generator" in why_alone(task, x[:4], y[:4], 4)
    assert why_alone(Task.of(FCNN((9,), 4, dropout=0.5)), x[:4], y[:4], 4) is None
    before = torch.random.get_rng_state()
    first = updates(LoopExecutor(task, x, y, seed=1), job)
    assert torch.equal(first, updates(LoopExecutor(task, x, y, seed=1), job))
    assert not torch.equal(first, updates(LoopExecutor(task, x, y, seed=2), job))
    assert torch.equal(before, torch.random.get_rng_state())


def test_evaluation_does_not_depend_on_its_batches():
    module = FCNN((9,), 4, hidden=(13,), dropout=0.5)
    x, y = data((9,))
    task = Task.of(module)
    flat = task.spec.from_module(module)
    accuracy, loss = evaluate(task, flat, x, y)
    logits = module.eval()(x).detach()
    assert accuracy == float((logits.argmax(1) == y).double().mean())
    assert loss == pytest.approx(float(F.cross_entropy(logits, y)), rel=1e-6)
    small = evaluate(task, flat, x, y, batch=7)
    assert small == pytest.approx((accuracy, loss), rel=1e-6)


MEASURE = """
import resource, sys
from pathlib import Path
import torch
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build

def peak():
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would count the parent that started this process
        line = next(l for l in status.read_text().splitlines() if l.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )

def prepared(hidden):
    x, y = torch.rand(80, 500), torch.arange(80) % 4
    data = Dataset("toy", x, y, x, y, 4)
    config = Config.from_flags(
        sys.argv[1], cells=4, clients=8, local_steps=2, edge_rounds=1, chunk=8
    )
    return build(config, data=data, model=FCNN((500,), 4, hidden=(hidden,)))

warm = prepared(8)  # what is paid once: libraries, threads
warm.world.train(warm.planner.plan(0), warm.world.cloud)
parts = prepared(4000)
before = peak()
parts.world.train(parts.planner.plan(0), parts.world.cloud)
print(peak() - before)
"""


def test_a_submodel_costs_the_memory_of_a_submodel():
    """Peak resident memory that a round adds: a quarter of the model takes far below half."""
    added = {}
    for algorithm in ("hfedavg", "hist"):
        command = [sys.executable, "-c", MEASURE, algorithm]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        added[algorithm] = int(done.stdout)
    eight_clients = 8 * 4 * (505 * 4000 + 4)
    assert added["hfedavg"] > eight_clients
    assert added["hist"] < 0.45 * added["hfedavg"]


def test_chunk_sizes_to_try_are_bounded_by_memory_and_clients():
    assert candidates(1, 1000) == [1]
    assert candidates(7, 1000) == [5, 7]
    assert candidates(60, 1000) == [5, 10, 20, 60]
    assert candidates(100_000, 1000) == [5, 10, 20, 60, 200]
    assert candidates(100_000, 10**6) == [5, 10, 20, 60]  # 268 MB of parameters at most
    assert candidates(100_000, 10**9) == [1]


@pytest.mark.parametrize(
    ("seconds_a_client", "expected"),
    [
        ({5: 4.0, 10: 2.0, 20: 1.0, 60: 2.0}, 20),
        ({5: 1.0, 10: 0.95, 20: 0.95, 60: 0.95}, 5),  # not worth it
        ({5: 1.0, 10: 2.0, 20: 0.1, 60: 0.1}, 5),  # a slower one ends the search
    ],
)
def test_the_fastest_chunk_is_taken(monkeypatch, seconds_a_client, expected):
    """With a clock that each chunk size moves by its known cost."""
    clock = [0.0]
    monkeypatch.setattr("wirelessfl.training.tuning.time.perf_counter", lambda: clock[0])

    class Known:
        def __init__(self, chunk):
            self.chunk = chunk

        def train(self, clients):
            clock[0] += seconds_a_client[self.chunk] * clients
            return iter(())

    assert fastest_chunk(Known, lambda clients: clients, sorted(seconds_a_client)) == expected


class Counts(nn.Linear):
    """Changes a buffer in every forward pass."""

    def __init__(self):
        super().__init__(9, 4)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class Branches(nn.Linear):
    """Looks at the data to decide what to do, which vmap cannot follow."""

    def __init__(self):
        super().__init__(9, 4)

    def forward(self, x):
        return super().forward(x) if x.sum() > 0 else 2 * super().forward(x)


def batchnorm():
    return nn.Sequential(
        nn.Linear(9, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 4)
    )


def test_what_cannot_train_together_trains_alone_and_says_why():
    """A batch norm sees padding as samples; branches on data cannot be vmapped."""
    x, y = data((9,))
    for module, reason in (
        (batchnorm(), "mixes the samples"),
        (Branches(), "under vmap"),
        (nn.Sequential(nn.Linear(9, 4), nn.Dropout(0.5)), "global generator"),
    ):
        assert reason in why_alone(Task.of(module), x[:4], y[:4], 4)
    module = batchnorm()
    task, job = job_for(module, x, parts_of([20, 5, 50]))
    expected = plain_loop(module, x, y, job, lr=0.1)
    assert torch.allclose(updates(LoopExecutor(task, x, y), job), expected, atol=2e-6)


def test_modules_that_do_not_fit_are_explained():
    x, y = data((9,))
    for module, message in (
        (nn.Linear(8, 4), "does not run on samples of shape"),
        (nn.Linear(9, 5), r"gives \(4, 5\) for 4 samples"),
        (nn.Unflatten(1, (3, 3)), "trainable"),
        (Counts(), "changes its buffer 'calls'"),
    ):
        with pytest.raises(ConfigError, match=message):
            why_alone(Task.of(module), x[:4], y[:4], 4)


def test_payloads_must_be_declared():
    @dataclass(frozen=True)
    class Talkative(FedAvg):
        def send(self, params, state, cohort):
            return super().send(params, state, cohort) | {"gossip": params}

    x, y = data((9,))
    task, job = job_for(FCNN((9,), 4, hidden=(13,)), x, parts_of([20, 5]))
    with pytest.raises(ConfigError, match="gossip"):
        updates(VmapExecutor(task, x, y, chunk=2), replace(job, algorithm=Talkative()))
