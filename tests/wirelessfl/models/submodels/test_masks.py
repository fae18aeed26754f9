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
from wirelessfl.config import Config
from wirelessfl.models.submodels import (
    Dealing,
    Masks,
    Neurons,
    check_coverage,
    coverage,
    deal_masks,
    draw_masks,
    largest_part,
    sizes_of,
)
from wirelessfl.runs.build.planners import planner_without_data

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


@pytest.mark.parametrize(
    ("algorithm", "flags", "sizes", "largest"),
    [
        ("hist", {}, [4, 4], 1.0),
        ("hist", {"hidden": (9,)}, [5, 4], 1.0),
        ("hist", {"mask_overlap": 0.5}, [6, 6], 1.0),
        ("hist", {"mask_sizes": "fixed", "mask_shares": (0.75, 0.25)}, [6, 2], 1.5),
        ("hfedavg", {}, [], 1.0),
    ],
)
def test_equal_sizes_count_as_one(algorithm, flags, sizes, largest):
    given = {"cells": 2, "clients": 4, "hidden": (8,)} | flags
    submodels = planner_without_data(Config.from_flags(algorithm, **given)).plan(0).submodels
    assert sizes_of(submodels) == sizes
    assert largest_part(submodels) == largest


def test_panels_show_masks_and_coverage(tmp_path):
    """Panels show the masks and coverage of ``deal_masks``; crosses mark uncovered neurons."""
    counts, width, path = [6, 3, 3], 12, tmp_path / "masks.png"
    figure = draw_masks(counts, width, path, kinds=("ordered", "covered"), rounds=2, seed=4)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [panel.get_ylabel() for panel in figure.axes[:2]] == ["round 1\nclients", "Γ"]
    assert [panel.get_xlabel() for panel in figure.axes[1:4:2]] == ["", "neurons"]
    assert figure.get_supxlabel().count("\n") == 1, "it fits into the figure"
    panels = iter(figure.axes)
    layers = [Neurons("hidden", width, ())]
    for kind in ("ordered", "covered"):
        for number in range(2):
            own = Dealing(number, np.arange(3), Stream(4).child("round", number), Stream(4))
            chosen = deal_masks(kind, layers, np.array(counts)[:, None], own)
            times = coverage(chosen, layers)[0]
            held, below = next(panels), next(panels)
            rows = [np.flatnonzero(row) for row in held.images[0].get_array()]
            assert [row.tolist() for row in rows] == [mine[0].tolist() for mine in chosen]
            assert below.images[0].get_array().tolist() == [times.tolist()]
            assert below.lines[0].get_xdata().tolist() == np.flatnonzero(times == 0).tolist()


def test_an_unknown_file_suffix_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"path is .*masks.txt.*: give a file name that ends in .png"
    ):
        draw_masks([2], 4, tmp_path / "masks.txt")
    assert not list(tmp_path.iterdir())


def refusal(held):
    """Error of ``check_coverage`` for a layer of 300 neurons; ``held`` lists clients' neurons."""
    layers = [Neurons("layers.0", 2, ()), Neurons("layers.1", 300, ())]
    chosen = [[np.arange(2), np.array(sorted(mine), np.int64)] for mine in held]
    with pytest.raises(ConfigError) as caught:
        check_coverage(chosen, layers, 2, clients=3, number=1)
    return str(caught.value)


def test_insufficient_coverage_is_refused_with_ranges_of_neurons():
    all_but = set(range(300)) - set(range(150, 200)) - {203}
    assert refusal([all_but, set(range(150)), all_but]) == (
        "neurons 150 to 199 and 203 of layer 'layers.1' are covered by none of the 3 clients of "
        "round 1, but min_coverage is 2. Increase capacities or the number of clients per round, "
        'or choose masks "covered", which have the most even coverage.'
    )
    everything = set(range(300))
    only = refusal([everything, everything - {4, 9, 10}])
    assert only.startswith("neurons 4 and 9 to 10 of layer 'layers.1' are covered by only 1 of the")
    assert refusal([everything, everything - {7}]).startswith("neuron 7 of layer 'layers.1' is ")
    gaps = refusal([set(range(0, 300, 2))] * 2)
    assert gaps.startswith("neurons 1, 3, 5, 7, 9, 11, 13, 15 and 142 more of layer")


def test_enough_coverage_passes():
    """``covered`` masks with twice the layer's width in total cover every neuron twice."""
    layers = [Neurons("a", 10, ()), Neurons("b", 6, (), 3)]
    counts = np.array([[5, 3], [7, 6], [8, 3]])
    clients = np.arange(3)
    deal = Dealing(0, clients, Stream(0).child("round", 0), Stream(0))
    chosen = deal_masks("covered", layers, counts, deal)
    check_coverage(chosen, layers, 2, clients=3, number=0)
    with pytest.raises(ConfigError, match="only 2 of the 3 clients"):
        check_coverage(chosen, layers, 3, clients=3, number=0)
    check_coverage([], [], 1, clients=0, number=0)
