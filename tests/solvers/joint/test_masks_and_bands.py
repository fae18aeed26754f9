"""``optimize_masks_and_bands`` against all integer sizes, and against its two parts."""

import itertools

import numpy as np
import pytest

from solvers import (
    Status,
    allocate_bandwidth,
    optimize_mask_sizes,
    optimize_masks_and_bands,
)


def drawn(random, cells, clients):
    return (
        10 ** random.uniform(3, 5, (cells, clients)),
        random.uniform(0, 0.3, (cells, clients)),
        10 ** random.uniform(4, 8, (cells, clients)),
        10 ** random.uniform(5, 6, cells),
    )


@pytest.mark.parametrize("seed", range(10))
def test_no_other_sizes_end_sooner(seed):
    """All sizes of three cells, with layers that all cells share."""
    random = np.random.default_rng(seed)
    bits, seconds, snr_hz, band = drawn(random, 3, 4)
    more_bits, more_seconds, *_ = drawn(random, 3, 4)
    found = optimize_masks_and_bands(
        bits, seconds, snr_hz, band, 9, offset_bits=more_bits, offset_seconds=more_seconds, cap=6
    )
    sizes = np.arange(7)[:, None, None]
    table = allocate_bandwidth(
        more_bits + sizes * bits, more_seconds + sizes * seconds, snr_hz, band
    ).objective
    best = min(
        max(table[p, j] for j, p in enumerate(sizes))
        for sizes in itertools.product(range(7), repeat=3)
        if sum(sizes) == 9
    )
    assert found.status is Status.OPTIMAL
    assert found.gap < 1e-14
    assert found.objective == pytest.approx(best, rel=1e-13)
    assert found.value.sizes.sum() == 9
    np.testing.assert_allclose(found.value.bandwidth_hz.sum(-1), band, rtol=1e-13)


def test_without_shared_layers_bands_and_sizes_separate():
    """Then sizes are those of ``optimize_mask_sizes`` with the least seconds of one unit."""
    random = np.random.default_rng(1)
    bits, seconds, snr_hz, band = drawn(random, 6, 10)
    found = optimize_masks_and_bands(bits, seconds, snr_hz, band, 300, cap=80, granularity=4)
    unit = allocate_bandwidth(bits, seconds, snr_hz, band)
    apart = optimize_mask_sizes(unit.objective, 300, cap=80, granularity=4)
    assert found.objective == pytest.approx(apart.objective, rel=1e-13)
    assert (found.value.sizes == apart.value).all()
    slowest = (unit.objective * apart.value).argmax()
    np.testing.assert_allclose(found.value.bandwidth_hz[slowest], unit.value[slowest], rtol=1e-9)


def test_a_batch_equals_its_problems():
    random = np.random.default_rng(2)
    bits, seconds, snr_hz, band = drawn(random, 12, 5)
    shape = (4, 3)
    args = bits.reshape(*shape, 5), seconds.reshape(*shape, 5), snr_hz.reshape(*shape, 5)
    found = optimize_masks_and_bands(*args, band.reshape(shape), 40, lower=2)
    for row in range(4):
        one = optimize_masks_and_bands(
            *(array[row] for array in args), band.reshape(shape)[row], 40, lower=2
        )
        assert one.objective == pytest.approx(found.objective[row], rel=1e-14)
        assert (one.value.sizes == found.value.sizes[row]).all()


def test_a_million_units():
    """Bisection lists few sizes; also if units cost nothing, so that all sizes end together."""
    random = np.random.default_rng(3)
    bits, seconds, snr_hz, band = drawn(random, 4, 15)
    found = optimize_masks_and_bands(bits, seconds, snr_hz, band, 10**6, cap=4 * 10**5)
    assert found.gap < 1e-13
    free = optimize_masks_and_bands(0, 0, snr_hz, band, 10**6, offset_bits=bits)
    assert free.value.sizes.sum() == 10**6
    assert free.gap < 1e-13


def test_a_cell_that_cannot_send_trains_nothing():
    found = optimize_masks_and_bands(1e4, 0, [[1e7, 1e7], [1e7, 0]], 1e6, 10)
    assert found.value.sizes.tolist() == [10, 0]
    stuck = optimize_masks_and_bands(1e4, 0, [[1e7, 1e7], [1e7, 0]], 1e6, 10, cap=6)
    assert stuck.status is Status.INFEASIBLE
    named = "cell 1: client 1 cannot send: snr_hz is 0"
    assert found.message == named
    few = "total is 10, but only 6 units are in cells that can send them"
    assert stuck.message == f"{few}; {named}"
    needed = optimize_masks_and_bands(1e4, 0, [[1e7, 1e7], [1e7, 0]], 1e6, 10, lower=1)
    assert (needed.status, needed.message) == (Status.INFEASIBLE, named)
    batch = optimize_masks_and_bands(1e4, 0, [[[1e7], [1e7]], [[1e7], [0]]], 1e6, 10)
    assert batch.message.startswith("1 of 2 problems go without clients; item [1]: cell 1: client")
    batch = optimize_masks_and_bands(1e4, 0, [[[1e7]], [[0.0]]], 1e6, 10, offset_bits=1.0)
    assert batch.status.tolist() == [Status.OPTIMAL, Status.INFEASIBLE]
    assert batch.value.sizes.tolist() == [[10], [-1]]
    few = optimize_masks_and_bands(1e4, 0, [[1e7], [1e7]], 1e6, 10, cap=4)
    assert few.message == "caps add up to 8 units, 2 units short of total 10"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"snr_hz": [1.0, 2.0]}, r"bits_per_unit has shape \(2,\): give \[..., cells, clients\]"),
        ({"cap": [1, 2, 3]}, "cap has shape"),
    ],
)
def test_bad_arguments_are_named(change, message):
    good = {
        "bits_per_unit": 1.0,
        "seconds_per_unit": 0.0,
        "snr_hz": [[1.0, 1.0], [1.0, 1.0]],
        "bandwidth_hz": 1.0,
        "total": 4,
    }
    with pytest.raises(ValueError, match=message):
        optimize_masks_and_bands(**(good | change))
