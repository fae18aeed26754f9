"""Sampling of participants and trackers, against reference rounds; invalid settings."""

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

import wirelessfl
from channels.streams import Stream
from tests.wirelessfl.small import flat, model
from wirelessfl.air.participants import draw_participants
from wirelessfl.algorithms import algorithm_classes
from wirelessfl.base.errors import ConfigError
from wirelessfl.config.choices import preset_of
from wirelessfl.runs.build import build

SAMPLED = {"clients": 9, "clients_per_round": 5, "tracking_clients": 2}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("weighting", ["uniform", "samples"])
@pytest.mark.parametrize("name", ["fadamgc", "scaffold"])
def test_partial_rounds_match_a_reference_loop(config, toy, name, weighting):
    """Four rounds with S of n clients and S_tilde trackers equal a plain loop of Algorithm 1."""
    settings = config(
        name, **SAMPLED, rounds=4, lr=0.02, server_lr=0.8, weighting=weighting, split="dirichlet",
        min_samples=5,
    )  # fmt: skip
    setup = build(settings, data=toy, model=model())
    training, spec, module = setup.learner, setup.model.objective.spec, model()
    sizes = np.array([len(own) for own in setup.model.client_samples], dtype=float)
    if weighting == "uniform":
        sizes[:] = 1.0
    x = spec.from_module(module)
    y, y_i, v_i = torch.zeros_like(x), torch.zeros(9, spec.size), torch.zeros(9, spec.size)
    steps_done, sampled, tracked = np.zeros(9, dtype=int), set(), set()
    for t in range(4):
        plan = setup.planner.plan(t)
        assert len(plan.clients) == 5
        assert plan.tracking.sum() == 2
        sampled |= set(plan.clients.tolist())
        tracked |= set(plan.clients[plan.tracking].tolist())
        total, drift = torch.zeros_like(x), torch.zeros_like(x)
        for client, tracks in zip(plan.clients, plan.tracking, strict=True):
            batches = training.local.executor.data.source.draw(
                np.array([client]), steps_done[[client]], 3
            )
            steps_done[client] += 3
            local, m, v, vhat, mean = x.clone(), 0.0, v_i[client], v_i[client], 0.0
            for rows, weight in zip(batches.index[0], batches.weight[0], strict=True):
                rows = rows[weight > 0]
                leaf = local.clone().requires_grad_()
                logits = functional_call(module, spec.views(leaf), (toy.train_inputs[rows],))
                loss = F.cross_entropy(logits, toy.train_labels[rows])
                g = torch.autograd.grad(loss, leaf)[0]
                mean = mean + g / 3
                step = g + y - y_i[client]
                if name == "fadamgc":
                    m, v = 0.9 * m + 0.1 * step, 0.99 * v + 0.01 * step**2
                    vhat = torch.maximum(vhat, v)
                    step = m / (vhat.sqrt() + 1e-8)
                local = local - 0.02 * step
            v_i[client] = v
            total += sizes[client] / sizes[plan.clients].sum() * (local - x)
            if tracks:
                drift += sizes[client] / sizes.sum() * (mean - y_i[client])
                y_i[client] = mean
        x, y = x + 0.8 * total, y + drift
    assert len(sampled) > 5
    assert len(tracked) > 2
    result = wirelessfl.run(settings, data=toy, model=model())
    # Adam divides by roots of single squared gradients, which amplifies rounding errors.
    assert torch.allclose(flat(result), x, atol=2e-4 if name == "fadamgc" else 2e-6)
    assert not torch.allclose(flat(result), spec.from_module(model()), atol=1e-2)


def test_full_participation_is_the_default(config, toy, same):
    """Explicit S_tilde = S = n gives the same run as the default."""
    for name in ("fadamgc", "fa-nt", "scaffold-m"):
        said = config(name, clients_per_round=6, tracking_clients=6, lr=0.01)
        same(
            wirelessfl.run(said, data=toy, model=model()),
            wirelessfl.run(config(name, lr=0.01), data=toy, model=model()),
        )


def test_clients_participate_equally_often(network_of):
    """With 3 of 10 clients in 400 rounds, each has 120 rounds (standard deviation 9)."""
    network, stream = network_of(np.zeros(10, dtype=int)), Stream(5)
    asked, tracked = np.zeros(10), np.zeros(10)
    for t in range(400):
        who = draw_participants(network, 3, 1, stream.child("round", t))
        assert (np.diff(who.clients) > 0).all()
        asked[who.clients] += 1
        tracked[who.clients[who.tracking]] += 1
    assert asked.sum() == 1200
    assert tracked.sum() == 400
    assert (abs(asked - 120) < 40).all()
    assert (abs(tracked - 40) < 27).all()


def test_participants_are_proportional_to_the_clients_of_cells(network_of):
    network = network_of(np.repeat([0, 1, 2], [6, 3, 3]))
    for t in range(20):
        who = draw_participants(network, 8, 4, Stream(t))
        assert np.bincount(network.cell_of[who.clients]).tolist() == [4, 2, 2]
        assert np.bincount(network.cell_of[who.clients], who.tracking).tolist() == [2, 1, 1]
    with pytest.raises(ConfigError, match="cell 1 of 2 has only 1 of the 10 clients"):
        draw_participants(network_of(np.repeat([0, 1], [9, 1])), 3, None, Stream(1))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("sampled", "tracking"), [(5, 2), (7, 1), (11, 3)])
def test_random_rounding_is_unbiased(network_of, sampled, tracking):
    """Over 1000 rounds, clients participate equally often, within four standard deviations."""
    network = network_of(np.repeat([0, 1, 2, 3], [5, 5, 6, 4]))
    asked, tracked = np.zeros(20), np.zeros(20)
    for t in range(1000):
        who = draw_participants(network, sampled, tracking, Stream(t))
        assert len(who.clients) == sampled
        assert who.tracking.sum() == tracking
        assert (np.bincount(network.cell_of[who.clients], minlength=4) > 0).all()
        asked[who.clients] += 1
        tracked[who.clients[who.tracking]] += 1
    for counts, total in ((asked, sampled), (tracked, tracking)):
        share = total / 20
        assert abs(counts / 1000 - share).max() < 4 * (share * (1 - share) / 1000) ** 0.5


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", sorted(algorithm_classes()))
def test_every_algorithm_runs(config, toy, name):
    asked = "requests" if preset_of(name).schedule == "buffered" else "clients_per_round"
    settings = config(name, rounds=2, cells=None, clients=8, eval_every=1, **{asked: 4})
    rows = wirelessfl.run(settings, data=toy, model=model()).rows
    assert rows[-1]["loss"] != rows[0]["loss"]


def test_clients_per_round_is_checked_against_a_given_network(config, toy, network_of):
    settings = config("fedavg", network=True, clients_per_round=5)
    with pytest.raises(ConfigError, match="clients_per_round=5 conflicts with 4 clients"):
        build(settings, data=toy, model=model(), network=network_of(np.zeros(4, dtype=int)))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("executor", ["stacked", "vmap", "loop"])
def test_executors_chunks_and_workers_agree(config, toy, executor, workers):
    """Results agree to 1e-5; the large eps limits rounding errors of Adam's square roots."""
    flags = dict(SAMPLED, lr=0.01, eps=1e-2)
    settings = config("fadamgc", **flags, executor=executor, chunk=2, workers=workers)
    reference = config("fadamgc", **flags, executor="stacked", chunk=5)
    one, two = (wirelessfl.run(own, data=toy, model=model()) for own in (settings, reference))
    assert torch.allclose(flat(one), flat(two), atol=1e-5)
    assert [row["sim_seconds"] for row in one.rows] == [row["sim_seconds"] for row in two.rows]


def test_recorded_steps_use_the_current_client_states(config, toy):
    """With different participants per round, recorded and unrecorded steps give equal results."""
    settings = config("fadamgc", **SAMPLED, lr=0.01, executor="vmap", chunk=2, workers=1)
    setup = build(settings, data=toy, model=model())
    setup.learner.local.executor.recorded = True
    other = build(settings, data=toy, model=model())
    for t in range(4):
        for each in (setup, other):
            each.learner.learn(each.planner.plan(t), each.learner.server.cloud)
    assert len(setup.learner.local.executor._recordings) > 0
    one, two = (each.learner.server.cloud["params"] for each in (setup, other))
    assert torch.allclose(one, two, atol=1e-6)
