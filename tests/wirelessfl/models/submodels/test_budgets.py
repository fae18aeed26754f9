"""Levels of width, the largest level within a budget, and the assignment of capacities."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import floor, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels import ParamSpec, dealt_capacities, levels_of
from wirelessfl.models.submodels.neurons import NeuronMap, Neurons, Slot


def chain(inputs, hidden, classes):
    """Neurons of a fully connected network with biases; ``hidden`` lists (width, blocks)."""
    widths = [inputs, *(width for width, _ in hidden), classes]
    shapes = {}
    for i, (read, made) in enumerate(pairwise(widths)):
        shapes |= {f"{i}.weight": (made, read), f"{i}.bias": (made,)}
    layers = tuple(
        Neurons(
            f"{i}", w, (Slot(f"{i}.weight", 0), Slot(f"{i}.bias", 0), Slot(f"{i + 1}.weight", 1)), b
        )
        for i, (w, b) in enumerate(hidden)
    )
    return NeuronMap(ParamSpec(shapes), layers)


def convolution():
    """A convolution on 8x8 pixels, pooled to 4x4: each channel is 16 inputs of the last layer."""
    shapes = {"conv.weight": (6, 3, 3, 3), "conv.bias": (6,), "fc.weight": (5, 96), "fc.bias": (5,)}
    slots = (Slot("conv.weight", 0), Slot("conv.bias", 0), Slot("fc.weight", 1, 16))
    layers = (Neurons("conv", 6, slots, 2),)
    return NeuronMap(ParamSpec(shapes), layers, {"conv.weight": 64})


@st.composite
def chains(draw):
    shapes = draw(
        st.lists(st.tuples(st.integers(1, 14), st.integers(1, 3)), min_size=1, max_size=3)
    )
    hidden = [(size * blocks, blocks) for size, blocks in shapes]
    return chain(draw(st.integers(1, 9)), hidden, draw(st.integers(1, 5)))


SHARES = st.one_of(
    st.floats(0.001, 1), st.builds(lambda a, b: min(a, b) / max(a, b), *[st.integers(1, 20)] * 2)
)


@given(chains(), SHARES)
def test_a_width_ratio_keeps_its_floor_of_every_layer(neurons, share):
    """A layer of b blocks keeps b * max(1, floor(r W/b)) neurons.

    A ratio r within 1e-9 of a fraction counts as that fraction.
    """
    levels = levels_of(neurons)
    near = Fraction(share).limit_denominator(14)  # no block is wider
    ratio = near if abs(float(near) - share) < 1e-9 else Fraction(share)
    expected = [
        one.blocks * max(1, floor(ratio * (one.width // one.blocks))) for one in neurons.layers
    ]
    assert levels.widths[levels.at(share)].tolist() == expected
    assert levels.within("width", share) == levels.at(share)


@given(chains())
def test_levels_rise_to_the_full_model(neurons):
    levels = levels_of(neurons)
    assert levels.widths.dtype == np.int64
    assert tuple(levels.widths[-1]) == neurons.widths
    assert levels.widths[0].tolist() == [
        one.blocks * max(1, floor(levels.shares[0] * one.width / one.blocks + 1e-9))
        for one in neurons.layers
    ]
    assert (np.diff(levels.widths, axis=0) >= 0).all()
    assert (np.diff(levels.shares) > 0).all()
    assert (np.diff(levels.parameters) > 0).all()
    assert [levels.at(share) for share in levels.shares] == list(range(len(levels.shares)))


def test_each_neuron_of_the_widest_layer_is_a_level_if_other_widths_divide_its_width():
    levels = levels_of(chain(3, [(4, 1), (8, 1)], 2))
    assert levels.widths.tolist() == [
        [1, 1], [1, 2], [1, 3], [2, 4], [2, 5], [3, 6], [3, 7], [4, 8]
    ]  # fmt: skip
    assert levels.at(0.5) == 3
    assert levels.at(0.49) == 2
    assert levels.at(1e-6) == 0
    assert 1 - 0.9 < 0.1
    assert levels_of(chain(1, [(20, 1)], 1)).at(1 - 0.9) == 1  # a tenth, up to rounding


def multiplied(neurons, widths):
    shapes = neurons.shapes(widths).items()
    return sum(neurons.uses.get(name, 1) * prod(shape) for name, shape in shapes if len(shape) > 1)


@pytest.mark.parametrize("neurons", [chain(7, [(10, 1), (6, 2)], 3), convolution()])
def test_costs_are_those_of_the_shapes(neurons):
    """Costs equal counts from shapes: no multiplications by biases, one kernel use per pixel."""
    levels = levels_of(neurons)
    for widths, parameters, multiplications in zip(
        levels.widths, levels.parameters, levels.multiplications, strict=True
    ):
        assert parameters == neurons.parameters(widths)
        assert multiplications == multiplied(neurons, widths)
        shapes = neurons.shapes(widths)
        assert parameters == sum(prod(shape) for shape in shapes.values())
    first = chain(7, [(10, 1), (6, 2)], 3)
    a, b = levels_of(first).widths[2]
    assert levels_of(first).parameters[2] == 7 * a + a + a * b + b + b * 3 + 3
    assert levels_of(first).multiplications[2] == 7 * a + a * b + b * 3
    assert levels_of(convolution()).multiplications.tolist() == [
        64 * 27 * c + 5 * 16 * c for c in (2, 4, 6)
    ]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("budget", ["bytes", "flops"])
@given(neurons=chains(), share=SHARES)
def test_a_budget_selects_the_largest_submodel(budget, neurons, share):
    """The level equals brute force; if no level fits, the budget named in the error does."""
    levels = levels_of(neurons)
    costs = [
        neurons.parameters(widths) if budget == "bytes" else multiplied(neurons, widths)
        for widths in levels.widths
    ]
    paid = [k for k, cost in enumerate(costs) if cost <= share * costs[-1] * (1 + 1e-9)]
    if paid:
        assert levels.within(budget, share) == paid[-1]
        return
    with pytest.raises(ConfigError, match=f"of the model's {budget}, more") as caught:
        levels.within(budget, share)
    least = float(str(caught.value).removesuffix(".").split()[-1])
    assert levels.within(budget, least) >= 0
    assert least <= 1.011 * costs[0] / costs[-1]


def test_a_budget_below_the_smallest_submodel_is_refused():
    """The smallest submodel has two weights and two biases, 4 of 301 parameters."""
    levels = levels_of(chain(1, [(100, 1)], 1))
    assert levels.parameters[[0, -1]].tolist() == [4, 301]
    with pytest.raises(ConfigError) as caught:
        levels.within("bytes", 0.001)
    assert str(caught.value) == (
        "capacities: the smallest submodel needs a fraction 0.0133 of the model's bytes, more "
        "than 0.001: give at least 0.0133."
    )
    assert levels.within("bytes", 0.0133) == 0
    assert levels.within("bytes", 1.0) == levels.within("flops", 1.0) == 99


def test_budgets_above_one_are_absolute_bytes_and_flops():
    """Of 100 neurons, k need 3 k + 1 parameters of 4 bytes and 2 k multiplications of 2 FLOPs."""
    levels = levels_of(chain(1, [(100, 1)], 1))
    for neurons in (1, 7, 100):
        assert levels.within("bytes", 4 * (3 * neurons + 1)) == neurons - 1
        assert levels.within("bytes", 4 * (3 * neurons + 4) - 1) == min(neurons, 100) - 1
        assert levels.within("flops", 4 * neurons) == neurons - 1
    with pytest.raises(ConfigError, match=r"15 bytes is less .* needs: give at least 16\."):
        levels.within("bytes", 15)


def test_wrong_shares_budgets_clients_and_models_without_neurons_are_refused():
    levels = levels_of(chain(1, [(4, 1)], 1))
    for share in (0.0, -1.0, 1.01, float("nan")):
        with pytest.raises(ConfigError, match="is not a fraction of the full"):
            levels.at(share)
        with pytest.raises(ConfigError, match="is not a fraction of the full"):
            levels.within("width", share)
    for amount in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="bytes is not a valid budget: give a finite number"):
            levels.within("bytes", amount)
    with pytest.raises(ConfigError, match="no hidden neurons"):
        levels_of(NeuronMap(ParamSpec({"weight": (2, 3)}), ()))
    with pytest.raises(ConfigError, match="capacities is empty"):
        dealt_capacities([], 3, Stream(0))
    with pytest.raises(ValueError, match="clients is 0"):
        dealt_capacities([1.0], 0, Stream(0))


@given(
    st.lists(st.floats(0.01, 1), min_size=1, max_size=6, unique=True),
    st.integers(1, 40),
    st.integers(0, 9),
)
def test_capacities_are_assigned_evenly_and_reproducibly(capacities, clients, seed):
    dealt = dealt_capacities(capacities, clients, Stream(seed))
    counts = [Counter(dealt.tolist())[share] for share in capacities]
    assert sum(counts) == clients == len(dealt)
    assert max(counts) - min(counts) <= 1
    assert (dealt == dealt_capacities(capacities, clients, Stream(seed))).all()


def test_capacities_are_assigned_at_random():
    """Over 4000 seeds, client 0 gets each of four capacities equally often (std. error 0.007)."""
    first = Counter(dealt_capacities([1, 0.5, 0.25, 0.125], 8, Stream(s))[0] for s in range(4000))
    assert len(first) == 4
    assert all(abs(n / 4000 - 0.25) < 0.035 for n in first.values())
