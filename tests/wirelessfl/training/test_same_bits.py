"""Equal settings give bit-identical results for any timing, load and number of workers."""

import subprocess
import sys
from contextlib import contextmanager

import pytest
import torch
from torch import nn

import wirelessfl
from tests.gate.given import small_images
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.models import FCNN, LeNet5
from wirelessfl.models.built_in.text import LSTM
from wirelessfl.runs.build import build, computing, executors
from wirelessfl.training import step_costs
from wirelessfl.training.module_executors import LoopExecutor, VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.step_costs import default_chunk, estimated_step_seconds

SMALL = {"dataset": "digits", "local_steps": 2, "batch_size": 16, "hidden": (16,)}
REGIMES = {
    "hist": {"clients": 8, "cells": 2, "edge_rounds": 2, "rounds": 2},
    "fedast": {"clients": 8, "requests": 6, "buffer": 2, "rounds": 6, "eval_every": 3},
    "fedavg": {
        "clients": 8,
        "rounds": 2,
        "sessions": 2,
        "presence": "labels",
        "split": "iid",
        "warm_start": "proposed",
        "trial_rounds": 1,
    },
}


@contextmanager
def loaded():
    """Run three processes that keep the cores busy during the test."""
    endless = [sys.executable, "-ISEc", "while True: pass"]  # quick to start
    busy = [subprocess.Popen(endless) for _ in range(3)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "how"),
    [
        ("hist", "stacked"),
        ("fedast", "loop"),
        ("fedavg", "vmap, replayed"),
    ],
)
def test_a_run_under_load_is_bit_identical(tmp_path, same, algorithm, how):
    executor, _, replayed = how.partition(", ")
    flags = SMALL | REGIMES[algorithm] | {"executor": executor}
    if replayed:
        flags["replay"] = "on"

    def fresh(name):
        return wirelessfl.run(Config.from_flags(algorithm, **flags, out=tmp_path / name))

    idle = fresh("idle")
    with loaded():
        same(fresh("busy"), idle)
    assert idle.config.run.executor == executor
    assert idle.config.run.threads == 1


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("executor", ["stacked", "vmap", "loop"])
@pytest.mark.parametrize("algorithm", ["hist", "ram-fed"])
def test_runs_with_one_and_two_workers_are_bit_identical(tmp_path, same, algorithm, executor):
    """Results do not depend on the number of workers, since chunks and padding do not."""
    flags = SMALL | {"clients": 6, "rounds": 2, "executor": executor}
    if algorithm == "ram-fed":
        flags |= {"budget": "width", "capacities": (0.3, 0.5, 0.6, 0.7, 0.9, 1.0)}
    alone, two = (
        wirelessfl.run(
            Config.from_flags(algorithm, **flags, workers=workers, out=tmp_path / str(workers))
        )
        for workers in (1, 2)
    )
    same(two, alone)
    assert two.config.run.workers == 2


def test_the_default_chunk_does_not_depend_on_workers_cores_or_time(config, toy, monkeypatch):
    def timed():
        raise AssertionError("nothing is timed unless requested")

    monkeypatch.setattr(step_costs.time, "perf_counter", timed)
    flags = {"clients": 12, "chunk": None, "threads": None}
    found = []
    for workers, count in ((1, 1), (2, 4), (4, 4), ("auto", 64)):
        for module in (computing, executors):
            monkeypatch.setattr(module, "cores", lambda count=count: count)
        setup = build(config("fedavg", workers=workers, **flags), data=toy)
        found.append((setup.config.run.chunk, setup.config.run.threads))
        setup.learner.local.executor.close()
    assert len(set(found)) == 1, found
    with pytest.raises(AssertionError, match="nothing is timed"):
        build(config("fedavg", **flags | {"chunk": "tune"}), data=toy)


def test_a_timed_chunk_is_stored_as_a_number(config, toy):
    result = wirelessfl.run(config("fedavg", rounds=1, chunk="tune"), data=toy)
    assert 1 <= result.config.run.chunk <= 6
    assert f"chunk = {result.config.run.chunk}" in (result.directory / "config.toml").read_text()


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.RNNCell(3, 5)
        self.last = nn.Linear(5, 4)

    def forward(self, x):
        h = x.new_zeros(len(x), 5)
        for part in x.unbind(1):
            h = self.first(part, h)
        return self.last(h)


@pytest.mark.parametrize(
    ("module", "shape", "multiplications"),
    [
        (FCNN((9,), 4, hidden=(13,)), (9,), 9 * 13 + 13 * 4),
        (nn.Sequential(nn.Conv2d(3, 5, 3), nn.Flatten(), nn.Linear(80, 4)), (3, 6, 6),
         16 * 5 * 3 * 9 + 80 * 4),
        (nn.Sequential(nn.Conv2d(4, 6, 1, groups=2), nn.Flatten(), nn.Linear(24, 4)), (4, 2, 2),
         4 * 6 * 2 + 24 * 4),
        (Recurrent(), (7, 3), 7 * (3 * 5 + 5 * 5) + 5 * 4),
        (nn.Sequential(nn.Embedding(10, 6), nn.Flatten(), nn.Linear(12, 4)), (2,), 12 * 4),
    ],
)  # fmt: skip
def test_step_seconds_are_estimated_from_the_multiplications(module, shape, multiplications):
    tokens = isinstance(module, nn.Sequential) and isinstance(module[0], nn.Embedding)
    x = torch.zeros(2, *shape, dtype=torch.long if tokens else torch.float32)
    seconds = estimated_step_seconds(Objective.of(module), x, batch_size=50)
    flop = 6 * multiplications * 50  # two FLOPs for one product forward and two backward
    assert seconds == pytest.approx(1e-4 + flop / 6e10)


def test_default_chunks():
    """Default chunks depend on executor, model, clients, memory and the duration of a step."""
    small, image = Objective.of(FCNN((64,), 10)), Objective.of(LeNet5((1, 28, 28), 10))
    large = Objective.of(FCNN((784,), 10))
    assert default_chunk(StackedExecutor, small, 60, 50, 2e-4) == 20
    assert default_chunk(StackedExecutor, small, 7, 50, 2e-4) == 7
    assert default_chunk(StackedExecutor, large, 60, 50, 1.3e-3) == 8  # 8 MB of parameters
    assert default_chunk(StackedExecutor, image, 60, 50, 2e-3) == 15  # at least four chunks
    assert default_chunk(StackedExecutor, image, 3, 50, 2e-3) == 1
    assert default_chunk(VmapExecutor, image, 60, 50, 2e-3) == 1  # convolutions
    assert default_chunk(VmapExecutor, small, 60, 50, 2e-4) == 20
    assert default_chunk(LoopExecutor, small, 60, 50, 2e-4) == 1
    huge = Objective.of(nn.Linear(2000, 2000))
    assert default_chunk(StackedExecutor, huge, 60, 50, 0.1) == 1
    huge.module.bytes_per_sample = 1 << 28
    assert default_chunk(VmapExecutor, huge, 60, 50, 0.1) == 1


def test_an_lstm_counts_every_position():
    objective = Objective.of(LSTM((30,), 20, hidden=(16, 16)))
    seconds = estimated_step_seconds(objective, torch.zeros(2, 30, dtype=torch.long), 10)
    recurrent = (
        sum(p.numel() for n, p in objective.module.named_parameters() if p.ndim > 1) - 20 * 8
    )
    recurrent -= 16 * 20
    assert seconds >= 1e-4 + 6 * 10 * 30 * recurrent / 6e10


def test_more_workers_than_clients_or_cores_are_refused(config, toy, monkeypatch):
    for module in (computing, executors):
        monkeypatch.setattr(module, "cores", lambda: 8)
    with pytest.raises(ConfigError, match=r"workers=7 exceeds the 6 clients .*Choose 1 to 6\."):
        build(config("fedavg", workers=7), data=toy)
    with pytest.raises(ConfigError, match=r"workers=3 exceeds the 2 clients .*Choose 1 to 2\."):
        build(config("fedavg", workers=3, clients_per_round=2), data=toy)
    for module in (computing, executors):
        monkeypatch.setattr(module, "cores", lambda: 2)
    with pytest.raises(ConfigError, match=r"workers=3 exceeds .* cores, 2\. Choose 1 to 2\."):
        build(config("fedavg", workers=3), data=toy)
    with pytest.raises(ConfigError, match=r"workers=99 exceeds .* cores, 2\. Choose 1 to 2\."):
        build(config("fedavg", workers=99), data=toy)  # the clients would allow 6
    with pytest.raises(ConfigError, match=r"workers=2 conflicts with threads=2 on 2 cores"):
        build(config("fedavg", workers=2, threads=2), data=toy)


def test_a_run_is_resumed_on_a_machine_with_fewer_cores(config, toy, same, monkeypatch, halt_at):
    settings = config("fedavg", workers=2, checkpoint_seconds=0)
    whole = wirelessfl.run(config("fedavg", workers=1), data=toy)

    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt_at(0))
    for module in (computing, executors):
        monkeypatch.setattr(module, "cores", lambda: 1)
    same(wirelessfl.resume(settings.run.out, data=toy), whole)


def test_without_numba_plain_layers_train_long_runs(config, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(executors, "LONG_SECONDS", 0.0)
    flags = {"model": "lenet5", "clients": 3, "local_steps": 1, "rounds": 1}
    data = small_images()
    setup = build(config("fedavg", **flags, workers=1), data=data)
    assert setup.config.run.executor == "stacked"
    with pytest.raises(ConfigError, match=r'"fused" .*numba is not .*\[fast\]\'. Choose "stacked"'):
        build(config("fedavg", **flags, executor="fused"), data=data)
