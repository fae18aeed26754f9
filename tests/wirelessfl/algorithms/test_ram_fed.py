"""RAM-Fed's memory: its mean, its storage, and departing clients."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import wirelessfl
from tests.wirelessfl.small import flat, model
from wirelessfl.runs.build import build
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.training.executor import Chunk

FLAGS = {"capacities": (0.7, 0.4, 0.2), "clients_per_round": 3}


class Dice:
    """Executor stub that returns random updates."""

    chunk = 5

    def __init__(self):
        self.dice = torch.Generator().manual_seed(5)

    def train(self, job):
        size = len(job.clients), job.spec.size
        yield Chunk(slice(0, size[0]), {"update": torch.randn(size, generator=self.dice)}, {})


def mean_of_all(training, clients):
    """Mean of u_n over ``clients`` in float64, with the server's client weights."""
    weights = training.server.weights.of(clients)
    total = torch.zeros(training.server.states.size, dtype=torch.float64)
    for client, weight in zip(clients, weights, strict=True):
        own = training.server.states.get("memory", client)
        if own is not None:
            total += weight / weights.sum() * own.double()
    return total


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("weighting", ["uniform", "samples"])
@pytest.mark.parametrize("local", [False, True])
def test_the_incremental_mean_equals_the_mean_of_all_memories(config, toy, weighting, local):
    """With partial participation and random masks, both agree to 1e-5 after 100 rounds."""
    flags = FLAGS | {"weighting": weighting, "split": "dirichlet", "min_samples": 5, "lr": 0.1}
    if local:
        flags |= {"cells": 2, "edge_rounds": 2, "local": "ram-fed", "clients_per_round": 4}
    setup = build(config("hfedavg" if local else "ram-fed", **flags), data=toy, model=model())
    training = setup.learner
    training.local = replace(training.local, executor=Dice())
    for number in range(100):
        training.learn(setup.planner.plan(number), training.server.cloud)
    for node, found in enumerate(training.server.nodes["memory"]):
        expected = mean_of_all(training, np.flatnonzero(training.server.weights.node_of == node))
        assert float(expected.abs().max()) > 5  # changes of 1 over gamma = 0.1
        assert float((found - expected).abs().max()) < 1e-5 * float(expected.abs().max())
    incremental = training.server.nodes["memory"].clone()
    training.server.recount()
    assert torch.allclose(training.server.nodes["memory"], incremental, atol=1e-4)


def test_memory_on_disk_gives_the_same_run(config, toy, same):
    """Runs are bit-identical; clients that have never trained have no record."""
    kept = []
    for states in ("memory", "disk"):
        settings = config("ram-fed", clients=8, rounds=2, chunk=3, client_states=states, **FLAGS)
        result = wirelessfl.run(settings, data=toy, model=model())
        tensors, _ = RunFolder(result.directory).load()
        kept.append((result, tensors))
    (one, memory), (two, disk) = kept
    same(one, two)
    assert torch.equal(memory["server.nodes.memory"], disk["server.nodes.memory"])
    planner = build(settings, data=toy, model=model()).planner
    asked = sorted({int(n) for t in range(2) for n in planner.plan(t).clients})
    assert len(asked) < 8
    assert memory["server.clients.memory.who"].tolist() == asked
    clients, records, _ = disk["server.clients.memory.records"].T
    assert clients.tolist() == asked
    log = np.fromfile(two.directory / "clients-0.log", np.float32).reshape(-1, memory_size(memory))
    assert torch.equal(torch.from_numpy(log[records]), memory["server.clients.memory.values"])


def memory_size(tensors):
    return tensors["server.clients.memory.values"].shape[1]


def test_memory_is_stored_only_for_clients_that_trained(config, toy):
    """With 200 clients and 3 per round, 4 rounds store at most 12 vectors."""
    settings = config("ram-fed", **FLAGS | {"clients": 200, "rounds": 4, "split": "iid"})
    setup = build(settings, data=toy, model=model())
    for number in range(4):
        setup.learner.learn(setup.planner.plan(number), setup.learner.server.cloud)
    tensors = setup.learner.server.states.tensors()
    assert len(tensors["clients.memory.values"]) <= 12


def test_in_sessions_the_mean_is_over_present_clients(config, toy):
    """The mean excludes departed clients, whose memory is kept."""
    flags = {"sessions": 3, "split": "iid", "clients": 8, "rounds": 3}
    settings = config("ram-fed", capacities=(0.7, 0.4), checkpoint_seconds=0, **flags)
    result = wirelessfl.run(settings, data=toy, model=model())
    tensors, _ = RunFolder(result.directory).load()
    who = tensors["server.clients.memory.who"].tolist()
    present = torch.nonzero(tensors["server.there"]).flatten().tolist()
    assert set(present) < set(who), "memory of departed clients is kept"
    rows = dict(zip(who, tensors["server.clients.memory.values"].double(), strict=True))
    expected = sum(rows[client] for client in present) / len(present)
    found = tensors["server.nodes.memory"][0]
    assert torch.allclose(found.double(), expected, atol=1e-6)
    assert not torch.allclose(found.double(), sum(rows.values()) / len(rows), atol=1e-3)


def test_the_mean_excludes_departed_clients(config, toy):
    """If the clients return, the mean is restored. Trial rounds do not change the memory."""
    setup = build(config("ram-fed", **FLAGS | {"clients_per_round": None}), data=toy, model=model())
    training = setup.learner
    for number in range(2):
        training.learn(setup.planner.plan(number), training.server.cloud)
    full = training.server.nodes["memory"].clone()
    training.server.admit(np.isin(np.arange(6), [1, 4], invert=True))
    training.server.recount()
    expected = mean_of_all(training, np.array([0, 2, 3, 5]))
    assert torch.allclose(training.server.nodes["memory"][0].double(), expected, atol=1e-6)
    twin = training.branch(training.stream.child("trial"))
    twin.learn(setup.planner.plan(2, twin.server.present), twin.server.cloud)
    assert not torch.allclose(twin.server.nodes["memory"][0].double(), expected, atol=1e-4)
    assert torch.allclose(training.server.nodes["memory"][0].double(), expected, atol=1e-6)
    assert torch.allclose(mean_of_all(training, np.array([0, 2, 3, 5])), expected, atol=0)
    training.server.admit(np.ones(6, dtype=bool))
    training.server.recount()
    assert torch.allclose(training.server.nodes["memory"], full, atol=1e-6)


def test_memory_stays_in_units_of_gradients_if_the_step_size_decreases(config, toy):
    """RAM-Fed with full models still equals FedAvg, because u_n is in units of gradients."""
    flags = {"lr_schedule": "poly", "rounds": 4}
    full = wirelessfl.run(config("fedavg", **flags), data=toy, model=model())
    own = wirelessfl.run(config("ram-fed", capacities=(1.0,), **flags), data=toy, model=model())
    assert torch.allclose(flat(own), flat(full), atol=2e-6)
    flags["clients_per_round"] = 3
    setup = build(config("ram-fed", capacities=(1.0,), **flags), data=toy, model=model())
    training = setup.learner
    before = []
    for number in range(2):
        before.append(
            (training.server.cloud["params"].clone(), training.server.nodes["memory"][0].clone())
        )
        training.local = replace(training.local, executor=Dice())
        training.learn(setup.planner.plan(number), training.server.cloud)
    plan = setup.planner.plan(1)
    assert 0 < plan.lr_share < 1
    stays = 0.1 * plan.lr_share * before[1][1]  # the share of the memory in round 1's step
    fresh = training.server.cloud["params"] - before[1][0] + stays
    asked = setup.planner.plan(0).clients
    expected = torch.zeros_like(fresh)
    dice = Dice().dice
    changes = torch.randn(3, len(fresh), generator=dice)
    for client, change in zip(plan.clients, changes, strict=True):
        expected += change / 3
        if client in asked:  # round 0 drew the same numbers; its u_n is relative to gamma_0
            row = int(np.flatnonzero(asked == client)[0])
            expected -= changes[row] * plan.lr_share / 3
    assert torch.allclose(fresh, expected, atol=1e-5)
