"""Passes over a client's own samples: numbers of steps, training, seconds and joules."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import functional_call
from torch.nn import functional as F

import wirelessfl
from channels.streams import Stream
from tests.wirelessfl.small import model
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.extend import FedAvg
from wirelessfl.runs.build import build
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.steps import StepCounts

UNEQUAL = {"split": "dirichlet", "alpha": 0.5, "min_samples": 3}
EQUAL = {"split": "iid", "samples_per_client": 24}
STARS = ("fedavg", "scaffold", "fadamgc", "ra-fed", "fedavg-m", "fedprox")


def epochs(config, algorithm, passes, **flags):
    """A configuration with passes in place of local steps."""
    return config(algorithm, **flags).changed(local_steps=None, local_epochs=passes)


@given(
    st.floats(0.01, 20),
    st.lists(st.integers(1, 400), min_size=1, max_size=6),
    st.integers(1, 60),
)
def test_numbers_of_steps(passes, sizes, batch_size):
    """The nearest integer to the number of batches of all passes, and at least one."""
    counts = StepCounts.of_passes(passes, np.array(sizes), batch_size)
    clients = np.arange(len(sizes))
    found = np.broadcast_to(counts.at(clients), len(sizes))
    for size, steps in zip(sizes, found.tolist(), strict=True):
        batches = sum(1 for _ in range(0, size, batch_size))
        assert steps >= 1
        assert steps == 1 or abs(steps - passes * batches) <= 0.5 + 1e-9
        if steps == 1:
            assert passes * batches < 1.5
    assert [counts.of(client) for client in clients] == found.tolist()
    assert counts.mean(clients) == pytest.approx(found.mean())
    assert counts.average == pytest.approx(found.mean())
    assert (counts.each is None) == (len(set(found.tolist())) == 1)


def test_equal_sizes_take_no_memory():
    sizes = np.broadcast_to(np.int64(120), 10**12)
    counts = StepCounts.of_passes(2.0, sizes, 50)
    assert (counts.common, counts.each) == (6, None)
    with pytest.raises(ConfigError, match=r"local_epochs=1e\+06 gives .* 1e\+11 local steps"):
        StepCounts.of_passes(1e6, np.array([10**5, 3]), 1)


CASES = {
    **{name: (name, {}) for name in STARS},
    "cells": ("hfedavg", {"edge_rounds": 2}),
    "masks": ("hist", {"edge_rounds": 2, "hidden": None}),
    "requests": ("fedast", {}),
    "rounds of tasks": ("sync-st", {}),
    "sessions": ("fedavg", {"sessions": 2, "warm_start": "proposed"}),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", CASES)
def test_equal_samples_give_the_run_with_local_steps(config, toy, case):
    """24 samples in batches of 8: two passes are six steps, to the bit."""
    algorithm, flags = CASES[case]
    flags = {name: value for name, value in flags.items() if value is not None} | EQUAL
    results = []
    for made in (
        epochs(config, algorithm, 2.0, rounds=2, **flags),
        config(algorithm, rounds=2, local_steps=6, **flags),
    ):
        results.append(wirelessfl.run(made, data=toy, model=model((9,))))
    with_passes, with_steps = results
    for one, other in zip(with_passes.rows, with_steps.rows, strict=True):
        assert one | {"wall_seconds": 0} == other | {"wall_seconds": 0}
    for name, value in with_steps.params.items():
        assert torch.equal(with_passes.params[name], value)


def plain_round(toy, samples, sizes, passes, rounds=1, batch_size=8, lr=0.1):
    """FedAvg by a plain loop: each client makes its own number of steps."""
    module = model((9,))
    current = {name: value.detach().clone() for name, value in module.named_parameters()}
    source = BatchSource(samples, batch_size, Stream(1))
    done = [0] * len(sizes)
    for _ in range(rounds):
        mean = {name: torch.zeros_like(value) for name, value in current.items()}
        for client, size in enumerate(sizes):
            steps = max(1, int(passes * -(-size // batch_size) + 0.5))
            batches = source.draw(np.array([client]), np.array([done[client]]), steps)
            done[client] += steps
            mine = {name: value.clone() for name, value in current.items()}
            for step in range(steps):
                rows = batches.index[0, step][batches.weight[0, step] > 0]
                leaves = {name: value.requires_grad_() for name, value in mine.items()}
                logits = functional_call(module, leaves, (toy.train_inputs[rows],))
                loss = F.cross_entropy(logits, toy.train_labels[rows])
                each = torch.autograd.grad(loss, list(leaves.values()))
                mine = {
                    name: (value - lr * g).detach()
                    for (name, value), g in zip(leaves.items(), each, strict=True)
                }
            for name, value in mine.items():
                mean[name] += value / len(sizes)
        current = mean
    return current


@pytest.mark.parametrize("executor", ["loop", "stacked"])
def test_unequal_samples_give_a_plain_loop(config, toy, executor):
    made = epochs(config, "fedavg", 0.6, rounds=2, executor=executor, chunk=2, **UNEQUAL)
    setup = build(made, data=toy, model=model((9,)))
    samples = setup.model.client_samples
    assert len(set(setup.planner.settings.steps.each.tolist())) > 2
    for number in range(2):
        setup.learner.learn(setup.planner.plan(number), setup.learner.server.cloud)
    found = setup.planner.model.spec.views(setup.learner.server.cloud["params"])
    expected = plain_round(toy, samples, samples.sizes.tolist(), 0.6, rounds=2)
    for name, value in expected.items():
        assert torch.allclose(found[name], value, atol=1e-5), name


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("algorithm", STARS)
def test_a_client_has_the_update_of_a_round_of_its_own_steps(config, toy, algorithm):
    """Each client's part in the round equals that of a run in which all make its steps."""
    flags = UNEQUAL | {"executor": "stacked", "chunk": 3}
    setup = build(epochs(config, algorithm, 0.6, **flags), data=toy, model=model((9,)))
    plan, steps = setup.planner.plan(0), setup.planner.settings.steps.each
    for client in (0, int(steps.argmax())):
        found = []
        same = config(algorithm, **flags | {"local_steps": int(steps[client])})
        for one in (setup, build(same, data=toy, model=model((9,)))):
            others = np.setdiff1d(plan.clients, [client])
            alone = one.planner.plan(0).without(others)
            found.append(one.learner.train([(alone, one.learner.server.cloud)])[0].nodes)
        for name, value in found[0].items():
            assert torch.allclose(value, found[1][name], atol=1e-6), name


def test_chunks_and_submodels_agree(config, toy):
    """Jobs of equal steps and any chunk: the parameters agree."""
    results = []
    for chunk, executor in ((1, "loop"), (2, "vmap"), (6, "stacked")):
        flags = UNEQUAL | {"capacities": (1.0, 0.5), "chunk": chunk, "executor": executor}
        made = epochs(config, "ra-fed", 0.6, rounds=2, **flags)
        results.append(wirelessfl.run(made, data=toy, model=model((9,))))
    for result in results[1:]:
        for name, value in results[0].params.items():
            assert torch.allclose(result.params[name], value, atol=1e-5)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [
        ("fedavg", {"uplink": "ofdma", "allocation": "optimal"}),
        ("hist", {"edge_rounds": 2, "mask_sizes": "optimized"}),
        ("ra-fed", {"budget": "deadline", "deadline": 0.02, "masks": "covered"}),
        ("fedavg", {"sessions": 2, "warm_start": "proposed"}),
    ],
)
def test_seconds_and_joules_follow_each_clients_steps(config, toy, algorithm, flags):
    """Cycles of the load, by hand; the price without training equals the run."""
    made = epochs(config, algorithm, 0.6, rounds=2, **UNEQUAL, **flags)
    setup = build(made, data=toy, model=model((9,)))
    plan, sizes = setup.planner.plan(0), setup.model.client_samples.sizes
    load = plan.price.served.load
    steps = np.maximum(1, np.floor(0.6 * np.ceil(sizes / 8) + 0.5))[plan.clients]
    size = setup.planner.model.spec.size
    np.testing.assert_allclose(load.cycles, steps * 1e6 * load.elements / size, rtol=1e-12)
    prices = wirelessfl.price(made, data=toy, model=model((9,)))
    rows = wirelessfl.run(made, data=toy, model=model((9,))).rows
    for planned, row in zip(prices.rows, rows, strict=True):
        assert planned.items() <= row.items()


@pytest.mark.parametrize("algorithm", ["fedast", "sync-st"])
def test_requests_take_the_seconds_of_their_clients_steps(config, toy, algorithm):
    made = epochs(config, algorithm, 0.6, rounds=4, **UNEQUAL)
    setup = build(made, data=toy, model=model((9,)))
    delays = setup.handler.requests.delays if algorithm == "fedast" else setup.handler.delays
    sizes = setup.models[0].client_samples.sizes
    for client, size in enumerate(sizes.tolist()):
        steps = max(1, int(0.6 * -(-size // 8) + 0.5))
        cycles = steps * setup.network.cycles_per_step
        assert delays.seconds(0, client, 0) == pytest.approx(cycles / setup.network.cpu_hz[client])
    result = wirelessfl.run(made, data=toy, model=model((9,)))
    assert result.rows[-1]["sim_seconds"] > 0


def test_tasks_may_have_their_own_passes():
    tasks = ["digits,name=a,local_epochs=1.5", "digits,name=b,local_steps=4"]
    made = Config.from_flags("fedast", task=tasks)
    assert [t.training.local_epochs for t in made.tasks.values()] == [1.5, None]
    assert made.tasks["b"].training.local_steps == 4


@dataclass(frozen=True)
class Noting(FedAvg):
    """FedAvg whose server notes the local steps of the senders of each merge."""

    noted: ClassVar[list[tuple[list[int], list[int], float]]] = []

    def merge(self, server, received):
        self.noted.append((received.clients.tolist(), [*received.steps], received.local_steps))
        return super().merge(server, received)


@pytest.mark.parametrize("passes", [1.0, None])
def test_the_server_knows_the_steps_of_each_sender(passes, config, tmp_path):
    """By number of batches, or H of all; the number is their unweighted mean."""
    name = f"{__name__}:Noting"
    flags = {"clients_per_round": 3, "out": tmp_path / "run", **UNEQUAL}
    made = config(name, **flags) if passes is None else epochs(config, name, passes, **flags)
    Noting.noted.clear()
    sizes = [len(own) for own in wirelessfl.run(made).partition]
    assert Noting.noted
    for clients, steps, mean in Noting.noted:
        batches = [math.ceil(sizes[client] / made.training.batch_size) for client in clients]
        assert steps == (batches if passes else [made.training.local_steps] * len(clients))
        assert mean == pytest.approx(np.mean(steps))
    if passes:
        assert any(len({*steps}) > 1 for _, steps, _ in Noting.noted)
