"""Runs equal loops over the papers' formulas in double precision."""

import csv
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import wirelessfl
from wirelessfl.algorithms import find_algorithm
from wirelessfl.training.rules import Received

BATCH = 10


@dataclass(frozen=True)
class Clients:
    """Clients whose samples are copies of one sample each, so that all their batches are equal."""

    sizes: tuple[int, ...]

    def __post_init__(self):
        dice = np.random.default_rng(1)
        self.__dict__["x"] = dice.normal(size=(len(self.sizes), 6)).astype(np.float32)
        self.__dict__["y"] = np.arange(len(self.sizes)) % 4

    def run(self, algorithm, **flags):
        """Run with a linear model, from which all clients' gradients follow."""
        x, y = np.repeat(self.x, self.sizes, 0), np.repeat(self.y, self.sizes)
        split = np.split(np.arange(len(y)), np.cumsum(self.sizes)[:-1])
        small = {"clients": len(self.sizes), "model": "linear", "batch_size": BATCH}
        config = wirelessfl.Config.from_flags(algorithm, **(small | flags))
        return wirelessfl.run(config, data=(x, y, x, y), split=split)

    def gradient(self, client, params):
        """Gradient of the client's loss at the weight and the bias of a linear model."""
        weight, bias = (value.clone().requires_grad_() for value in params)
        logits = torch.from_numpy(self.x[client : client + 1]).double() @ weight.T + bias
        loss = F.cross_entropy(logits, torch.from_numpy(self.y[client : client + 1]))
        return torch.autograd.grad(loss, [weight, bias])


def doubles(result):
    return [value.double() for value in result.params.values()]


def scaffold(clients, params, lr, steps, arrivals, weights):
    """Algorithm 1 of SCAFFOLD, option II, where c changes by the arrived fraction of all clients.

    Args:
        arrivals: by round, the clients whose updates arrive.
        weights: [clients], weights in means.
    """
    total = [torch.zeros_like(x) for x in params]
    own = [total for _ in clients.sizes]
    for arrived in arrivals:
        sent = {}
        for client in arrived:
            end = params
            for _ in range(steps[client]):
                grads = clients.gradient(client, end)
                shifts = zip(end, grads, total, own[client], strict=True)
                end = [x - lr * (g + c - mine) for x, g, c, mine in shifts]
            moves = zip(own[client], total, params, end, strict=True)
            kept = [mine - c + (x - z) / (steps[client] * lr) for mine, c, x, z in moves]
            sent[client] = end, kept
        share = sum(weights[i] for i in arrived)
        if arrived:
            changes = [
                sum(weights[i] * (kept[place] - own[i][place]) for i, (_, kept) in sent.items())
                for place in range(2)
            ]
            total = [c + change for c, change in zip(total, changes, strict=True)]
            params = [
                sum(weights[i] * end[place] for i, (end, _) in sent.items()) / share
                for place in range(2)
            ]
        for client, (_, kept) in sent.items():
            own[client] = kept
    return params


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("weighting", ["uniform", "samples"])
@pytest.mark.parametrize("executor", ["loop", "vmap", "stacked"])
def test_scaffold_divides_by_the_steps_of_each_client(tmp_path, monkeypatch, weighting, executor):
    """Clients with 2 to 40 local steps per round."""
    monkeypatch.chdir(tmp_path)
    clients, lr, rounds = Clients((10, 10, 40, 200)), 0.2, 4
    flags = {"local_epochs": 2, "weighting": weighting}
    start = clients.run("scaffold", lr=1e-30, rounds=1, **flags)
    result = clients.run("scaffold", lr=lr, rounds=rounds, executor=executor, **flags)
    sizes = np.array(clients.sizes if weighting == "samples" else [1] * 4)
    steps = [2 * ceil(size / BATCH) for size in clients.sizes]
    expected = scaffold(
        clients, doubles(start), lr, steps, [range(4)] * rounds, sizes / sizes.sum()
    )
    for value, want in zip(doubles(result), expected, strict=True):
        torch.testing.assert_close(value, want, rtol=1e-4, atol=5e-6)


@pytest.mark.parametrize(
    "flags",
    [
        {"failures": "waterfall", "waterfall_db": 40.0},
        {"cutoff_seconds": 0.0012},
        {"uplink": "ofdma", "snr_db": 30.0, "failures": "waterfall", "waterfall_db": 40.0},
    ],
)
def test_lost_updates_leave_both_payloads_of_scaffold_out(tmp_path, monkeypatch, flags):
    """Neither mean contains anything of a client whose update is lost or late."""
    monkeypatch.chdir(tmp_path)
    clients, lr, rounds = Clients((20,) * 6), 0.2, 8
    start = clients.run("scaffold", lr=1e-30, rounds=1, local_steps=3)
    result = clients.run("scaffold", lr=lr, rounds=rounds, local_steps=3, client_log=True, **flags)
    arrivals = [[] for _ in range(rounds)]
    with (result.directory / "clients.csv").open() as file:
        log = [
            (int(row["round"]), int(row["client"]), row["arrived"]) for row in csv.DictReader(file)
        ]
    for number, client, arrived in log:
        if arrived == "1":
            arrivals[number - 1].append(client)
    assert 0 < sum(map(len, arrivals)) < len(log)
    expected = scaffold(clients, doubles(start), lr, [3] * 6, arrivals, [1 / 6] * 6)
    for value, want in zip(doubles(result), expected, strict=True):
        torch.testing.assert_close(value, want, rtol=1e-4, atol=5e-6)


@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("schedule", [{}, {"schedule": "buffered", "requests": 1, "buffer": 1}])
def test_polynomial_step_sizes_do_not_restart(tmp_path, monkeypatch, steps, schedule):
    """In round t of T: lr ((1 - ratio) (1 - t / T)^power + ratio), the same for all its steps."""
    monkeypatch.chdir(tmp_path)
    clients, lr, rounds, ratio, power = Clients((10,)), 0.5, 6, 0.1, 2.0
    params = doubles(clients.run("fedavg", lr=1e-30, rounds=1))
    decay = {"lr_schedule": "poly", "lr_ratio": ratio, "lr_power": power}
    result = clients.run("fedavg", lr=lr, rounds=rounds, local_steps=steps, **decay, **schedule)
    for number in range(rounds):
        size = lr * ((1 - ratio) * (1 - number / rounds) ** power + ratio)
        for _ in range(steps):
            grads = clients.gradient(0, params)
            params = [x - size * g for x, g in zip(params, grads, strict=True)]
    for value, want in zip(doubles(result), params, strict=True):
        torch.testing.assert_close(value, want, rtol=1e-4, atol=5e-6)


@pytest.mark.parametrize("eps", [1e-3, 1e-9, 1e-30])
@pytest.mark.parametrize("name", ["fedadam", "fedyogi"])
def test_moments_of_adaptive_servers(name, eps):
    """Algorithm 2 of Reddi et al., also for coordinates that have not changed yet."""
    algorithm = replace(find_algorithm(name)(), eps=eps)
    dice = np.random.default_rng(0)
    x = dice.normal(size=50).astype(np.float32)
    state = algorithm.initial(torch.from_numpy(x.copy()))
    expected, first, second = x.astype(float), np.zeros(50), np.full(50, eps**2)
    for number in range(4):
        change = 1e-2 * dice.normal(size=50).astype(np.float32)
        change[: 15 if number else 10] = 0
        mean = {"update": torch.from_numpy(change)}
        state = algorithm.merge(state, Received(mean, {}, np.arange(1), np.zeros(1, int)))
        square = change.astype(float) ** 2
        first = 0.9 * first + 0.1 * change
        if name == "fedadam":
            second = 0.99 * second + 0.01 * square
        else:
            second = second - 0.01 * square * np.sign(second - square)
        expected = expected + algorithm.server_lr * first / (np.sqrt(second) + eps)
        np.testing.assert_allclose(state["params"].numpy(), expected, atol=1e-6)
    assert (state["params"][:10].numpy() == x[:10]).all()
