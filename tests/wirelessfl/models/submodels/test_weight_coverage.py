"""Coverage of weights between hidden layers: masks ``crossed``, the bound, the requirement."""

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import wirelessfl
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.models import FCNN
from wirelessfl.models.submodels import (
    ClientSubmodels,
    Dealing,
    ParamSpec,
    check_weight_coverage,
    coverage,
    deal_masks,
    find_neurons,
    weight_coverage_bound,
)


def neurons_of(hidden):
    torch.manual_seed(0)
    module = FCNN((3,), 2, hidden=hidden)
    return find_neurons(module, ParamSpec.of(module), torch.zeros(2, 3))


def dealt(kind, neurons, counts, seed=0):
    clients = np.arange(len(counts))
    dealing = Dealing(0, clients, Stream(seed, ("round", 0)), Stream(seed))
    return ClientSubmodels(neurons, deal_masks(kind, neurons.layers, counts, dealing))


def lowest(found):
    """Minimum number of clients over all entries of all parameters, counted client by client."""
    rows = np.arange(len(found.chosen))
    return int(found.covers(rows).sum(0).min())


@pytest.mark.parametrize(
    ("hidden", "width", "clients", "expected"),
    [
        ((8, 8), 4, 4, 1),  # 2 x 2 places
        ((8, 8), 4, 10, 2),  # 2 x 5 places, and the bound is 10/4
        ((8, 8), 2, 15, 0),  # 16 places are needed
        ((8, 8), 2, 16, 1),
        ((8, 8), 2, 40, 2),  # 4 x 10, 8 x 5
        ((12, 12), 4, 9, 1),
        ((8, 8, 8), 4, 4, 1),  # layers 0 and 2 have the same columns
        ((8, 8, 8, 8), 4, 8, 2),
        ((20, 20), 8, 25, 4),  # 5 x 5 places with two arcs over each neuron
        ((20, 20), 6, 49, 4),  # 7 x 7
        ((8, 4), 8, 5, 5),  # full widths
    ],
)
def test_crossed_masks_reach_the_coverage_of_their_grid(hidden, width, clients, expected):
    neurons = neurons_of(hidden)
    counts = np.minimum(width, np.array(neurons.widths))[None].repeat(clients, 0)
    found = dealt("crossed", neurons, counts)
    assert lowest(found) == expected
    bound, _ = weight_coverage_bound(neurons, found.widths)
    assert expected <= bound
    if width < hidden[0]:
        assert lowest(dealt("covered", neurons, counts)) == 0


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("hidden", [(24,), (24, 24), (24, 24, 24), (40, 24)])
@pytest.mark.parametrize("clients", range(1, 16))
def test_too_few_clients_for_a_grid_train_no_less_than_with_covered_masks(hidden, clients):
    """No two of them hold the same pairs of neurons."""
    neurons = neurons_of(hidden)
    counts = np.array(neurons.widths)[None].repeat(clients, 0) // 4
    crossed, covered = (dealt(kind, neurons, counts) for kind in ("crossed", "covered"))
    rows = np.arange(clients)
    assert crossed.covers(rows).any(0).sum() >= covered.covers(rows).any(0).sum()
    if len(hidden) > 1:
        assert len({(tuple(mine[0]), tuple(mine[1])) for mine in crossed.chosen}) == clients


@given(st.lists(st.sampled_from([(6, 6), (3, 3), (3, 2), (5, 9), (2, 12)]), max_size=15))
def test_groups_that_are_too_small_for_grids_follow_each_other(widths):
    """Arcs of different widths cover as many neurons as consecutive ones."""
    neurons = neurons_of((24, 24))
    counts = np.array(widths).reshape(-1, 2)
    held = [
        [np.count_nonzero(layer) for layer in coverage(found.chosen, neurons.layers)]
        for found in (dealt(kind, neurons, counts) for kind in ("crossed", "covered"))
    ]
    assert (np.array(held[0]) >= held[1]).all()


@given(
    st.lists(st.integers(2, 6), min_size=2, max_size=4),
    st.lists(st.lists(st.integers(1, 6), min_size=4, max_size=4), min_size=1, max_size=7),
    st.sampled_from(["crossed", "covered", "random", "ordered"]),
)
def test_no_masks_exceed_the_bound(hidden, wanted, kind):
    """The bound is that of the parameter with the fewest places per entry."""
    neurons = neurons_of(tuple(hidden))
    counts = np.minimum(np.array(wanted)[:, : len(hidden)], np.array(hidden))
    found = dealt(kind, neurons, counts)
    bound, name = weight_coverage_bound(neurons, found.widths)
    assert lowest(found) <= bound
    shares = counts / np.array(hidden)
    pairs = [shares[:, i] * shares[:, i + 1] for i in range(len(hidden) - 1)]
    ends = [shares[:, i] for i in range(len(hidden))]
    least = min(float(one.sum()) for one in (*pairs, *ends))
    assert bound == int(least + 1e-9)
    assert name in neurons.spec.shapes


def test_the_bound_is_reached_by_some_masks_and_exceeded_by_none():
    """All masks of four clients with 2 of 4 and 2 of 3 neurons are tried: at most 1 = bound."""
    neurons = neurons_of((4, 3))
    one = [
        list(map(np.array, p))
        for p in product(combinations(range(4), 2), combinations(range(3), 2))
    ]
    best = 0
    for others in combinations_with_replacement(range(len(one)), 4):
        chosen = [one[i] for i in others]
        counts = np.zeros((4, 3))
        for above, below in chosen:
            counts[np.ix_(above, below)] += 1
        best = max(best, int(counts.min()))
    bound, name = weight_coverage_bound(neurons, np.array([[2, 2]] * 4))
    assert best == bound == 1
    assert name == [*neurons.spec.shapes][2]


def test_a_required_coverage_of_weights_is_checked_before_training(config, toy):
    """Enough clients train; too few are refused with the bound; other masks with a remedy."""
    flags = {
        "clients": 8,
        "coverage_of": "weights",
        "masks": "crossed",
        "capacities": (0.5,),
        "rounds": 2,
    }
    torch.manual_seed(1)
    model = FCNN((12,), 4, hidden=(8, 8))
    made = wirelessfl.run(config("ra-fed", **flags, min_coverage=2), data=toy, model=model)
    assert [row["coverage"] for row in made.rows[1:]] == [2.0, 2.0]
    assert [row["uncovered"] for row in made.rows[1:]] == [0.0, 0.0]
    with pytest.raises(ConfigError, match=r"no masks of these widths cover .* more than 2 times"):
        wirelessfl.run(config("ra-fed", **flags, min_coverage=3), data=toy, model=model)
    with pytest.raises(ConfigError, match='choose masks "crossed", or increase'):
        wirelessfl.run(
            config("ra-fed", **flags | {"masks": "random"}, min_coverage=2), data=toy, model=model
        )
    with pytest.raises(ConfigError, match="coverage_of"):
        config("ra-fed", coverage_of="weights", budget="fastest", min_coverage=2)


def test_the_message_names_cell_and_round():
    neurons = neurons_of((8, 8))
    found = dealt("ordered", neurons, np.array([[4, 4]] * 4))
    with pytest.raises(ConfigError, match=r"0 of the 4 clients of cell 1 in round 3, but"):
        check_weight_coverage(found, 1, number=3, cell=1)


def test_the_message_names_one_parameter():
    """That with the bound, although input weights are covered as little."""
    neurons = neurons_of((8, 8))
    found = dealt("ordered", neurons, np.array([[2, 2]] * 8))
    first, _, between, *_ = neurons.spec.shapes
    with pytest.raises(ConfigError) as caught:
        check_weight_coverage(found, 1, number=1)
    message = str(caught.value)
    assert message.startswith(f"some entries of {between!r} are covered by 0 of the 8 clients of ")
    assert "no masks of these widths cover all entries more than 0 times" in message
    assert first not in message
