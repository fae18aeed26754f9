"""Narrow submodels: what each capacity affords, dealt to clients, and masks of each cell."""

from dataclasses import dataclass

import numpy as np
import pytest

from channels import Stream
from tests.wirelessfl.algorithms.assigners.contexts import WIDTHS, context, parameters
from wirelessfl.algorithms.assigners.arbitrary import Covered
from wirelessfl.algorithms.assigners.narrow import Narrow, deal, reporting
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels import Dealing, deal_masks

KINDS = ("ordered", "rolling", "random", "static", "covered", "crossed", "partition")


@dataclass(frozen=True)
class OfKind(Narrow):
    """Narrow submodels with masks of a kind."""

    masks: str = "ordered"

    @property
    def kind(self):
        return self.masks


def affordable(capacity, budget):
    """Widths of the largest submodel of a common ratio k / W that a capacity affords."""
    if budget == "width":
        return tuple(max(int(capacity * width + 1e-9), 1) for width in WIDTHS)
    ratios = sorted({k / width for width in WIDTHS for k in range(1, width + 1)})
    every = [tuple(max(int(r * width + 1e-9), 1) for width in WIDTHS) for r in ratios]

    def cost(counts):
        biases = 0 if budget == "bytes" else sum(counts) + 2
        return (4 if budget == "bytes" else 2) * (parameters(counts) - biases)

    most = capacity * cost(WIDTHS) if capacity <= 1 else capacity
    return max(counts for counts in every if cost(counts) <= most)


def widths(submodels):
    return [tuple(len(neurons) for neurons in mine) for mine in submodels.chosen]


@pytest.mark.parametrize(
    ("budget", "capacities"),
    [
        ("width", (1.0, 0.5, 0.3, 0.01)),
        ("bytes", (1.0, 0.5, 4.0 * 33, 4.0 * 46 - 1)),
        ("flops", (1.0, 0.4, 2.0 * 42, 2.0 * 42 - 1)),
    ],
)
def test_each_client_trains_as_much_as_it_can_afford(budget, capacities):
    """Two of 8 clients have each capacity, at random; a client has its own in every round."""
    assigner = Narrow(capacities=capacities, budget=budget)
    found = widths(assigner.client_submodels(context(np.zeros(8, int))))
    expected = [affordable(capacity, budget) for capacity in capacities]
    assert sorted(found) == sorted(2 * expected)
    assert found != 2 * expected
    some = [6, 1, 3]
    again = context(np.zeros(3, int), senders=some, clients=8, number=7)
    assert widths(assigner.client_submodels(again)) == [found[client] for client in some]
    shares = assigner.shares(again)
    assert [affordable(share, budget) for share in shares] == [found[client] for client in some]


def test_capacities_are_those_of_their_own_stream():
    """Tasks train in streams of their own, but a client has one capacity."""
    assigner = Narrow(capacities=(1.0, 0.5))
    node = np.zeros(20, int)
    one, other = (
        assigner.shares(context(node, run_stream=Stream(seed), capacities=Stream(9)))
        for seed in (1, 2)
    )
    assert one.tolist() == other.tolist()
    assert sorted(one) == [0.5] * 10 + [1.0] * 10
    assert assigner.shares(context(node, run_stream=Stream(1))).tolist() != one.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_masks_are_dealt_within_each_cell(kind):
    """Senders of two cells in mixed order: each cell's masks are those of its senders alone."""
    node, senders = np.array([1, 0, 1, 0, 1]), np.array([0, 2, 5, 6, 7])
    counts = np.array([[2, 1, 1], [3, 2, 1], [3, 2, 2], [6, 4, 3], [1, 1, 2]])
    whole = context(node, senders=senders, clients=8)
    found = deal(kind, whole, counts, 0.5 if kind == "partition" else 0.0)
    for cell in range(2):
        rows = np.flatnonzero(node == cell)
        dealing = Dealing(
            number=2,
            clients=senders[rows],
            round=Stream(5).child("round", 2).child("cell", cell),
            run=Stream(5),
            overlap=0.5 if kind == "partition" else 0.0,
        )
        alone = deal_masks(kind, whole.neurons().layers, counts[rows], dealing)
        for row, masks in zip(rows, alone, strict=True):
            assert [m.tolist() for m in found[row]] == [m.tolist() for m in masks]
    if kind == "covered":  # floor or ceil of the mean coverage, in each cell
        for cell in range(2):
            rows = np.flatnonzero(node == cell)
            for layer, width in enumerate(WIDTHS):
                times = np.bincount(np.concatenate([found[row][layer] for row in rows]))
                mean = counts[rows, layer].sum() / width
                assert np.floor(mean) <= min(times)
                assert max(times) <= np.ceil(mean)


@pytest.mark.parametrize("kind", ["random", "covered"])
def test_a_star_draws_from_the_stream_of_the_round(kind):
    counts = np.array([[3, 2, 1], [3, 2, 2]])
    star = context([0, 0])
    dealing = Dealing(2, np.arange(2), Stream(5).child("round", 2), Stream(5))
    expected = deal_masks(kind, star.neurons().layers, counts, dealing)
    found = deal(kind, star, counts)
    assert [[m.tolist() for m in mine] for mine in found] == [
        [m.tolist() for m in mine] for mine in expected
    ]


def test_only_nodes_with_senders_are_reported():
    nodes = context([2, 0, 2], nodes=4)
    assert [(node, rows.tolist()) for node, rows in reporting(nodes)] == [(0, [1]), (2, [0, 2])]


def test_what_masks_tell():
    """Arcs of a common circle depend on the others."""
    joint = [kind for kind in KINDS if OfKind(masks=kind).deals_jointly]
    assert joint == ["covered", "crossed", "partition"]
    found = Narrow(capacities=(1.0, 0.5, 0.2)).client_submodels(context([0, 0, 0]))
    for mine in found.chosen:
        assert [m.tolist() for m in mine] == [list(range(len(m))) for m in mine]
    parts = OfKind(masks="partition").client_submodels(context([0, 0])).chosen
    assert sorted(np.concatenate([mine[0] for mine in parts])) == list(range(WIDTHS[0]))
    assert Covered().deals_jointly
    assert not Narrow().deals_jointly


def test_fractions_of_neurons_are_at_most_one():
    with pytest.raises(ValueError, match="at most 1"):
        Narrow(capacities=(1.0, 1.5))
    assert Narrow(capacities=(1.5,), budget="bytes").capacities == (1.5,)
    with pytest.raises(ConfigError, match="give at least 56"):
        Narrow(capacities=(55.0,), budget="bytes").client_submodels(context([0]))
