"""Neurons are found by tracing, and models without some of them compute the right function."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from tests.wirelessfl.models.submodels.modules import CLASSES, Flattening, Layered, chain
from wirelessfl.models import (
    FCNN,
    MLP,
    CifarCNN,
    FedASTCNN,
    LeNet5,
    ResNet18,
    StreamDropout,
)
from wirelessfl.models.submodels import ParamSpec, Slot, find_neurons
from wirelessfl.models.submodels.budgets import submodel_costs


def found(module, *shape, batch=3):
    return find_neurons(module, ParamSpec.of(module), torch.randn(batch, *shape))


def weights(module):
    return {name: value.detach() for name, value in module.named_parameters()}


def entries(neurons, slot):
    """Indices of the given neurons on the slot's axis."""
    return (neurons[:, None] * slot.repeat + torch.arange(slot.repeat)).flatten()


def some(layer, share=0.5, seed=0):
    """Random neurons of ``layer``, sorted, with the same number in each block."""
    torch.manual_seed(seed)
    size = layer.width // layer.blocks
    each = max(1, int(size * share))
    return torch.cat(
        [size * block + torch.randperm(size)[:each].sort()[0] for block in range(layer.blocks)]
    )


def extracted(found, tensors, kept):
    small = dict(tensors)
    for layer, neurons in zip(found.layers, kept, strict=True):
        for slot in layer.slots:
            small[slot.parameter] = small[slot.parameter].index_select(
                slot.axis, entries(neurons, slot)
            )
    return small


def silenced(found, tensors, kept):
    masked = {name: value.clone() for name, value in tensors.items()}
    for layer, neurons in zip(found.layers, kept, strict=True):
        lost = torch.tensor([i for i in range(layer.width) if i not in neurons.tolist()])
        for slot in layer.slots:
            if len(lost):
                masked[slot.parameter].index_fill_(slot.axis, entries(lost, slot), 0.0)
    return masked


def check_omitted_neurons(module, *shape):
    """Assert that omitting neurons gives the logits of the full model with their weights zero."""
    torch.manual_seed(1)
    for parameter in module.parameters():  # initial ones and zeros of norms would hide errors
        nn.init.normal_(parameter, std=0.3)
    neurons = found(module, *shape)
    x = torch.randn(5, *shape)
    full = weights(module)
    for share in (0.3, 0.6):
        kept = [some(layer, share, seed) for seed, layer in enumerate(neurons.layers)]
        small = extracted(neurons, full, kept)
        widths = [len(own) for own in kept]
        assert {name: tuple(t.shape) for name, t in small.items()} == neurons.shapes(widths)
        assert neurons.parameters(widths) == sum(t.numel() for t in small.values())
        with torch.no_grad():
            one = functional_call(module, small, (x,))
            two = functional_call(module, silenced(neurons, full, kept), (x,))
            whole = functional_call(module, full, (x,))
        scale = whole.abs().max()
        assert torch.allclose(one / scale, two / scale, atol=1e-5)
        assert not torch.allclose(whole / scale, one / scale, atol=1e-3)
    return neurons


CONVOLUTIONAL = {
    "lenet5": (LeNet5, (1, 28, 28), ["features.0", "features.3", "fc1", "fc2"]),
    "cifar-cnn": (CifarCNN, (3, 32, 32), ["features.0", "features.3", "features.6", "fc1"]),
    "fedast-cnn": (FedASTCNN, (3, 32, 32), ["features.0", "features.3", "fc1", "fc2"]),
}


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_channels_and_neurons_of_convolutional_networks(name):
    make, shape, layers = CONVOLUTIONAL[name]
    module = make(shape, CLASSES, dropout=0.5).eval()
    neurons = check_omitted_neurons(module, *shape)
    assert [layer.name for layer in neurons.layers] == layers
    modules = dict(module.named_modules())
    assert list(neurons.widths) == [len(modules[layer].weight) for layer in layers]
    # Every axis except those of inputs and logits is sliced once.
    sliced = {(s.parameter, s.axis) for layer in neurons.layers for s in layer.slots}
    axes = {(n, a) for n, shape in neurons.spec.shapes.items() for a in range(min(len(shape), 2))}
    last = "fc2" if name == "cifar-cnn" else "fc3"
    assert axes - sliced == {("features.0.weight", 1), (f"{last}.weight", 0), (f"{last}.bias", 0)}
    assert len(sliced) == sum(len(layer.slots) for layer in neurons.layers)


@pytest.mark.parametrize("hidden", [(6,), (7, 5), (9, 3, 8)])
def test_neurons_of_fully_connected_networks(hidden):
    module = FCNN((2, 3), CLASSES, hidden=hidden, dropout=0.2).eval()
    neurons = check_omitted_neurons(module, 2, 3)
    assert neurons.widths == hidden
    assert [layer.name for layer in neurons.layers] == list(module.fully_connected[:-1])


def test_sizes_are_those_of_a_smaller_model():
    for make, shape, widths in (
        (lambda widths: FCNN((7,), CLASSES, hidden=widths), (7,), [(2, 5), (4, 1), (6, 6)]),
        (lambda widths: MLP((7,), CLASSES, hidden=widths), (7,), [(2, 5), (4, 1), (6, 6)]),
    ):
        neurons = found(make((6, 6)), *shape)
        for own in widths:
            small = make(own)
            assert neurons.parameters(own) == sum(p.numel() for p in small.parameters())
            assert neurons.shapes(own) == ParamSpec.of(small).shapes
            linear = sum(p.numel() for p in small.parameters() if p.ndim > 1)
            assert submodel_costs(neurons, np.array([own]))[1].tolist() == [linear]


@pytest.mark.parametrize("make", [LeNet5, ResNet18])
def test_multiplications_are_those_of_the_layers(make):
    """The number equals a count by hooks: output pixels times the weight's elements."""
    shape = (1, 28, 28) if make is LeNet5 else (3, 32, 32)
    module = LeNet5(shape, CLASSES) if make is LeNet5 else ResNet18(shape, CLASSES, width=8)
    neurons = found(module, *shape)
    counted = []

    def count(layer, _, out):
        counted.append(layer.weight.numel() * math.prod(out.shape[2:]))

    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    for share in (1.0, 0.5):
        kept = [some(layer, share) for layer in neurons.layers]
        counted.clear()
        small = extracted(neurons, weights(module), kept)
        functional_call(module, small, (torch.randn(2, *shape),))
        widths = np.array([[len(own) for own in kept]])
        assert submodel_costs(neurons, widths)[1].tolist() == [sum(counted)]


def test_channels_of_a_residual_network():
    """Channels of a stage are omitted together; batch norms keep an omitted channel zero."""
    module = ResNet18((3, 32, 32), CLASSES, norm="batch", width=4)
    neurons = check_omitted_neurons(module, 3, 32, 32)
    stages = ["conv", "blocks.2.conv2", "blocks.4.conv2", "blocks.6.conv2"]
    inner = [f"blocks.{i}.conv1" for i in range(8)]
    assert sorted(layer.name for layer in neurons.layers) == sorted(stages + inner)
    order = [name for name in neurons.spec.shapes if name.endswith("weight")]
    firsts = [order.index(f"{layer.name}.weight") for layer in neurons.layers]
    assert firsts == sorted(firsts)
    assert all(layer.blocks == 1 for layer in neurons.layers)


def test_a_submodel_of_a_residual_network_is_one_of_smaller_width():
    """Outputs equal those of a ResNet18 that is built with the smaller width."""
    torch.manual_seed(0)
    large = ResNet18((3, 32, 32), CLASSES, width=8)
    for parameter in large.parameters():
        nn.init.normal_(parameter, std=0.3)
    neurons = found(large, 3, 32, 32)
    assert all(layer.blocks == 2 for layer in neurons.layers)
    x = torch.randn(4, 3, 32, 32)
    for share, width in ((0.5, 4), (0.25, 2)):
        kept = [some(layer, share, seed) for seed, layer in enumerate(neurons.layers)]
        narrow = extracted(neurons, weights(large), kept)
        small = ResNet18((3, 32, 32), CLASSES, width=width)
        small.load_state_dict(narrow)
        assert torch.equal(small(x), functional_call(large, narrow, (x,)))
        widths = [len(own) for own in kept]
        assert neurons.parameters(widths) == sum(p.numel() for p in small.parameters())


class Grouped(nn.Module):
    def __init__(self, one=2, two=3, width=12):
        super().__init__()
        self.conv = nn.Conv2d(1, width, 3)
        self.one, self.two = nn.GroupNorm(one, width), nn.GroupNorm(two, width)
        self.fc = nn.Linear(width * 4, CLASSES)

    def forward(self, x):
        return self.fc(self.two(self.one(self.conv(x))).flatten(1))


def test_blocks_preserve_the_groups_of_norms():
    """In a submodel, each group of a norm contains its kept channels only."""
    torch.manual_seed(0)
    module = Grouped()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    neurons = found(module, 1, 4, 4)
    (layer,) = neurons.layers
    assert layer.blocks == 6
    x = torch.randn(5, 1, 4, 4)
    kept = some(layer)
    y = module.conv(x)
    for norm in (module.one, module.two):
        out = torch.zeros_like(y)
        for group in torch.arange(12).chunk(norm.num_groups):
            own = torch.tensor([c for c in group.tolist() if c in kept.tolist()])
            part = y[:, own]
            mean = part.mean((1, 2, 3), keepdim=True)
            part = (part - mean) / (part.var((1, 2, 3), keepdim=True, correction=0) + 1e-5).sqrt()
            out[:, own] = part * norm.weight[own, None, None] + norm.bias[own, None, None]
        y = out
    small = extracted(neurons, weights(module), [kept])
    assert torch.allclose(functional_call(module, small, (x,)), module.fc(y.flatten(1)), atol=1e-5)


@pytest.mark.parametrize(
    "flatten",
    [
        lambda x: torch.flatten(x, 1),
        lambda x: x.flatten(1),
        lambda x: x.flatten(start_dim=1),
        lambda x: x.view(x.size(0), -1),
        lambda x: torch.reshape(x, (x.shape[0], -1)),
        lambda x: x.flatten(2).unsqueeze(3).squeeze(-1).flatten(1),
    ],
)
def test_neurons_are_tracked_through_any_flattening(flatten):
    neurons = check_omitted_neurons(Flattening(flatten), 1, 6, 6)
    conv, fc = neurons.layers
    assert conv.slots == (Slot("conv.weight", 0), Slot("fc1.weight", 1, 4))
    assert fc.slots == (Slot("fc1.weight", 0), Slot("fc1.bias", 0), Slot("fc2.weight", 1))
    assert neurons.uses == {"conv.weight": 16, "fc1.weight": 1, "fc2.weight": 1}


def gated(self, x):
    x = self.conv(x).relu_()
    b, c, _, _ = x.shape
    gate = self.up(torch.relu(self.down(F.adaptive_avg_pool2d(x, 1).view(b, -1))))
    return self.fc((x * torch.sigmoid(gate).view(b, c, 1, 1)).mean((-1, -2)))


CONV = {"conv": nn.Conv2d(1, 6, 3)}
SUPPORTED = {
    "gate": (
        Layered(gated, **CONV, down=nn.Linear(6, 3), up=nn.Linear(3, 6), fc=nn.Linear(6, CLASSES)),
        [("conv", 6), ("down", 3)],
    ),
    "flattened norm": (
        chain(
            conv=nn.Conv2d(1, 6, 3),
            flat=nn.Flatten(),
            norm=nn.BatchNorm1d(96, track_running_stats=False),
            fc=nn.Linear(96, CLASSES),
        ),
        [("conv", 6)],
    ),
    "softmax of logits": (
        chain(
            flat=nn.Flatten(),
            fc1=nn.Linear(36, 5),
            act=nn.LeakyReLU(inplace=True),
            fc2=nn.Linear(5, CLASSES),
            softmax=nn.LogSoftmax(-1),
        ),
        [("fc1", 5)],
    ),
    "one scale for all": (
        Layered(
            lambda m, x: m.fc2(m.fc1(x.flatten(1)) * m.scale),
            fc1=nn.Linear(36, 5),
            fc2=nn.Linear(5, CLASSES),
            scale=nn.Parameter(torch.ones(1)),
        ),
        [("fc1", 5)],
    ),
    "scaled logits": (
        Layered(
            lambda m, x: m.fc2(torch.tanh(m.fc1(x.flatten(1)))) * m.scale,
            fc1=nn.Linear(36, 5),
            fc2=nn.Linear(5, CLASSES),
            scale=nn.Parameter(torch.ones(CLASSES)),
        ),
        [("fc1", 5)],
    ),
}


@pytest.mark.parametrize("name", SUPPORTED)
def test_neurons_of_custom_models(name):
    module, layers = SUPPORTED[name]
    neurons = check_omitted_neurons(module, 1, 6, 6)
    assert [(layer.name, layer.width) for layer in neurons.layers] == layers


def test_neurons_summed_with_the_inputs_are_all_kept():
    def forward(self, x):
        return self.fc2(self.hidden(torch.add(x, self.same(x)).relu()).relu())

    layers = {"same": nn.Linear(6, 6), "hidden": nn.Linear(6, 5), "fc2": nn.Linear(5, CLASSES)}
    neurons = check_omitted_neurons(Layered(forward, **layers), 6)
    assert [layer.name for layer in neurons.layers] == ["hidden"]


def test_channels_are_all_kept_if_each_is_a_group_of_a_norm():
    module = chain(
        **CONV,
        norm=nn.GroupNorm(6, 6),
        two=nn.Conv2d(6, 5, 1),
        flat=nn.Flatten(),
        fc=nn.Linear(80, CLASSES),
    )
    assert [layer.name for layer in found(module, 1, 6, 6).layers] == ["two"]


class Restless(nn.Module):
    """A module with side effects: it draws numbers, counts calls, and changes its input."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(5, 6), nn.Linear(6, CLASSES)
        self.drop, self.stream = nn.Dropout(0.5), StreamDropout(0.5)
        self.norm = nn.BatchNorm1d(5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        self.seen = x.mul_(2.0)
        x = self.norm(x) + torch.rand(5)
        x = self.stream(self.drop(torch.relu(self.fc1(x))))
        return self.fc2(F.dropout(x, 0.5, self.training) if self.training else x)


def test_finding_neurons_changes_neither_the_model_nor_the_sample():
    module = Restless()
    module.drop.eval()
    state = {name: value.clone() for name, value in module.state_dict().items()}
    flags = [layer.training for layer in module.modules()]
    sample = torch.randn(3, 5)
    before, drawn = sample.clone(), torch.random.get_rng_state()
    first = find_neurons(module, ParamSpec.of(module), sample)
    assert torch.equal(torch.random.get_rng_state(), drawn)
    assert torch.equal(sample, before)
    assert not hasattr(module, "seen")
    assert [layer.training for layer in module.modules()] == flags
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in module.parameters())
    again = find_neurons(module.eval(), ParamSpec.of(module), sample)
    assert (first.layers, first.uses) == (again.layers, again.uses)
    assert [layer.name for layer in first.layers] == ["fc1"]


class Meeting(nn.Module):
    """A model that lets another thread use a second one during its forward pass."""

    other, seen = nn.Linear(4, 2), []

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 5), nn.Linear(5, 3)

    def forward(self, x):
        def use():
            return self.other(torch.ones(4)), torch.backends.mha.get_fastpath_enabled()

        with ThreadPoolExecutor(1) as thread:
            self.seen.append(thread.submit(use).result())
        return self.last(self.first(x).relu())


def test_models_of_other_threads_run_while_one_is_traced():
    expected = Meeting.other(torch.ones(4))
    assert [layer.width for layer in found(Meeting(), 4).layers] == [5]
    assert len(Meeting.seen) == 1
    output, fast = Meeting.seen[0]
    assert torch.equal(output, expected)
    assert fast
