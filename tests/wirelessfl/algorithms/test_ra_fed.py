"""RA-Fed and its variants equal reference loops, and coincide in special cases."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

import wirelessfl
from tests.wirelessfl.small import flat, model
from wirelessfl.engine.server.weights import Weights
from wirelessfl.models.submodels import ClientSubmodels
from wirelessfl.runs.build import build
from wirelessfl.training.executor import Chunk

LR, STEPS = 0.1, 3


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("weighting", ["uniform", "samples"])
@pytest.mark.parametrize("per_round", [None, 4])
@pytest.mark.parametrize("name", ["ra-fed", "heterofl", "fedrolex", "fedavg-small"])
def test_full_submodels_are_fedavg(config, toy, name, per_round, weighting):
    """With full submodels, models are bit-identical to FedAvg's; rows agree up to rounding."""
    flags = {"clients_per_round": per_round, "weighting": weighting}
    flags |= {"split": "dirichlet", "min_samples": 5, "server_lr": 0.7}
    full = wirelessfl.run(config("fedavg", **flags), data=toy, model=model())
    own = wirelessfl.run(config(name, capacities=(1.0,), **flags), data=toy, model=model())
    assert torch.equal(flat(own), flat(full))
    for row, expected in zip(own.rows, full.rows, strict=True):
        for key in expected.keys() - {"wall_seconds"}:
            assert row[key] == pytest.approx(expected[key], rel=1e-12), key
    assert own.rows[1]["coverage"] == (per_round or 6)
    assert own.rows[1]["uncovered"] == 0
    narrow = wirelessfl.run(config(name, capacities=(0.5,), **flags), data=toy, model=model())
    assert not torch.allclose(flat(narrow), flat(full), atol=1e-3)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("weighting", ["uniform", "samples"])
def test_ram_fed_with_full_submodels_and_participation_is_fedavg(config, toy, weighting):
    """RAM-Fed and FedAvg agree up to rounding if all clients participate, but not otherwise.

    RAM-Fed's mean includes the memory of absent clients.
    """
    flags = {"weighting": weighting, "rounds": 6}
    flags |= {"split": "dirichlet", "min_samples": 5}
    for per_round, equal in ((None, True), (4, False)):
        flags["clients_per_round"] = per_round
        full = wirelessfl.run(config("fedavg", **flags), data=toy, model=model())
        own = wirelessfl.run(config("ram-fed", capacities=(1.0,), **flags), data=toy, model=model())
        assert torch.allclose(flat(own), flat(full), atol=2e-6 if equal else 1e-2) == equal


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("overlap", [0.0, 0.7])
@pytest.mark.parametrize("weighting", ["uniform", "samples"])
def test_partition_masks_are_hist(config, toy, weighting, overlap):
    """HIST with one client per cell and one edge round gives the same model up to rounding.

    The 15 neurons divide evenly among 5 clients; the two algorithms round other sizes differently.
    """
    flags = {"clients": 5, "rounds": 4, "weighting": weighting, "split": "dirichlet"}
    flags |= {"min_samples": 5, "mask_overlap": overlap}
    hist = config("hist", cells=5, edge_rounds=1, **flags)
    own = config("ra-fed", masks="partition", capacities=(1.0,), **flags)
    one, two = (wirelessfl.run(made, data=toy, model=model((15,))) for made in (hist, own))
    assert torch.allclose(flat(one), flat(two), atol=2e-6)
    assert one.rows[-1]["uplink_mib"] == pytest.approx(two.rows[-1]["uplink_mib"])
    assert (two.rows[-1]["coverage"], two.rows[-1]["uncovered"]) == (1, 0)
    assert two.rows[-1]["loss"] < two.rows[0]["loss"] - 0.01


class Constant:
    """Executor stub: a client changes all its parameters by the same number."""

    def __init__(self, change):
        self.change, self.chunk, self.seen = change, 2, []

    def train(self, job):
        self.seen.append(job)
        for start in range(0, len(job.clients), self.chunk):
            part = slice(start, min(start + self.chunk, len(job.clients)))
            own = [self.change[client] for client in job.clients[part].tolist()]
            yield Chunk(part, {"update": torch.tensor(own)[:, None].repeat(1, job.spec.size)}, {})


def by_neuron(spec, values):
    """Reduce ``values`` [P] to one value per hidden neuron and one for the output biases."""
    into, bias, out, last = spec.views(values).values()
    for n, value in enumerate(bias):  # all parameters of a neuron have changed equally
        assert torch.allclose(into[n], value)
        assert torch.allclose(out[:, n], value)
    assert torch.allclose(last, last[0])
    return [*bias.tolist(), float(last[0])]


def trained(setup, number, who, chosen, change):
    """Change of each neuron in a round in which clients ``who`` train neurons ``chosen``.

    Client n changes each of its parameters by ``change[n]``.
    """
    plan, training = setup.planner.plan(number), setup.learner
    chosen = [[np.array(own)] for own in chosen]
    training.local = replace(training.local, executor=Constant(change))
    before = training.server.cloud["params"]
    plan = replace(
        plan,
        clients=np.array(who),
        tracking=np.ones(len(who), bool),
        node=np.zeros(len(who), int),
        client_submodels=ClientSubmodels(plan.client_submodels.neurons, chosen),
    )
    training.learn(plan, training.server.cloud)
    return by_neuron(setup.model.objective.spec, training.server.cloud["params"] - before)


# Neuron 0 is covered by client 0, neuron 1 by two clients, neuron 2 by client 2, and neuron 3 by
# none; all clients cover the outputs.
FIRST = (0, 1, 2), ([0, 1], [1], [2]), {0: 3.0, 1: 5.0, 2: 7.0}
# Client 2 is absent; no client covers neuron 2.
SECOND = (0, 1), ([1], [0, 3]), {0: 1.0, 1: 2.0}
SAMPLES = (1.0, 3.0, 4.0)


def prepared(config, toy, name, weighting):
    settings = config(name, clients=3, weighting=weighting, lr=0.5)
    setup = build(settings, data=toy, model=model((4,)))
    if weighting == "samples":
        server = setup.learner.server
        server.weights = Weights(server.weights.node_of, np.array(SAMPLES))
        server.admit(server.present.mask)  # with their new weights
    return setup


@pytest.mark.parametrize(
    ("weighting", "first", "second"),
    [
        ("uniform", [3, (3 + 5) / 2, 7, 0, (3 + 5 + 7) / 3], [2, 1, 0, 2, (1 + 2) / 2]),
        (
            "samples",
            [3, (3 + 3 * 5) / 4, 7, 0, (3 + 3 * 5 + 4 * 7) / 8],
            [2, 1, 0, 2, (1 + 3 * 2) / 4],
        ),
    ],
)
def test_the_merge_by_hand(config, toy, weighting, first, second):
    """A coordinate changes by the mean change of the clients that cover it, if there are any."""
    setup = prepared(config, toy, "ra-fed", weighting)
    assert trained(setup, 0, *FIRST) == pytest.approx(first, rel=1e-6)
    assert setup.learner.metrics == pytest.approx({"coverage": 1, "uncovered": 17 / 72})
    assert trained(setup, 1, *SECOND) == pytest.approx(second, rel=1e-6)


def test_ram_feds_merge_by_hand(config, toy):
    """The mean of u_n includes every client, also at coordinates that it does not cover.

    In units of the model's change, the mean is [1, 8/3, 7/3, 0, 5] after the first round, and
    [3/8, 18/8, 28/8, 0, 46/8] if clients are weighted by samples.
    """
    for weighting, first, second, mean in (
        (
            "uniform",
            [3, 4, 7, 0, 5],
            [1 + 2, 8 / 3 + 1 - 3, 7 / 3, 0 + 2, 5 + (1 - 3 + 2 - 5) / 2],
            [(3 + 2) / 3, (1 + 5) / 3, 7 / 3, 2 / 3, (1 + 2 + 7) / 3],
        ),
        (
            "samples",
            [3, 4.5, 7, 0, 5.75],
            [3 / 8 + 2, 18 / 8 + 1 - 3, 28 / 8, 2, 46 / 8 + (1 - 3 + 3 * (2 - 5)) / 4],
            [(3 + 3 * 2) / 8, (1 + 3 * 5) / 8, 28 / 8, 6 / 8, (1 + 6 + 28) / 8],
        ),
    ):
        setup = prepared(config, toy, "ram-fed", weighting)
        training, spec = setup.learner, setup.model.objective.spec
        assert trained(setup, 0, *FIRST) == pytest.approx(first, rel=1e-6)
        assert trained(setup, 1, *SECOND) == pytest.approx(second, rel=1e-5)
        kept = -0.5 * training.server.nodes["memory"][0]  # Delta = -change / gamma
        assert by_neuron(spec, kept) == pytest.approx(mean, rel=1e-5)
        own = [by_neuron(spec, -0.5 * training.server.states.get("memory", n)) for n in range(3)]
        assert own == [[3, 1, 0, 0, 1], [2, 5, 0, 2, 2], [0, 0, 7, 0, 7]]


def test_overlapping_submodels_are_averaged(config, toy):
    """Three submodels have 4 of 12 neurons each, plus 2 of the next one's, so 6 are shared."""
    flags = {"masks": "partition", "mask_overlap": 0.5, "capacities": (1.0,)}
    settings = config("ra-fed", clients=3, **flags)
    setup = build(settings, data=toy, model=model((12,)))
    plan, training = setup.planner.plan(0), setup.learner
    holders = [{n for n in range(3) if k in plan.client_submodels.chosen[n][0]} for k in range(12)]
    assert sorted(map(len, holders)) == [1] * 6 + [2] * 6
    training.local = replace(training.local, executor=Constant({0: 3.0, 1: 5.0, 2: 10.0}))
    before = training.server.cloud["params"]
    training.learn(plan, training.server.cloud)
    moved = by_neuron(setup.model.objective.spec, training.server.cloud["params"] - before)
    means = [sum((3.0, 5.0, 10.0)[n] for n in own) / len(own) for own in holders]
    assert moved == pytest.approx([*means, 6.0])


def mask_of(spec, chosen):
    """Mask [P] of a client that trains neurons ``chosen`` of a fully connected network."""
    kept, full = spec.views(torch.ones(spec.size)), torch.zeros(spec.size)
    names = list(kept)
    layers = [(names[i], names[i + 1]) for i in range(0, len(names), 2)]
    outputs = spec.shapes[layers[-1][1]][0]
    inputs = spec.shapes[layers[0][0]][1]
    held = [np.arange(inputs), *chosen, np.arange(outputs)]
    views = spec.views(full)
    for (weight, bias), (read, made) in zip(layers, pairwise(held), strict=True):
        views[weight][np.ix_(made, read)] = 1.0
        views[bias][made] = 1.0
    return full


def written_out(setup, module, data, rounds, memory):
    """Reference loop with masked full vectors: E edge rounds per cell, then the mean of cells."""
    training, planner, spec = setup.learner, setup.planner, setup.model.objective.spec
    edge_rounds, clients = planner.settings.edge_rounds, len(setup.model.client_samples)
    by_samples = training.server.weights.samples is not None
    sizes = [float(len(own)) if by_samples else 1.0 for own in setup.model.client_samples]
    node_of = planner.network.cell_of
    nodes = int(node_of.max()) + 1
    x = spec.from_module(module)
    u, steps_done = torch.zeros(clients, spec.size), np.zeros(clients, int)
    for number in range(rounds):
        plan = planner.plan(number)
        masks = {
            client: mask_of(spec, own)
            for client, own in zip(plan.clients.tolist(), plan.client_submodels.chosen, strict=True)
        }
        models = []
        for node in range(nodes):
            members = [c for c in range(clients) if node_of[c] == node]
            senders = [c for c in plan.clients.tolist() if node_of[c] == node]
            edge = x.clone()
            for e in range(edge_rounds):
                total, weight = torch.zeros(spec.size), torch.zeros(spec.size)
                mean = sum(sizes[c] * u[c] for c in members) / sum(sizes[c] for c in members)
                for client in senders:
                    first = np.array([steps_done[client] + STEPS * e])
                    batches = training.local.executor.data.source.draw(
                        np.array([client]), first, STEPS
                    )
                    mask = masks[client]
                    local = mask * edge
                    for rows, share in zip(batches.index[0], batches.weight[0], strict=True):
                        rows = rows[share > 0]
                        leaf = local.clone().requires_grad_()
                        logits = functional_call(
                            module, spec.views(leaf), (data.train_inputs[rows],)
                        )
                        loss = F.cross_entropy(logits, data.train_labels[rows])
                        local = local - LR * mask * torch.autograd.grad(loss, leaf)[0]
                    delta = (mask * edge - local) / LR
                    total += sizes[client] * mask * (delta - u[client] if memory else delta)
                    weight += sizes[client] * mask
                    if memory:
                        u[client] = torch.where(mask > 0, delta, u[client])
                step = torch.where(weight > 0, total / weight.clamp(min=1e-9), 0.0)
                edge = edge - LR * (mean + step if memory else step)
            models.append(edge)
        for client in plan.clients.tolist():
            steps_done[client] += STEPS * edge_rounds
        share = [
            sum(sizes[c] for c in plan.clients.tolist() if node_of[c] == n) if by_samples else 1.0
            for n in range(nodes)
        ]
        x = sum(s * own for s, own in zip(share, models, strict=True)) / sum(share)
    return x


COHORTS = {
    "star": {},
    "partial participation": {"clients_per_round": 4, "weighting": "samples"},
    "cells": {"cells": 2, "edge_rounds": 2, "clients_per_round": 5, "weighting": "samples"},
    "equal cells": {"cells": 2, "edge_rounds": 2},
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("cohort", COHORTS)
@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("ra-fed", {"masks": "random"}),
        ("ra-fed", {"masks": "partition", "mask_overlap": 0.4}),
        ("ram-fed", {"masks": "rolling"}),
        ("ram-fed", {"masks": "covered"}),
        ("heterofl", {}),
        ("fedrolex", {}),
    ],
)
def test_submodel_algorithms_equal_a_reference_loop(config, toy, name, own, cohort):
    """Extracted submodels give the same model as masked parameters and gradients."""
    flags = COHORTS[cohort] | own | {"split": "dirichlet", "min_samples": 5, "lr": LR}
    flags |= {"capacities": (0.7, 0.5, 0.3), "local_steps": STEPS}
    inside = "cells" in flags
    settings = config("hfedavg", local=name, **flags) if inside else config(name, **flags)
    setup = build(settings, data=toy, model=model((9, 8)))
    expected = written_out(setup, model((9, 8)), toy, 3, name == "ram-fed")
    result = wirelessfl.run(settings, data=toy, model=model((9, 8)))
    assert torch.allclose(flat(result), expected, atol=3e-6)
    start = setup.model.objective.spec.from_module(model((9, 8)))
    assert not torch.allclose(flat(result), start, atol=1e-2)
