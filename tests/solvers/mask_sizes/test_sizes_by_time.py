"""``optimize_sizes_by_time`` against the exact method, brute force and the joint solver."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import EqualBands, EqualSlots, Load, Network, Stream
from solvers import (
    OptimalBands,
    Status,
    optimize_mask_sizes,
    optimize_masks_and_bands,
    optimize_sizes_by_time,
)

STEPS = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, 2.5])


@st.composite
def bounds(draw, cells, units):
    share = units / cells

    def each(values):
        return draw(st.lists(values, min_size=cells, max_size=cells))

    return {
        "cap": [(share + 1e-9) * x for x in each(st.sampled_from([0.3, 1.5, 2.2, 10, np.inf]))],
        "lower": [share * x for x in each(st.sampled_from([0.0, 0.0, 0.0, 0.4, 0.9, 1.2]))],
        "granularity": draw(st.sampled_from([1, 1, 2, 3])),
    }


@st.composite
def linear(draw):
    cells, units = draw(st.integers(1, 12)), draw(st.integers(0, 400))
    values = draw(st.sampled_from([[0.5, 1.0, 1.5, 2.0], [0.1, 0.2, 0.3, 0.7], [1e-3, 1.0, 30.0]]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    seconds = random.choice(values, cells)
    offset = draw(st.sampled_from([0.0, 1.0, 1e17])) * random.choice([0.0, 1.0, 2.5], cells)
    return seconds, offset, units, draw(bounds(cells, units))


def law(seconds, offset, calls=None):
    def times(sizes):
        if calls is not None:
            calls.append(len(sizes))
        return seconds * sizes + offset

    return times


@given(linear(), st.integers(2, 40))
def test_linear_laws_give_the_sizes_of_the_exact_method(problem, candidates):
    """Equal sizes, so that ties are broken in the same way, and equal messages."""
    seconds, offset, units, limits = problem
    exact = optimize_mask_sizes(seconds, units, offset_seconds=offset, **limits)
    found = optimize_sizes_by_time(
        law(seconds, offset), units, cells=len(seconds), candidates=candidates, **limits
    )
    assert np.array_equal(found.value, exact.value)
    for field in ("objective", "bound", "gap", "status", "message"):
        assert getattr(found, field) == getattr(exact, field)


@st.composite
def tables(draw):
    """Seconds [cells, sizes], nondecreasing, with many ties and flat parts, and inf at the end."""
    cells, units = draw(st.integers(1, 3)), draw(st.integers(0, 12))
    table = []
    for _ in range(cells):
        rises = draw(st.lists(STEPS, min_size=units + 1, max_size=units + 1))
        row = np.cumsum(rises)
        row[draw(st.integers(0, 6)) + units // 2 :] = draw(st.sampled_from([30.0, 30.0, np.inf]))
        table.append(row)
    return np.array(table), units, draw(bounds(cells, units))


@given(tables(), st.integers(2, 5))
def test_no_split_of_a_table_is_faster(problem, candidates):
    table, units, limits = problem
    cells = np.arange(len(table))
    found = optimize_sizes_by_time(
        lambda sizes: table[cells, sizes],
        units,
        cells=len(table),
        candidates=candidates,
        **limits,
    )
    choices = [
        [p for p in range(0, units + 1, limits["granularity"]) if low <= p <= cap]
        for low, cap in zip(limits["lower"], limits["cap"], strict=True)
    ]
    splits = [sizes for sizes in product(*choices) if sum(sizes) == units]
    best = min((table[cells, sizes].max() for sizes in splits), default=np.inf)
    assert found.objective == found.bound == best
    if best == np.inf:
        assert found.status is Status.INFEASIBLE
        assert found.value is None
        assert found.message
        return
    assert found.status is Status.OPTIMAL
    assert tuple(found.value) in splits
    assert table[cells, found.value].max() == best
    # Steps in order of their seconds; ties go to the cells with the smallest index.
    step = limits["granularity"]
    low = [choice[0] for choice in choices]
    every = sorted(
        (table[j, p], j, p) for j, choice in enumerate(choices) for p in choice if p > low[j]
    )
    sizes = np.array(low)
    for _, cell, _ in every[: (units - sum(low)) // step]:
        sizes[cell] += step
    assert found.value.tolist() == sizes.tolist()


@pytest.mark.parametrize("cells", [1, 4, 100])
def test_two_calls_for_200_neurons(cells):
    calls = []
    seconds = np.random.default_rng(1).uniform(1, 5, cells)
    optimize_sizes_by_time(law(seconds, 0.0, calls), 200, cells=cells)
    assert len(calls) <= 2
    assert max(calls) <= 32
    calls.clear()
    optimize_sizes_by_time(law(seconds, 0.0, calls), 10**9, cells=cells)
    assert len(calls) <= 12


def test_cells_that_never_end():
    times = law(np.array([1.0, 2.0]), 0.0)

    def dead(sizes):
        return np.where((np.arange(2) == 1) & (sizes > 3), np.inf, times(sizes))

    assert optimize_sizes_by_time(dead, 20, cells=2).value.tolist() == [17, 3]
    found = optimize_sizes_by_time(dead, 20, cells=2, cap=15, candidates=3)
    assert found.status is Status.INFEASIBLE
    assert found.message == (
        "total is 20, but the cells end with at most 18 units: cell 1 never ends with 4 units"
    )
    found = optimize_sizes_by_time(dead, 20, cells=2, lower=4)
    assert found.message == "cell 1 never ends with 4 units, its lower bound"


@pytest.mark.parametrize(
    ("times", "more", "message"),
    [
        (lambda p: -1.0 * p, {}, "seconds returned -.*: return seconds >= 0"),
        (lambda p: np.nan * p, {}, "seconds returned nan: return seconds >= 0"),
        (lambda p: p.sum(-1), {}, r"seconds returned shape \(11,\) for sizes of shape \(11, 2\)"),
        (lambda p: 20.0 - p, {}, "seconds decreases: cell 0 takes 20 s with 0 units and 19 s wi"),
        (lambda p: p, {"candidates": 1}, "candidates is 1: give a whole number >= 2"),
        (lambda p: p, {"cap": [1, 2, 3]}, r"cap has shape \(3,\)"),
    ],
)
def test_wrong_arguments(times, more, message):
    with pytest.raises(ValueError, match=message):
        optimize_sizes_by_time(times, 10, **{"cells": 2, **more})


def test_rounding_errors_of_the_law_are_ignored():
    noise = np.random.default_rng(0).uniform(0, 1e-13, 101)
    found = optimize_sizes_by_time(lambda p: 1 + noise[p] * (p < 50), 100, cells=2, candidates=9)
    assert found.objective == pytest.approx(1, rel=1e-12)
    assert found.value.sum() == 100


def radio(seed, cells, clients):
    """A draw, and seconds of the cells for sizes [candidates, cells] with a given access."""
    random = np.random.default_rng(seed)
    number = cells * clients
    network = Network.from_snr(
        np.repeat(np.arange(cells), clients),
        cpu_hz=random.uniform(0.2e9, 2e9, number),
        snr_db=random.uniform(-10, 20, number),
        bandwidth_hz=random.uniform(2e5, 2e6, cells),
    )
    draw = network.draw(Stream(seed))

    def law(access):
        def seconds(sizes):
            each = sizes[:, network.cell_of]
            service = access.serve(Load(1e5 + 2e6 * each, 50 + 300 * each), draw)
            return network.over_cells(np.maximum, service.seconds)

        return seconds

    return draw, law


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("units", "more"), [(40, {}), (60, {"cap": 25, "granularity": 5})])
def test_with_optimal_bands_sizes_and_bands_are_jointly_optimal(seed, units, more):
    draw, law = radio(seed, 3, 4)
    network = draw.network
    found = optimize_sizes_by_time(law(OptimalBands()), units, cells=3, **more)
    cpu = network.by_cell(network.cpu_hz)
    joint = optimize_masks_and_bands(
        32 * 300.0 * np.ones((3, 4)),
        2e6 / cpu,
        network.by_cell(draw.snr_hz),
        network.bandwidth_hz,
        units,
        offset_bits=32 * 50.0,
        offset_seconds=1e5 / cpu,
        **more,
    )
    assert found.objective == pytest.approx(joint.objective, rel=1e-9)
    assert found.value.tolist() == joint.value.sizes.tolist()
    for access in (EqualBands(), EqualSlots()):
        equal = optimize_sizes_by_time(law(access), units, cells=3, **more)
        assert found.objective < equal.objective
