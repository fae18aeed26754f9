"""Masks have the requested sizes and positions, and the stated coverage."""

from dataclasses import replace
from itertools import combinations
from math import sqrt
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels import Dealing, Masks, coverage, deal_masks
from wirelessfl.models.submodels.neurons import Neurons

KINDS = get_args(Masks)
BY_COUNTS = [kind for kind in KINDS if kind != "partition"]


def dealing(number=0, clients=(0, 1, 2), seed=0, overlap=0.0):
    run = Stream(seed)
    return Dealing(number, np.array(clients, np.int64), run.child("round", number), run, overlap)


def layer(width, blocks=1, name="hidden"):
    return Neurons(name, width, (), blocks)


@st.composite
def cases(draw):
    """Random layers, valid numbers of neurons per client, and a round."""
    shapes = draw(
        st.lists(st.tuples(st.integers(1, 12), st.integers(1, 3)), min_size=1, max_size=3)
    )
    layers = [layer(size * blocks, blocks, f"l{i}") for i, (size, blocks) in enumerate(shapes)]
    clients = draw(st.lists(st.integers(0, 40), min_size=1, max_size=6, unique=True))
    counts = np.array(
        [[b * draw(st.integers(1, size)) for size, b in shapes] for _ in clients], np.int64
    )
    number, seed = draw(st.integers(0, 30)), draw(st.integers(0, 9))
    overlap = draw(st.sampled_from([0.0, 0.3, 0.5, 1.0, 1e300]))
    return layers, counts, dealing(number, clients, seed, overlap)


def listed(chosen):
    return [[neurons.tolist() for neurons in mine] for mine in chosen]


def by_block(neurons, layer):
    """The neurons of each block, as indices within the block."""
    size = layer.width // layer.blocks
    return [neurons[neurons // size == b] - b * size for b in range(layer.blocks)]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", KINDS)
@given(case=cases())
def test_masks_are_sorted_distinct_and_equal_over_blocks(kind, case):
    layers, counts, deal = case
    chosen = deal_masks(kind, layers, counts, deal)
    assert len(chosen) == len(deal.clients)
    for mine, wanted in zip(chosen, counts, strict=True):
        assert len(mine) == len(layers)
        for neurons, one, count in zip(mine, layers, wanted, strict=True):
            assert neurons.dtype == np.int64
            assert (np.diff(neurons) > 0).all()
            assert ((neurons >= 0) & (neurons < one.width)).all()
            assert len({len(part) for part in by_block(neurons, one)}) == 1
            assert kind == "partition" or len(neurons) == count
    assert listed(deal_masks(kind, layers, counts, deal)) == listed(chosen)


@given(cases())
def test_ordered_masks_are_the_first_neurons(case):
    layers, counts, deal = case
    for mine, wanted in zip(deal_masks("ordered", layers, counts, deal), counts, strict=True):
        for neurons, one, count in zip(mine, layers, wanted, strict=True):
            for part in by_block(neurons, one):
                assert part.tolist() == list(range(count // one.blocks))


def test_rolling_masks_follow_the_window_of_fedrolex():
    """Three of 5 neurons are 0-2, 1-3, 2-4, then wrap around; blocks roll separately."""
    windows = [[0, 1, 2], [1, 2, 3], [2, 3, 4], [0, 3, 4], [0, 1, 4], [0, 1, 2]]
    paired = [[0, 1, 3, 4], [1, 2, 4, 5], [0, 2, 3, 5], [0, 1, 3, 4], [1, 2, 4, 5], [0, 2, 3, 5]]
    for number in range(6):
        deal = dealing(number, (7, 3))
        chosen = deal_masks("rolling", [layer(5), layer(6, 2)], [[3, 4], [1, 2]], deal)
        assert chosen[0][0].tolist() == windows[number]
        assert chosen[0][1].tolist() == paired[number]
        assert chosen[1][0].tolist() == [number % 5]


@given(cases())
def test_rolling_masks_keep_every_neuron_equally_often_per_cycle(case):
    """Over W/b rounds, a client with n of W neurons in b blocks keeps each in n/b rounds."""
    layers, counts, deal = case
    for i, one in enumerate(layers):
        seen = np.zeros((len(deal.clients), one.width), dtype=int)
        for offset in range(one.width // one.blocks):
            now = replace(deal, number=deal.number + offset)
            for row, mine in zip(seen, deal_masks("rolling", layers, counts, now), strict=True):
                row[mine[i]] += 1
        assert (seen == counts[:, [i]] // one.blocks).all()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", ["random", "static", "covered", "partition"])
def test_neurons_and_pairs_are_kept_equally_often(kind):
    """Masks are uniform subsets: P(neuron) = n/W = 0.4, P(pair) = n(n-1)/(W(W-1)) = 0.1.

    With 4000 draws the standard errors are 0.0077 and 0.0047; the tolerance is five of them. The
    second client is checked: its arc of a randomly ordered circle must be uniform too.
    """
    draws, width, count = 4000, 5, 2
    held = np.zeros((draws, width), dtype=bool)
    for draw in range(draws):
        deal = dealing(0 if kind == "static" else draw, (3, draw + 4))
        mine = deal_masks(kind, [layer(width)], [[3], [count]], deal)[1][0]
        held[draw, mine] = True
    neuron, pair = 0.4, 0.1
    assert np.abs(held.mean(0) - neuron).max() < 5 * sqrt(neuron * (1 - neuron) / draws)
    for a, b in combinations(range(width), 2):
        together = (held[:, a] & held[:, b]).mean()
        assert abs(together - pair) < 5 * sqrt(pair * (1 - pair) / draws)


@pytest.mark.parametrize("kind", ["random", "covered", "partition", "static"])
def test_masks_are_drawn_independently(kind):
    """Masks differ between clients, layers and blocks, and (except static ones) between rounds."""
    layers = [layer(60, name="a"), layer(60, name="b"), layer(120, 2, name="c")]
    counts = np.array([[20, 20, 40]] * 3)
    first = deal_masks(kind, layers, counts, dealing(0))
    later = deal_masks(kind, layers, counts, dealing(1))
    for i in range(3):
        same = [(x[i] == y[i]).all() for x, y in zip(first, later, strict=True)]
        assert all(same) if kind == "static" else not any(same)
        assert (first[0][i] != first[1][i]).any()
    for mine in first:
        assert (mine[0] != mine[1]).any()
        low, high = by_block(mine[2], layers[2])
        assert (low != high).any()


@given(cases(), st.data())
def test_static_masks_nest(case, data):
    """In every round, a client's smaller static mask is a subset of its larger one."""
    layers, counts, deal = case
    smaller = [
        [
            one.blocks * data.draw(st.integers(1, n // one.blocks))
            for n, one in zip(row, layers, strict=True)
        ]
        for row in counts
    ]
    later = replace(deal, number=deal.number + 1, round=Stream(99))
    large = deal_masks("static", layers, counts, deal)
    small = deal_masks("static", layers, np.array(smaller), later)
    for few, many in zip(small, large, strict=True):
        for a, b in zip(few, many, strict=True):
            assert set(a.tolist()) <= set(b.tolist())


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", ["ordered", "rolling", "random", "static"])
@given(case=cases())
def test_masks_do_not_depend_on_the_other_participants(kind, case):
    layers, counts, deal = case
    together = deal_masks(kind, layers, counts, deal)
    for i in range(len(deal.clients)):
        alone = replace(deal, clients=deal.clients[[i]])
        (mine,) = deal_masks(kind, layers, counts[[i]], alone)
        assert listed([mine]) == listed([together[i]])


@given(cases())
def test_covered_masks_maximise_the_minimum_coverage(case):
    """``covered`` masks have the highest minimum coverage possible, floor(total / width)."""
    layers, counts, deal = case
    total = counts.sum(0)
    for kind in BY_COUNTS:
        chosen = deal_masks(kind, layers, counts, deal)
        held = coverage(chosen, layers)
        for i, one in enumerate(layers):
            counted = [sum(n in mine[i] for mine in chosen) for n in range(one.width)]
            assert held[i].tolist() == counted
            assert held[i].min() <= total[i] // one.width
            if kind == "covered":
                assert held[i].min() == total[i] // one.width
                assert held[i].max() == -(-total[i] // one.width)


@given(st.data())
def test_partitions_without_overlap_are_those_of_hist(data):
    """Each layer's neurons are shuffled and divided in proportion to the clients' sizes."""
    widths = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3))
    cuts = sorted(data.draw(st.lists(st.integers(0, max(widths)), max_size=4)))
    sizes = np.diff([0, *cuts, max(widths)])
    deal = dealing(data.draw(st.integers(0, 5)), range(len(sizes)))
    named = [f"l{i}" for i in range(len(widths))]
    layers = [layer(w, name=n) for n, w in zip(named, widths, strict=True)]
    counts = np.repeat(sizes[:, None], len(widths), 1)
    chosen = deal_masks("partition", layers, counts, deal)
    for i, (name, width) in enumerate(zip(named, widths, strict=True)):
        order = deal.round.child("mask", name).generator().permutation(width)
        ends = np.rint(np.cumsum(sizes) * (width / sizes.sum())).astype(int)
        for mine, expected in zip(chosen, np.split(order, ends[:-1]), strict=True):
            assert mine[i].tolist() == sorted(expected.tolist())


@given(cases())
def test_partition_masks_have_the_requested_overlap(case):
    """A mask of n neurons is extended by round(overlap * n) neurons, up to the whole block."""
    layers, counts, deal = case
    disjoint = deal_masks("partition", layers, counts, replace(deal, overlap=0.0))
    wider = deal_masks("partition", layers, counts, deal)
    for i, one in enumerate(layers):
        together = np.concatenate([mine[i] for mine in disjoint])
        assert sorted(together.tolist()) == list(range(one.width))
        size = one.width // one.blocks
        for own, more in zip(disjoint, wider, strict=True):
            assert set(own[i].tolist()) <= set(more[i].tolist())
            for a, b in zip(by_block(own[i], one), by_block(more[i], one), strict=True):
                assert len(b) == min(len(a) + round(deal.overlap * len(a)), size)


@pytest.mark.parametrize(("overlap", "shared"), [(0.0, 0), (0.2, 2), (0.5, 5), (1.0, 10)])
def test_adjacent_partition_masks_share_neurons(overlap, shared):
    """Of four masks of 10 neurons on a circle, only neighbouring masks share neurons."""
    deal = dealing(clients=range(4), overlap=overlap)
    parts = [set(mine[0]) for mine in deal_masks("partition", [layer(40)], [[1]] * 4, deal)]
    for a, b in combinations(range(4), 2):
        assert len(parts[a] & parts[b]) == (0 if b - a == 2 else shared)


def test_a_partition_of_few_neurons_leaves_clients_without_any():
    deal = dealing(clients=range(5))
    sizes = [len(mine[0]) for mine in deal_masks("partition", [layer(3)], [[7]] * 5, deal)]
    assert sum(sizes) == 3
    assert 0 in sizes


def test_without_participants_there_are_no_masks_and_no_coverage():
    none = np.zeros((0, 1), np.int64)
    for kind in KINDS:
        assert deal_masks(kind, [layer(4)], none, dealing(clients=())) == []
    assert coverage([], [layer(4)])[0].tolist() == [0] * 4


def test_wrong_counts_are_refused():
    deal = dealing(clients=(4, 5))
    two = [layer(8, 2)]
    with pytest.raises(ValueError, match=r"counts has shape .*: give \[2, 1\]"):
        deal_masks("ordered", two, [[2]], deal)
    for wrong in (0, 3, 10, -2):
        with pytest.raises(ValueError, match=rf"counts\[1\] of layer 'hidden' is {wrong}: give a"):
            deal_masks("random", two, [[2], [wrong]], deal)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="not all 0"):
            deal_masks("partition", two, [[0], [wrong]], deal)
    with pytest.raises(ValueError, match="'rollin': choose one of ordered"):
        deal_masks("rollin", two, [[2], [2]], deal)


def test_wrong_overlaps_rounds_and_clients_are_refused():
    for overlap in (-0.1, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="overlap is"):
            dealing(overlap=overlap)
    with pytest.raises(ValueError, match="give a round's index"):
        dealing(number=-1)
    with pytest.raises(ValueError, match="twice"):
        dealing(clients=(1, 1))
