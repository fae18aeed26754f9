"""Partitions are disjoint and complete; extraction, masking and merging agree."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.models import FCNN, LeNet5, LinearClassifier
from wirelessfl.models.submodels import (
    Dealing,
    ParamSpec,
    Submodels,
    deal_masks,
    extract,
    find_neurons,
    make_partition,
)
from wirelessfl.models.submodels.partition import even_sizes
from wirelessfl.training.objective import Objective
from wirelessfl.training.trial import check_partition


def dealt(partition, sizes, seed=0):
    counts = np.repeat(np.array(sizes)[:, None], len(partition.layers), 1)
    dealing = Dealing(0, np.arange(len(sizes)), Stream(seed), Stream(seed))
    return deal_masks("partition", partition.layers, counts, dealing)


def network(hidden, scheme="alternate", inputs=7, classes=3):
    module = FCNN((inputs,), classes, hidden=hidden)
    spec = ParamSpec.of(module)
    return module, spec, make_partition(module, spec, scheme)


@st.composite
def splits(draw):
    hidden = draw(st.lists(st.integers(2, 12), min_size=1, max_size=4))
    scheme = draw(st.sampled_from(["alternate", "all"]))
    _, spec, partition = network(hidden, scheme)
    cuts = sorted(draw(st.lists(st.integers(0, partition.width), max_size=3)))
    sizes = np.diff([0, *cuts, partition.width]).tolist()
    return spec, partition, sizes, draw(st.integers(0, 9))


@given(splits())
def test_partition_masks_are_disjoint_and_complete(case):
    """In every partitioned layer, masks are disjoint and their union is all neurons, (3)."""
    _, partition, sizes, seed = case
    cells = dealt(partition, sizes, seed)
    for i, layer in enumerate(partition.layers):
        together = np.concatenate([cell[i] for cell in cells])
        assert sorted(together.tolist()) == list(range(layer.width))
        if layer.width == partition.width:
            assert [len(cell[i]) for cell in cells] == sizes


@given(splits())
def test_coverage_of_parameters(case):
    """Submodels all have the shared parameters; each partitioned one is in one submodel.

    With ``all``, a partitioned parameter is in at most one.
    """
    spec, partition, sizes, seed = case
    submodels = extract(partition, dealt(partition, sizes, seed))
    index = submodels.index
    covered = np.bincount(index[index >= 0].numpy(), minlength=spec.size)
    assert (submodels.lengths == [(row >= 0).sum() for row in index]).all()
    owned = np.zeros(spec.size, dtype=bool)
    views = spec.views(torch.arange(spec.size))
    for layer in partition.layers:
        number = int(layer.name.removeprefix("layers."))
        for name in (f"{layer.name}.weight", f"{layer.name}.bias", f"layers.{number + 3}.weight"):
            owned[views[name].reshape(-1).numpy()] = True
    assert (covered[~owned] == len(sizes)).all()
    if partition.scheme == "alternate":
        assert (covered[owned] == 1).all()
        assert owned.sum() + partition.lengths(0) == spec.size
        widths = [layer.width for layer in partition.layers]
        if len(set(widths)) == 1:
            assert np.allclose(submodels.lengths, partition.lengths(sizes))
    else:
        assert (covered[owned] <= 1).all()


@given(splits())
def test_merging_gathered_submodels_restores_the_model(case):
    spec, partition, sizes, seed = case
    submodels = extract(partition, dealt(partition, sizes, seed))
    full = torch.from_numpy(Stream(seed).generator().standard_normal(spec.size)).float()
    parts = submodels.gather(full)
    assert (parts[submodels.index < 0] == 0).all()
    assert torch.allclose(submodels.merge(full, parts, [1.0] * len(sizes)), full, atol=1e-6)
    assert torch.equal(Submodels.whole(spec, 1).merge(full, full[None], [1.0]), full)


@given(splits(), st.lists(st.integers(1, 5), min_size=4, max_size=4))
def test_merge_is_the_weighted_mean_over_covering_nodes(case, weights):
    """Each coordinate is the weighted mean over nodes that cover it, computed separately."""
    spec, partition, sizes, seed = case
    submodels = extract(partition, dealt(partition, sizes, seed))
    random = Stream(seed).generator(1)
    full = torch.from_numpy(random.standard_normal(spec.size)).float()
    parts = torch.from_numpy(random.standard_normal(submodels.index.shape)).float()
    merged = submodels.merge(full, parts, weights[: len(sizes)])
    given_to: dict[int, list[tuple[int, float]]] = {}
    for node, row in enumerate(submodels.index.tolist()):
        for column, position in enumerate(row):
            if position >= 0:
                value = float(parts[node, column])
                given_to.setdefault(position, []).append((weights[node], value))
    for position in range(spec.size):
        contributions = given_to.get(position)
        expected = float(full[position])
        if contributions:
            expected = sum(w * v for w, v in contributions) / sum(w for w, _ in contributions)
        assert float(merged[position]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("scheme", ["alternate", "all"])
@pytest.mark.parametrize("model", ["fcnn", "deep", "lenet5"])
def test_extracted_and_masked_training_give_the_same_iterates(model, scheme):
    """After ten SGD steps (5), a cell's extracted submodel equals the masked full model."""
    torch.manual_seed(0)
    shape = (1, 28, 28) if model == "lenet5" else (9,)
    module = {
        "fcnn": lambda: FCNN(shape, 4, hidden=(11,)),
        "deep": lambda: FCNN(shape, 4, hidden=(12, 10, 8)),
        "lenet5": lambda: LeNet5(shape, 4),
    }[model]()
    objective = Objective.of(module)
    partition = make_partition(module, objective.spec, scheme)
    submodels = extract(partition, dealt(partition, even_sizes(partition.width, 3)))
    start = objective.spec.from_module(module)
    x, y = torch.randn(10, 6, *shape), torch.randint(0, 4, (10, 6))
    for cell in range(3):
        index = submodels.index[cell]
        mask = torch.zeros(objective.spec.size)
        mask[index[index >= 0]] = 1.0
        masked, small = start * mask, submodels.gather(start)[cell]
        assert small.numel() < objective.spec.size
        for step in range(10):
            for spec, name in ((objective.spec, "masked"), (submodels.spec, "small")):
                leaf = (masked if name == "masked" else small).clone().requires_grad_()
                logits = functional_call(module, spec.views(leaf), (x[step],))
                gradient = torch.autograd.grad(F.cross_entropy(logits, y[step]), leaf)[0]
                if name == "masked":
                    masked = (leaf - 0.1 * mask * gradient).detach()
                else:
                    small = (leaf - 0.1 * gradient).detach()
        assert torch.allclose(small[index >= 0], masked[index[index >= 0]], atol=1e-5)
        assert (small[index < 0] == 0).all()
        assert not torch.allclose(masked, start * mask, atol=1e-3)


class TwoLayers(nn.Module):
    def __init__(self, between):
        super().__init__()
        self.first, self.second = nn.Linear(5, 8), nn.Linear(8, 2)
        self.between = between

    def forward(self, x):
        return self.second(self.between(self.first(x)))


def check(module, chain=("first", "second")):
    objective = Objective.of(module)
    check_partition(
        objective, make_partition(module, objective.spec, "alternate", chain), torch.randn(6, 5)
    )


def test_modules_that_cannot_be_partitioned_are_refused():
    check(TwoLayers(nn.Tanh()))
    for message, call in (
        ("act", lambda: check(TwoLayers(nn.Sigmoid()))),
        ("neuron", lambda: check(TwoLayers(nn.Softmax(-1)))),
        ("fewer neurons", lambda: check(TwoLayers(nn.LayerNorm(8)))),
        (r"'third' is not an nn\.Linear", lambda: check(TwoLayers(nn.ReLU()), ("first", "third"))),
        ("does not declare which layers", lambda: check(TwoLayers(nn.ReLU()), None)),
        ("name consecutive layers", lambda: check(TwoLayers(nn.ReLU()), ("second", "first"))),
        ("running statistics", lambda: check(TwoLayers(nn.BatchNorm1d(8)))),
    ):
        with pytest.raises(ConfigError, match=message):
            call()
    check(TwoLayers(nn.BatchNorm1d(8, affine=False, track_running_stats=False)))


class Branching(TwoLayers):
    """A module that cannot be traced."""

    def forward(self, x):
        return super().forward(x if x.sum() > 0 else -x)


def test_partitions_of_named_layers_need_no_tracing():
    module = Branching(nn.ReLU())
    spec = ParamSpec.of(module)
    with pytest.raises(ConfigError, match="cannot be traced"):
        find_neurons(module, spec, torch.randn(6, 5))
    check(module)
    (named,) = make_partition(module, spec, chain=("first", "second")).layers
    (traced,) = find_neurons(TwoLayers(nn.ReLU()), spec, torch.randn(6, 5)).layers
    assert (named.name, named.width, set(named.slots)) == ("first", 8, set(traced.slots))


def test_a_frozen_bias_is_refused_only_in_a_partitioned_layer():
    module = TwoLayers(nn.ReLU())
    module.second.bias.requires_grad_(False)
    check(module)
    module.first.bias.requires_grad_(False)
    with pytest.raises(
        ConfigError, match=r"'first' cannot be partitioned, because 'first.bias' is"
    ):
        check(module)


def test_flat_vectors_contain_each_trainable_parameter_once():
    module = TwoLayers(nn.ReLU())
    module.again = module.first  # tied
    module.second.bias.requires_grad_(False)
    spec = ParamSpec.of(module)
    assert list(spec.shapes) == ["first.weight", "first.bias", "second.weight"]
    flat = spec.from_module(module)
    assert flat.shape == (spec.size,) == (8 * 5 + 8 + 16,)
    assert torch.equal(spec.views(flat)["second.weight"], module.second.weight)
    assert torch.equal(spec.flatten(spec.views(flat)), flat)
    stacked = spec.views(torch.stack([flat, 2 * flat]))["first.weight"]
    assert stacked.shape == (2, 8, 5)
    assert torch.equal(stacked[1], 2 * module.first.weight)
    with pytest.raises(ConfigError, match="no trainable"):
        ParamSpec.of(nn.ReLU())
    with pytest.raises(ConfigError, match="float64"):
        ParamSpec.of(nn.Linear(2, 2).double())


def test_a_model_without_two_linear_layers_has_nothing_to_partition():
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 4))
    for model in (module, LinearClassifier((12,), 4)):
        with pytest.raises(
            ConfigError, match=r"fewer than two fully connected .* choose model fcnn"
        ):
            make_partition(model, ParamSpec.of(model))
