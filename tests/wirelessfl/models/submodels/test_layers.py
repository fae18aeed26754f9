"""Submodels of some layers: the rest of the model may contain any layers and stays whole."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels import ParamSpec, extract_neurons, find_neurons, levels_of
from wirelessfl.runs.build import build

CLASSES = 4


class Block(nn.Module):
    """A transformer block, written out."""

    def __init__(self, size, wide):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = nn.MultiheadAttention(size, 2, batch_first=True)
        self.ff1, self.ff2 = nn.Linear(size, wide), nn.Linear(wide, size)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.ff2(F.gelu(self.ff1(self.norm2(x))))


class Tokens(nn.Module):
    """Samples of 12 values as 3 tokens of 4, and the mean over the tokens."""

    def __init__(self, *blocks, size=4):
        super().__init__()
        self.blocks = nn.Sequential(*blocks)
        self.place = nn.Parameter(torch.randn(3, size))
        self.head = nn.Linear(size, CLASSES)

    def forward(self, x):
        return self.head(self.blocks(x.view(-1, 3, 4) + self.place).mean(1))


def encoder():
    layer = nn.TransformerEncoderLayer(4, 2, 10, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


class UNet(nn.Module):
    """Samples of 12 values as images of 2 x 6, and a skip connection around the inner layers."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 4, 3, padding=1)
        self.inner1, self.inner2 = nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(6, 4, 3, padding=1)
        self.norm = nn.GroupNorm(2, 6)
        self.up = nn.Upsample(scale_factor=2)
        self.last = nn.Conv2d(8, CLASSES, 1)

    def forward(self, x):
        skip = self.down(x.view(-1, 1, 2, 6)).relu()
        inner = self.norm(self.inner1(F.max_pool2d(skip, 2))).relu()
        joined = torch.cat([self.up(self.inner2(inner).relu()), skip], 1)
        return self.last(joined).mean((2, 3))


MODELS = {
    "written out": (
        lambda: Tokens(Block(4, 10), Block(4, 6)),
        {"blocks.0.ff1": 10, "blocks.1.ff1": 6},
        ("blocks.0.ff1.weight", "blocks.0.ff1.bias"),
        ("blocks.0.ff2.weight",),
    ),
    "of torch": (
        lambda: Tokens(encoder()),
        {"blocks.0.layers.0.linear1": 10, "blocks.0.layers.1.linear1": 10},
        ("blocks.0.layers.0.linear1.weight", "blocks.0.layers.0.linear1.bias"),
        ("blocks.0.layers.0.linear2.weight",),
    ),
    "U-Net": (
        UNet,
        {"inner1": 6},
        ("inner1.weight", "inner1.bias", "norm.weight", "norm.bias"),
        ("inner2.weight",),
    ),
}


def made(name):
    torch.manual_seed(2)
    return MODELS[name][0]()


def found(module, layers):
    return find_neurons(module, ParamSpec.of(module), torch.randn(3, 12), layers)


def gradients(module, params, x):
    """Gradients of a function of the logits, by name, and the logits."""
    leaves = {name: value.clone().requires_grad_() for name, value in params.items()}
    logits = functional_call(module, leaves, (x,))
    each = torch.autograd.grad(logits.square().sum(), list(leaves.values()))
    return dict(zip(leaves, each, strict=True)), logits


@pytest.mark.parametrize("name", ["written out", "of torch"])
def test_a_submodel_is_the_full_model_without_the_omitted_neurons(name):
    """Logits and gradients equal those of the full model with zero weights for removed neurons."""
    _, widths, rows, columns = MODELS[name]
    module, x = made(name).eval(), torch.randn(5, 12)
    neurons = found(module, list(widths))
    assert dict(zip(widths, neurons.widths, strict=True)) == widths
    first, *others = neurons.widths
    kept = np.array([0, 2, 3, 5])
    chosen = [[kept, *(np.arange(width) for width in others)]]
    small = extract_neurons(neurons.spec, neurons.layers, chosen)
    flat = neurons.spec.from_module(module)
    masked, mask = dict(neurons.spec.views(flat.clone())), torch.zeros(first, dtype=torch.bool)
    mask[kept] = True
    for parameter in rows:
        masked[parameter][~mask] = 0.0
    for parameter in columns:
        masked[parameter][:, ~mask] = 0.0
    mine, logits = gradients(module, small.spec.views(small.gather(flat)[0]), x)
    full, expected = gradients(module, masked, x)
    assert torch.allclose(logits, expected, atol=1e-6)
    for parameter, value in full.items():
        if parameter in rows:
            value = value[kept]
        elif parameter in columns:
            value = value[:, kept]
        assert mine[parameter].shape == value.shape
        assert torch.allclose(mine[parameter], value, atol=1e-5), parameter
    size = sum(value.numel() for value in mine.values())
    assert size == small.lengths[0] == neurons.parameters([4, *others]) < len(flat)


def test_inner_channels_of_a_u_net():
    """A group norm over the kept channels of each group, computed by hand; skips stay whole."""
    module, x = made("U-Net"), torch.randn(5, 12)
    (layer,) = found(module, ["inner1"]).layers
    assert (layer.width, layer.blocks) == (6, 2)
    neurons = found(module, ["inner1"])
    kept = np.array([0, 2, 4, 5])
    small = extract_neurons(neurons.spec, neurons.layers, [[kept]])
    params = small.spec.views(small.gather(neurons.spec.from_module(module))[0])
    module.norm, module.inner1, module.inner2, whole = (
        nn.GroupNorm(2, 4),
        nn.Conv2d(4, 4, 3, padding=1),
        nn.Conv2d(4, 4, 3, padding=1),
        module.state_dict(),
    )
    with torch.no_grad():
        for name, value in module.named_parameters():
            rows = name.startswith(("norm", "inner1"))
            value.copy_(
                whole[name][kept]
                if rows
                else whole[name][:, kept]
                if "inner2.w" in name
                else whole[name]
            )
        assert torch.equal(functional_call(module, params, (x,)), module(x))


@pytest.mark.parametrize("name", MODELS)
def test_the_refusal_of_a_whole_model_names_the_layers(name):
    """All of them can be narrowed, alone and together."""
    module, layers = made(name), list(MODELS[name][1])
    with pytest.raises(ConfigError, match=r"cannot be narrowed as a whole: .* because") as refused:
        found(module, None)
    assert str(refused.value).endswith(f"Choose layers from {', '.join(layers)}.")
    for some in (*([layer] for layer in layers), layers[::-1]):
        assert {layer.name for layer in found(module, some).layers} == set(some)


def test_neurons_along_the_last_axis_reach_a_mean_over_tokens():
    """A model of tokens without attention is narrowed as a whole."""

    class PerToken(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.head = nn.Linear(4, 6), nn.Linear(6, 5), nn.Linear(5, 4)

        def forward(self, x):
            x = torch.relu(self.one(x.view(-1, 3, 4)))
            return self.head(torch.relu(self.two(x)).sum(1))

    neurons = found(PerToken(), None)
    assert [(layer.name, layer.width) for layer in neurons.layers] == [("one", 6), ("two", 5)]
    assert neurons.uses == {"one.weight": 3, "two.weight": 3, "head.weight": 1}


class Doubtful(nn.Module):
    """A part with control flow, which cannot be traced."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x) if x.sum() > 0 else -self.fc(x)


def test_a_part_that_cannot_be_traced_stays_whole():
    module = nn.Sequential(
        nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 4), Doubtful(), nn.Linear(4, 5), nn.Linear(5, 4)
    )
    with pytest.raises(ConfigError, match=r"'3' cannot be traced .* Choose layers from 0, 4\."):
        found(module, None)
    assert [layer.name for layer in found(module, ["4", "0"]).layers] == ["0", "4"]
    with pytest.raises(ConfigError, match=r"'2' .*because '3' cannot be traced"):
        found(module, ["2"])
    with pytest.raises(ConfigError, match=r"'3\.fc' .* is a part of '3', which cannot be traced"):
        found(module, ["3.fc"])


REFUSED = {
    "ff1": r"does not exist\. Do you mean 'blocks\.0\.ff1'",
    "blocks.0.ff": r"does not exist\. Do you mean 'blocks\.0\.ff1'",
    "blocks.0.norm1": "is of type LayerNorm: only linear layers",
    "blocks.0.attention": "is of type MultiheadAttention",
    "blocks.1.ff2": "cannot be narrowed, because 'place' would have to be sliced|is of type",
    "head": "must be kept whole, because its neurons are outputs",
    "": "does not exist",
}


@pytest.mark.parametrize("layer", REFUSED)
def test_layers_that_cannot_be_narrowed(layer):
    with pytest.raises(ConfigError, match=REFUSED[layer]) as refused:
        found(made("written out"), ["blocks.0.ff1", layer])
    assert str(refused.value).startswith(f"layers: {layer!r} of model Tokens ")
    assert str(refused.value).endswith("Choose from blocks.0.ff1, blocks.1.ff1.")


def test_a_layer_is_named_once():
    with pytest.raises(ConfigError, match=r"names .* twice"):
        found(made("written out"), ["blocks.0.ff1", "blocks.0.ff1"])
    with pytest.raises(ConfigError, match=r"layers is empty: name at least one\. Choose from"):
        found(made("written out"), [])


def run(config, toy, algorithm, name="written out", **flags):
    layers = ",".join(MODELS[name][1])
    made_config = config(algorithm, layers=layers, rounds=2, **flags)
    return wirelessfl.run(made_config, data=toy, model=made(name))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("algorithm", ["heterofl", "ra-fed", "ram-fed", "fedrolex"])
def test_full_capacity_is_fedavg_to_the_bit(config, toy, algorithm):
    result = run(config, toy, algorithm, capacities=(1.0,))
    whole = wirelessfl.run(config("fedavg", rounds=2), data=toy, model=made("written out"))
    for name, value in whole.params.items():
        if algorithm == "ram-fed":  # its mean is updated by differences, which round
            assert torch.allclose(result.params[name], value, atol=1e-6)
        else:
            assert torch.equal(result.params[name], value)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("written out", {"masks": "covered", "min_coverage": 3}),
        ("of torch", {"budget": "bytes", "capacities": (1.0, 0.9)}),
        ("U-Net", {"budget": "flops", "capacities": (1.0, 0.9)}),
    ],
)
def test_runs_with_submodels_of_some_layers(config, toy, name, flags):
    """Costs count the extracted submodel; parameters that no client trains do not change."""
    flags = {"capacities": (1.0, 0.5), **flags}
    layers = ",".join(MODELS[name][1])
    setup = build(config("ra-fed", layers=layers, **flags), data=toy, model=made(name))
    plan = setup.planner.plan(0)
    each, spec = plan.client_submodels, setup.planner.model.spec
    assert sorted(set(each.lengths.tolist()))[-1] == spec.size
    narrow = int(each.lengths.min())
    assert narrow == each.covers(np.array([each.lengths.argmin()])).sum() < spec.size
    before = setup.learner.server.cloud["params"].clone()
    setup.learner.learn(plan, setup.learner.server.cloud)
    moved = spec.views(setup.learner.server.cloud["params"] - before)
    assert all(moved[parameter].abs().max() > 0 for parameter in MODELS[name][2])


def test_narrow_layers_count_in_all_costs(config, toy):
    """Bytes and cycles of a client: the whole rest, and its share of the named layers."""
    made_config = config("heterofl", layers="blocks.0.ff1", capacities=(0.5,))
    setup = build(made_config, data=toy, model=made("written out"))
    plan, spec = setup.planner.plan(0), setup.planner.model.spec
    per_neuron = 4 + 1 + 4  # weights and bias of ff1, and a column of ff2
    assert set(plan.client_submodels.lengths.tolist()) == {spec.size - 5 * per_neuron}
    load = plan.price.served.load
    share = (spec.size - 5 * per_neuron) / spec.size
    np.testing.assert_allclose(load.cycles, 3 * 1e6 * share, rtol=1e-12)
    assert len(levels_of(setup.planner.model.neurons()).parameters) == 10
