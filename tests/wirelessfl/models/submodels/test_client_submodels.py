"""Client submodels train like the masked full model, for any batching of clients."""

import copy
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

import wirelessfl
from channels.streams import Stream
from tests.wirelessfl.small import flat, model
from wirelessfl.base.errors import ConfigError
from wirelessfl.data import Dataset
from wirelessfl.engine.rounds.local_training import job_groups
from wirelessfl.models import FCNN, LeNet5, ResNet18
from wirelessfl.models.submodels import (
    ClientSubmodels,
    Dealing,
    ParamSpec,
    deal_masks,
    find_neurons,
    levels_of,
)
from wirelessfl.runs.build import build

LR = 0.05


def lenet():
    torch.manual_seed(3)
    return LeNet5((1, 28, 28), 4)


def images(shape, samples=60, classes=4):
    random = Stream(1, ("images",)).generator()
    x = torch.from_numpy(random.standard_normal((samples, *shape))).float().clamp(-3, 3) / 3
    y = torch.from_numpy(np.arange(samples) % classes)
    return Dataset("images", x, y, x[:20], y[:20], classes)


def full_masks(spec, kept):
    """Mask [P] of 0 and 1: ``kept`` has the kept indices of each parameter's first two axes."""
    mask = torch.zeros(spec.size)
    for name, view in spec.views(mask).items():
        first, second = kept[name]
        view[first if view.ndim == 1 else np.ix_(first, second)] = 1.0
    return mask


def kept_of_lenet(conv1, conv2, fc1, fc2):
    """Kept indices by parameter; each channel of ``conv2`` is 16 inputs of ``fc1``."""
    inputs, classes = np.arange(1), np.arange(4)
    pixels = (16 * conv2[:, None] + np.arange(16)).reshape(-1)
    held = {
        "features.0": (conv1, inputs),
        "features.3": (conv2, conv1),
        "fc1": (fc1, pixels),
        "fc2": (fc2, fc1),
        "fc3": (classes, fc2),
    }
    return {f"{name}.{kind}": own for name, own in held.items() for kind in ("weight", "bias")}


def kept_of_fcnn(spec, *chosen):
    names = list(spec.shapes)
    held = [np.arange(12), *chosen, np.arange(4)]
    return {name: (held[i // 2 + 1], held[i // 2]) for i, name in enumerate(names)}


def layers_reading(kind, chosen):
    """Names of the layers that read split layers, with full width / own width of their inputs."""
    if kind == "lenet5":
        names, full = ("features.3", "fc1", "fc2", "fc3"), (6, 16, 120, 84)
    else:
        names, full = ("layers.4", "layers.7"), (9, 8)
    return [(n, f / len(own)) for n, f, own in zip(names, full, chosen, strict=True)]


@contextmanager
def inputs_scaled(module, factors):
    """The module with the inputs of some layers multiplied by factors."""
    hooks = [
        module.get_submodule(name).register_forward_pre_hook(
            lambda layer, inputs, factor=factor: (inputs[0] * factor,)
        )
        for name, factor in factors
    ]
    yield
    for hook in hooks:
        hook.remove()


def size_of_lenet(a, b, c, d):
    return 25 * a + a + 25 * a * b + b + 16 * b * c + c + c * d + d + 4 * d + 4


def size_of_fcnn(a, b):
    return 13 * a + a * b + b + 4 * b + 4


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("scale", ["none", "width"])
@pytest.mark.parametrize("padding", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["fcnn", "lenet5"])
def test_submodels_train_as_the_full_model_under_masks(config, toy, kind, padding, scale):
    """Updates equal those of the masked full model; tensors of a job have the submodel's size.

    With scale "width", the full model's activations are multiplied by full width / own width.
    """
    module, data = (lenet(), images((1, 28, 28))) if kind == "lenet5" else (model((9, 8)), toy)
    size = size_of_lenet if kind == "lenet5" else size_of_fcnn
    flags = {"capacities": (1.0, 0.5, 0.3), "padding": padding, "lr": LR, "submodel_scale": scale}
    setup = build(config("ra-fed", **flags), data=data, model=copy.deepcopy(module))
    training, spec, plan = setup.learner, setup.model.objective.spec, setup.planner.plan(0)
    start = spec.from_module(module)
    found, jobs = torch.zeros(6, spec.size), []
    real = training.local.executor.train

    def train(job):
        jobs.append(job)
        for chunk in real(job):
            assert chunk.payloads["update"].shape[1] == job.spec.size
            yield chunk

    training.local.executor.train = train
    received = []
    merge = type(training.server.rule).merge

    def watching(server, seen):
        received.append(seen)
        return merge(training.server.rule, server, seen)

    object.__setattr__(training.server.rule, "merge", watching)
    training.learn(plan, training.server.cloud)
    widths = [[len(own) for own in chosen] for chosen in plan.client_submodels.chosen]
    assert len({tuple(own) for own in widths}) == 3
    assert plan.client_submodels.lengths.tolist() == [size(*own) for own in widths]
    assert sum(len(job.clients) for job in jobs) == 6
    for job in jobs:
        own = [size(*widths[client]) for client in job.clients]
        assert job.servers["params"].shape == (len(own), job.spec.size)
        assert job.spec.size == max(own)
        if padding == 0:
            assert len(set(own)) == 1
    assert len(jobs) == (3 if padding == 0 else 1)
    if padding == 0:
        assert sorted({job.spec.size for job in jobs})[-1] == spec.size
        assert min(job.spec.size for job in jobs) < 0.3 * spec.size
    total, weight = torch.zeros(spec.size), torch.zeros(spec.size)
    for row, client in enumerate(plan.clients.tolist()):
        chosen = plan.client_submodels.chosen[row]
        kept = kept_of_lenet(*chosen) if kind == "lenet5" else kept_of_fcnn(spec, *chosen)
        mask = full_masks(spec, kept)
        assert int(mask.sum()) == plan.client_submodels.lengths[row]
        local = mask * start
        batches = training.local.executor.data.source.draw(np.array([client]), np.zeros(1, int), 3)
        for rows, share in zip(batches.index[0], batches.weight[0], strict=True):
            rows = rows[share > 0]
            leaf = local.clone().requires_grad_()
            with inputs_scaled(module, layers_reading(kind, chosen) if scale == "width" else ()):
                logits = functional_call(module, spec.views(leaf), (data.train_inputs[rows],))
            loss = F.cross_entropy(logits, data.train_labels[rows])
            local = local - LR * mask * torch.autograd.grad(loss, leaf)[0]
        found[row] = local - mask * start
        total += found[row]
        weight += mask
        # The submodel of this client alone has exactly the masked coordinates.
        alone = plan.client_submodels.of(np.array([row]))
        assert alone.spec.size == plan.client_submodels.lengths[row]
        assert torch.equal(alone.index[0].sort().values, torch.nonzero(mask).flatten())
    expected = torch.where(weight > 0, total / weight.clamp(min=1), 0.0)
    assert float(expected.abs().max()) > 1e-3
    assert torch.allclose(received[0].mean["update"][0], expected, atol=1e-6)


EXECUTIONS = [
    {"padding": 0.0},
    {"padding": 0.1},
    {"padding": 1.0},
    {"padding": 1.0, "chunk": 1},
    {"padding": 0.1, "chunk": 2, "executor": "vmap"},
    {"padding": 1.0, "chunk": 3, "executor": "vmap", "replay": "on"},
    {"padding": 0.0, "chunk": 5, "executor": "stacked"},
    {"padding": 1.0, "executor": "loop"},
]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "scale"), [("ra-fed", "none"), ("ram-fed", "none"), ("ra-fed", "width")]
)
def test_batches_chunks_and_executors_agree(config, toy, name, scale):
    """After two rounds, parameters agree to 1e-5; seconds and MiB are equal."""
    flags = {"clients": 10, "clients_per_round": 8, "capacities": (1.0, 0.7, 0.4, 0.2)}
    flags |= {"submodel_scale": scale, "rounds": 2}
    reference = wirelessfl.run(config(name, **flags), data=toy, model=model((9, 8)))
    assert reference.config.run.padding == 0.1
    for other in EXECUTIONS:
        result = wirelessfl.run(config(name, **flags, **other), data=toy, model=model((9, 8)))
        assert torch.allclose(flat(result), flat(reference), atol=1e-5), other
        for row, expected in zip(result.rows, reference.rows, strict=True):
            assert row["sim_seconds"] == expected["sim_seconds"]
            assert row["uplink_mib"] == expected["uplink_mib"]
            assert row["accuracy"] == pytest.approx(expected["accuracy"], abs=1e-3)


def test_processes_agree(config, toy):
    """Two worker processes give the same parameters and seconds as one process."""
    flags = {"capacities": (1.0, 0.5), "chunk": 2, "submodel_scale": "width"}
    one, two = (
        wirelessfl.run(config("ram-fed", workers=n, **flags), data=toy, model=model((9, 8)))
        for n in (1, 2)
    )
    assert torch.allclose(flat(one), flat(two), atol=1e-5)
    assert [row["sim_seconds"] for row in one.rows] == [row["sim_seconds"] for row in two.rows]


def test_padding_of_batches_is_within_the_limit(config, toy):
    """Each client is in one batch, and no batch's padded fraction exceeds the limit."""
    flags = {"clients": 80, "capacities": (1.0, 0.8, 0.7, 0.5, 0.3, 0.2, 0.1)}
    setup = build(config("ra-fed", **flags, split="iid"), data=toy, model=model((9, 8)))
    own, number = setup.planner.plan(0).client_submodels, {}
    for padding in (0.0, 0.1, 0.5, 1.0):
        batches = own.batches(padding, 32)
        number[padding] = len(batches)
        assert np.sort(np.concatenate(batches)).tolist() == list(range(80))
        for rows in batches:
            assert (np.diff(rows) > 0).all()
            held = own.of(rows)
            assert held.index.shape == (len(rows), held.spec.size)
            idle = float((held.index < 0).double().mean())
            assert idle <= padding + 1e-12
            assert len(rows) <= 32
            if padding == 0:
                assert len(np.unique(own.widths[rows], axis=0)) == 1
    assert number[0.0] == 6  # capacities 0.2 and 0.1 both keep one neuron of 9 and of 8
    assert number[1.0] == 3
    assert number[0.0] >= number[0.1] >= number[0.5] >= number[1.0]


def test_coverage_of_nodes_is_the_sum_over_client_masks(config, toy):
    """Weights and counts of a node are sums over its clients' masks; full weight is exactly 1."""
    flags = {"cells": 2, "local": "ra-fed", "capacities": (0.5, 0.2), "clients": 7}
    setup = build(config("hfedavg", **flags), data=toy, model=model((9, 8)))
    plan = setup.planner.plan(0)
    weights = np.array([0.1, 0.2, 0.7, 0.0, 0.5, 0.2, 0.3])
    node = np.array([0, 0, 0, 0, 1, 1, 1])
    weight, count = plan.client_submodels.cover(node, weights.tolist(), 2)
    masks = plan.client_submodels.covers(np.arange(7))
    for n in range(2):
        rows = np.flatnonzero((node == n) & (weights > 0))
        expected = sum(float(weights[row]) * masks[row].float() for row in rows)
        assert torch.allclose(weight[n], expected)
        assert torch.equal(count[n], masks[rows].int().sum(0))
        assert (weight[n][masks[rows].all(0)] == 1.0).all()
    assert float(count.min()) == 0


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", ["fcnn", "lenet5", "resnet18"])
def test_coverage_agrees_with_the_index_of_each_submodel(kind):
    """Coverage equals that from submodel indices, for pixels, kernels, norms and residual sums.

    A node without clients covers nothing; neither does a client of weight 0.
    """
    module, shape = {
        "fcnn": (model((9, 8)), (12,)),
        "lenet5": (lenet(), (1, 28, 28)),
        "resnet18": (ResNet18((3, 32, 32), 10, width=4), (3, 32, 32)),
    }[kind]
    spec = ParamSpec.of(module)
    neurons = find_neurons(module, spec, torch.zeros(2, *shape))
    levels = levels_of(neurons).widths
    counts = levels[np.linspace(0, len(levels) - 1, 6).astype(int)]
    deal = Dealing(number=1, clients=np.arange(6), round=Stream(1), run=Stream(2))
    own = ClientSubmodels(neurons, deal_masks("random", neurons.layers, counts, deal))
    covered = [set(index[index >= 0].tolist()) for index in own.of(np.arange(6)).index]
    masks = torch.tensor([[i in indices for i in range(spec.size)] for indices in covered])
    rows = np.array([4, 0, 3])
    assert torch.equal(own.covers(rows), masks[rows])
    node, shares = np.array([0, 0, 2, 2, 2, 0]), [0.25, 0.75, 0.5, 0.2, 0.3, 0.0]
    weight, count = own.cover(node, shares, 3)
    for n, members in enumerate(([0, 1], [], [2, 3, 4])):
        assert torch.equal(count[n], masks[members].sum(0).int())
        expected = sum((shares[c] * masks[c].double() for c in members), torch.zeros(spec.size))
        assert torch.allclose(weight[n].double(), expected.double(), rtol=1e-7, atol=0)
        assert ((weight[n] == 1) == ((count[n] == len(members)) & (len(members) > 0))).all()
        assert ((weight[n] == 0) == (count[n] == 0)).all()


def test_models_with_group_norms_train_in_batches_of_equal_widths(config):
    """Padding channels would change group norms, so requesting padding is an error."""
    data = images((3, 32, 32), samples=30, classes=10)

    def resnet():
        torch.manual_seed(1)
        return ResNet18((3, 32, 32), 10, width=4)

    flags = {"clients": 4, "capacities": (1.0, 0.5), "local_steps": 1, "lr": 0.01}
    flags |= {"rounds": 1, "split": "iid", "executor": "vmap"}
    settings = config("ra-fed", padding=0.1, **flags)
    with pytest.raises(ConfigError) as caught:
        build(settings, data=data, model=resnet())
    message = str(caught.value)
    assert message.startswith("padding is 0.1: idle neurons change the gradient of a submodel")
    assert message.endswith("Choose 0.")
    assert "\n" not in message
    setup = build(config("ra-fed", **flags), data=data, model=resnet())
    assert setup.config.run.padding == 0.0
    training, plan = setup.learner, setup.planner.plan(0)
    sent = {"params": training.server.cloud["params"][None]}
    jobs = list(job_groups(plan, sent, training.local.padding, 4))
    assert len(jobs) == 2
    for job in jobs:
        assert (job.submodels.index >= 0).all()
    training.learn(plan, training.server.cloud)
    # The narrow submodel is a ResNet of half the width.
    small = min(jobs, key=lambda job: job.submodels.spec.size).submodels
    assert (
        small.spec.shapes
        == setup.model.objective.spec.of(ResNet18((3, 32, 32), 10, width=2)).shapes
    )


def test_a_submodel_equals_a_narrow_model(config, toy):
    """A submodel of the first neurons has the logits of a narrow network with their parameters."""
    module = model((8, 4))
    setup = build(config("heterofl", capacities=(0.5,)), data=toy, model=module)
    own, objective = setup.planner.plan(0).client_submodels.of(np.array([0])), setup.model.objective
    small = FCNN((12,), 4, hidden=(4, 2))
    assert own.spec.shapes == objective.spec.of(small).shapes
    values = own.gather(objective.spec.from_module(module))[0]
    small.load_state_dict(dict(own.spec.views(values)))
    x = toy.test_inputs[:9]
    logits = functional_call(module, own.spec.views(values), (x,))
    assert torch.allclose(small(x), logits, atol=1e-6)
    layers = list(module.parameters())
    hidden = torch.relu(x @ layers[0][:4].T + layers[1][:4])
    hidden = torch.relu(hidden @ layers[2][:2, :4].T + layers[3][:2])
    assert torch.allclose(logits, hidden @ layers[4][:, :2].T + layers[5], atol=1e-6)
