"""Partition: sizes by brute force; submodels of cells are disjoint, and cover the model."""

from itertools import product

import numpy as np
import pytest

from channels import Stream
from tests.wirelessfl.algorithms.assigners.contexts import context, parameters
from wirelessfl.algorithms.assigners.partition import CellPartition
from wirelessfl.base.errors import ConfigError

MODEL = (12, 4, 7)  # the first and the third layer are partitioned, or all


def cells_of(cells, seconds=None, **changes):
    return context(np.arange(cells), seconds, **({"widths": MODEL} | changes))


def sizes(submodels):
    """Neurons of each cell in each partitioned layer."""
    return [[len(part) for part in parts] for parts in submodels.neurons]


def in_proportion(first, width):
    """Neurons of another layer: the rounded share of those before, of which each cell has its."""
    ends = np.rint(np.cumsum(first) * width / sum(first)).astype(int)
    return np.diff(ends, prepend=0).tolist()


def assert_partition(submodels, widths):
    """Each neuron is in one submodel."""
    for layer, width in enumerate(widths):
        parts = [parts[layer] for parts in submodels.neurons]
        assert sorted(np.concatenate(parts).tolist()) == list(range(width))
        assert all((np.diff(part) > 0).all() for part in parts)


@pytest.mark.parametrize("scheme", ["alternate", "all"])
@pytest.mark.parametrize("cells", [1, 2, 5])
def test_equal_submodels_cover_the_model_once(scheme, cells):
    """Sizes differ by at most one, and lengths are those of the smaller network."""
    found = CellPartition(partition=scheme).submodels(cells_of(cells))
    widths = (12, 7) if scheme == "alternate" else MODEL
    assert_partition(found, widths)
    even = [12 // cells + (cell < 12 % cells) for cell in range(cells)]
    rows = list(zip(*(in_proportion(even, width) for width in widths), strict=True))
    assert sizes(found) == [list(row) for row in rows]
    for length, row in zip(found.lengths, rows, strict=True):
        counts = (row[0], 4, row[1]) if scheme == "alternate" else row
        assert length == parameters(counts, MODEL)


def test_masks_are_drawn_in_every_round():
    """By the round's stream alone: the same number gives the same masks."""
    assigner = CellPartition()
    first, same = (assigner.submodels(cells_of(3)) for _ in range(2))
    other = assigner.submodels(cells_of(3, number=3))
    assert np.array_equal(first.places, same.places)
    assert not np.array_equal(first.places, other.places)
    assert sizes(first) == sizes(other)
    again = assigner.submodels(cells_of(3, run_stream=Stream(8)))
    assert np.array_equal(first.places, again.places)


@pytest.mark.parametrize("overlap", [0.5, 1.0, 9.0])
def test_an_overlap_is_relative_to_the_size(overlap):
    """Of 12 and 7 neurons of three cells: rounded, and at most the whole layer."""
    assigner = CellPartition(mask_overlap=overlap)
    found = assigner.submodels(cells_of(3))
    plain = CellPartition().submodels(cells_of(3))
    for mine, part in zip(found.neurons, plain.neurons, strict=True):
        for layer, width in enumerate((12, 7)):
            size = len(part[layer])
            assert len(mine[layer]) == min(size + round(overlap * size), width)
            assert set(part[layer]) <= set(mine[layer])
    assert not assigner.design_sizes.disjoint
    assert CellPartition().design_sizes.disjoint


def test_fixed_shares_by_hand():
    """Largest remainders of 12 neurons in the widest layer; 7 follow in proportion."""
    assigner = CellPartition(mask_sizes="fixed", mask_shares=(0.5, 0.3, 0.2))
    found = assigner.submodels(cells_of(3))
    assert_partition(found, (12, 7))
    first = [6, 4, 2]  # quotas 6, 3.6, 2.4
    assert sizes(found) == [list(p) for p in zip(first, in_proportion(first, 7), strict=True)]
    assigner.check_cells(3)
    with pytest.raises(ConfigError, match=r"conflicts with cells=2: give one share per cell"):
        assigner.check_cells(2)
    CellPartition().check_cells(2)


@pytest.mark.parametrize("biases", ["exchanged", "local"])
@pytest.mark.parametrize("scheme", ["alternate", "all"])
@pytest.mark.parametrize("cap", [1.0, 1.5, 3.0])
def test_optimized_sizes_are_the_fastest_that_the_cap_allows(biases, scheme, cap):
    """Brute force over the submodels of all sizes, by the numbers that they send."""
    widths = (12, 4, 6)  # all layers divide in the shares of most sizes
    for seed in range(4):
        seconds = np.random.default_rng(seed).uniform(1, 4, 3)
        given = cells_of(3, seconds, widths=widths)
        options = {"partition": scheme, "hidden_biases": biases}
        assigner = CellPartition(mask_sizes="optimized", size_cap=cap, **options)
        found = assigner.submodels(given)
        chosen = tuple(len(parts[0]) for parts in found.neurons)
        assert sum(chosen) == 12
        assert max(chosen) <= cap * 12 / 3

        def latency(split, seconds=seconds, scheme=scheme, biases=biases):
            """Seconds of the slowest cell; layers have the same share, in fractions."""
            share = np.array(split) / 12
            kept = (12 * share, np.full(3, 4.0) if scheme == "alternate" else 4 * share, 6 * share)
            partitioned = (0, 2) if scheme == "alternate" else (0, 1, 2)
            local = sum(kept[layer] for layer in partitioned) if biases == "local" else 0
            return (seconds * (parameters(kept, widths) - local)).max()

        splits = [p for p in product(range(1, 13), repeat=3) if sum(p) == 12]
        best = min(latency(p) for p in splits if max(p) <= cap * 4)
        assert latency(chosen) == pytest.approx(best, rel=1e-12)


def test_local_biases_are_trained_but_not_sent():
    """They do not count in the lengths; those of layers that all cells share do."""
    plain = CellPartition().submodels(cells_of(3))
    found = CellPartition(hidden_biases="local").submodels(cells_of(3))
    assert np.array_equal(found.places, plain.places)
    own = [len(first) + len(third) for first, third in plain.neurons]
    assert (plain.lengths - found.lengths).tolist() == own
    assert found.kept == ("layers.1.bias", "layers.7.bias")
    assert plain.kept == ()


@pytest.mark.parametrize("scale", ["none", "width"])
def test_submodels_train_on_the_scale_that_is_set(scale):
    assigner = CellPartition(submodel_scale=scale)
    found = assigner.submodels(cells_of(3))
    assert found.scaled == (scale == "width")
    assert assigner.redealt(cells_of(3), found, [0, 2]).scaled == (scale == "width")


@pytest.mark.parametrize("scheme", ["alternate", "all"])
@pytest.mark.parametrize("options", [{}, {"mask_sizes": "fixed", "mask_shares": (0.5, 0.3, 0.2)}])
def test_merged_cells_exchange_their_neurons_alone(scheme, options):
    """Sizes stay, and so do the neurons of the cell that still trains."""
    assigner = CellPartition(partition=scheme, **options)
    before = assigner.submodels(cells_of(3))
    widths = (12, 7) if scheme == "alternate" else MODEL
    moved = 0
    for number in range(3, 8):
        found = assigner.redealt(cells_of(3, number=number), before, [0, 2])
        assert_partition(found, widths)
        assert sizes(found) == sizes(before)
        assert np.array_equal(found.lengths, before.lengths)
        for layer in range(len(widths)):
            same = [np.array_equal(found.neurons[c][layer], before.neurons[c][layer])
                    for c in range(3)]  # fmt: skip
            assert same[1]
            moved += not all(same)
    assert moved > len(widths)
    again = cells_of(3, number=9)
    whole = assigner.redealt(again, before, [0, 1, 2])
    assert np.array_equal(whole.places, assigner.submodels(again).places)


def test_layers_with_fewer_neurons_than_cells_are_merged():
    """Two neurons of the last layer in four cells: two cells without any exchange none of it."""
    given = cells_of(4, widths=(8, 4, 2))
    assigner = CellPartition()
    before = assigner.submodels(given)
    empty = [cell for cell in range(4) if not len(before.neurons[cell][1])]
    assert len(empty) == 2
    found = assigner.redealt(cells_of(4, widths=(8, 4, 2), number=4), before, empty)
    assert_partition(found, (8, 2))
    assert sizes(found) == sizes(before)


@pytest.mark.parametrize(
    ("options", "merged", "cells", "message"),
    [
        ({}, 1, 1, r"cells=1 conflicts .* Use 2 or more cells"),
        ({}, 1, 3, "buffer=1 conflicts"),
        ({}, 4, 3, "buffer=4 conflicts with cells=3"),
        ({"mask_sizes": "optimized"}, 2, 3, 'mask_sizes="optimized" conflicts'),
        ({"mask_overlap": 0.5}, 2, 3, "mask_overlap=0.5 conflicts"),
        ({}, 2, 2, None),
        ({"mask_sizes": "fixed", "mask_shares": (0.5, 0.5)}, 2, 2, None),
    ],
)
def test_merges_of_some_cells(options, merged, cells, message):
    assigner = CellPartition(**options)
    if message is None:
        assigner.check_merged_cells(merged, cells)
        return
    with pytest.raises(ConfigError, match=message):
        assigner.check_merged_cells(merged, cells)


def test_every_cell_needs_a_neuron():
    assert min(map(min, sizes(CellPartition().submodels(cells_of(7, widths=(7, 4, 7)))))) == 1
    fixed = CellPartition(mask_sizes="fixed", mask_shares=(1 / 8,) * 8)
    for assigner in (CellPartition(), fixed):
        with pytest.raises(ConfigError, match=r"cells=8 conflicts with the model's 7 neurons"):
            assigner.submodels(cells_of(8, widths=(7, 4, 7)))
    assert sizes(fixed.submodels(cells_of(8, widths=(8, 4, 8)))) == 8 * [[1, 1]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mask_overlap": 0.5, "mask_sizes": "optimized"}, "choose mask_sizes uniform"),
        ({"mask_sizes": "fixed"}, "needs mask_shares"),
        ({"mask_sizes": "fixed", "mask_shares": (0.5, 0.500002)}, "has the sum 1.000002"),
    ],
)
def test_settings_that_conflict(settings, message):
    with pytest.raises(ValueError, match=message):
        CellPartition(**settings)
    shares = (0.333333, 0.333333, 0.333334 - 5e-7)  # written in decimals
    assert CellPartition(mask_sizes="fixed", mask_shares=shares).mask_shares == shares


def test_sizes_of_a_design():
    fixed = CellPartition().design_sizes.fixed((0.7, 0.3))
    assert (fixed.mask_sizes, fixed.mask_shares) == ("fixed", (0.7, 0.3))
    assert fixed.design_sizes.fixed(None) == CellPartition()
    optimized = fixed.design_sizes.optimized()
    assert (optimized.mask_sizes, optimized.mask_shares) == ("optimized", None)
    assert (fixed.fixed_shapes, optimized.fixed_shapes) == (True, False)
    partition, cap = CellPartition(size_cap=2.5, partition="all").design_sizes.limit(
        cells_of(2).partition
    )
    assert (partition.scheme, partition.width, cap) == ("all", 12, 2.5)
