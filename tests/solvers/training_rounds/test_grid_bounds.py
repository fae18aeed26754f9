"""Limits, fixed parts and bounds that hold at every point of a grid, by enumeration."""

import itertools

import numpy as np
import pytest

from solvers.joint.sized_energy_cells import SizedEnergyCells
from solvers.training_rounds.grid_problem import proportion, read_problem
from solvers.training_rounds.grid_search import GridSearch
from tests.solvers.training_rounds.networks import (
    besides,
    drawn,
    least_joules,
    least_seconds,
    problem_of,
    rounds,
    solved,
    splits,
)

LOCAL, EDGE, LARGEST = [1, 3], [1, 2], [1.0, 4 / 3, 2.0]
CAPS = (3, 4, 6)  # m total / cells for 6 units of 2 cells
UNEQUAL = {
    "none": {},
    "extra": {"extra_seconds": [[0.3, 0.0], [0.0, 0.2]]},
    "extra per unit": {"extra_seconds_per_unit": [0.02, 0.15]},
    "equal extra": {"extra_seconds": 0.25},
    "start": {"start_seconds": [[0.3, 0.0], [0.1, 0.2]], "start_seconds_per_unit": [0.0, 0.05]},
}
"""Seconds that cells lose, in two draws of two cells."""


def read(network, total, others=None, weights=(1.0, 0.0), limit=None, **changes):
    """The problem on the grid of ``LOCAL``, ``EDGE`` and ``largest``."""
    largest = changes.pop("largest", LARGEST)
    problem, _ = problem_of(**network, total=total, **(others or {}), **changes)
    grid = LOCAL, EDGE, largest
    return read_problem(problem, rounds(*grid), grid, (weights, limit))


def searched(network, others, weights, limit):
    """The grid [largest, local steps, edge rounds], solved at all points, and at few of them."""
    problem = read(network, 6, others, weights, limit)
    return [GridSearch(problem).run(within) for within in (np.inf, 0.0)]


def assert_bounds(found, costs):
    """Bounds and costs enclose those of the enumeration, where points are solved or left out.

    Sizes of points that are not the best are rounded from fractions.
    """
    known = np.isfinite(costs)
    every, few = found
    assert (every.costs[known] <= costs[known] * 1.1).all()
    assert (every.bounds[known] >= costs[known] * 0.85).all()
    for one in found:
        assert (one.bounds[known] <= costs[known] * (1 + 1e-9)).all()
        assert np.isinf(one.costs[~known]).all()
        assert not (one.costs[known] < costs[known] * (1 - 1e-9)).any()
        assert np.nanmin(one.costs) == pytest.approx(costs.min(), rel=1e-4)
    assert np.isnan(few.costs).any()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("others", UNEQUAL)
def test_bounds_of_seconds_hold_at_every_point(others):
    """Larger masks, fewer local steps and more edge rounds never make a phase longer."""
    network, others = drawn(31, spread=1.5), UNEQUAL[others]
    costs = np.full((3, 2, 2), np.inf)
    for (m, cap), (h, local), (e, edge) in itertools.product(
        enumerate(CAPS), enumerate(LOCAL), enumerate(EDGE)
    ):
        reached = rounds(LOCAL, EDGE, LARGEST)[m, h, e]
        for sizes in splits(6, 2, cap):
            phases = least_seconds(network, sizes, local)
            seconds = (edge * phases + besides(others, sizes, edge)).max(-1).mean()
            costs[m, h, e] = min(costs[m, h, e], reached * seconds)
    assert_bounds(searched(network, others, (1.0, 0.0), None), costs)
    if others == {}:  # a plan has the least of all masks, for each H and E
        plan = solved(
            rounds(LOCAL, EDGE, LARGEST), **network, total=6, largest=LARGEST,
            local_steps=LOCAL, edge_rounds=EDGE, within=np.inf,
        ).value  # fmt: skip
        least = costs.min(0)
        assert (plan.bounds <= least * (1 + 1e-9)).all()
        assert (plan.costs >= least * (1 - 1e-9)).all()
        assert (plan.costs <= least * 1.1).all()
        assert (costs.max(0) > least * 1.15).any()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("others", ["none", "extra per unit", "start"])
def test_bounds_of_joules_hold_at_every_point_with_a_limit(others):
    """Rounds take max_seconds / R: where uploads cost most, more local steps may cost less."""
    network, others = drawn(33, spread=1.0), UNEQUAL[others]
    network["cycles_per_unit"] = network["cycles_per_unit"] / 100
    fastest = searched(network, others, (1.0, 0.0), None)[0]
    limit = 1.6 * float(np.sort(fastest.costs.ravel())[6])
    costs = np.full((3, 2, 2), np.inf)
    for (m, cap), (h, local), (e, edge) in itertools.product(
        enumerate(CAPS), enumerate(LOCAL), enumerate(EDGE)
    ):
        reached = rounds(LOCAL, EDGE, LARGEST)[m, h, e]
        for sizes in splits(6, 2, cap):
            lost = np.broadcast_to(besides(others, sizes, edge), (2, 2))
            ends = (limit / reached - lost) / edge
            if (ends >= least_seconds(network, sizes, local)).all():
                joules = edge * least_joules(network, sizes, local, ends).mean()
                costs[m, h, e] = min(costs[m, h, e], reached * joules)
    assert_bounds(searched(network, others, (0.0, 1.0), limit), costs)


@pytest.mark.parametrize(("cells", "total"), [(2, 22), (3, 11), (3, 49), (4, 26)])
def test_a_limit_on_the_largest_mask_in_units_is_exact(cells, total):
    """m = p N / total allows for masks of p units, although m total / N may round below p."""
    network, units = drawn(4, draws=1, cells=cells, clients=1), np.arange(1, total)
    shares = units * cells / total
    assert (np.floor(shares * total / cells) < units).any()

    def most(shares, **changes):
        return read(network, total, largest=shares, **changes).high

    every = np.repeat(units[:, None], cells, 1)
    np.testing.assert_array_equal(most(shares), every)
    np.testing.assert_array_equal(most(shares * (1 + 0.5 / total)), every)
    np.testing.assert_array_equal(most(shares * (1 - 1e-9)), every - 1)
    np.testing.assert_array_equal(most(shares, cap=4), np.minimum(every, 4))
    steps = read(network, 3 * total, largest=shares, granularity=3).high
    np.testing.assert_array_equal(steps, every)


def test_without_a_limit_the_largest_mask_is_that_of_the_design():
    network = drawn(31, spread=1.5)
    plan = solved(
        rounds(LOCAL, EDGE), **network, total=6, local_steps=LOCAL, edge_rounds=EDGE
    ).value
    assert plan.largest == pytest.approx(plan.sizes.max() / 3)
    assert plan.largest > 1


def cells_of(bits, cycles, more_bits, more_cycles):
    """Two draws of two cells with two clients."""
    loads = [np.array(each, float).reshape(4, 2) for each in (bits, cycles, more_bits, more_cycles)]
    ones = np.ones((4, 2))
    return SizedEnergyCells(*loads, ones, ones, ones, ones, np.ones(4))


BITS = [[3e4, 1e4], [2e4, 5e4], [1e4, 1e4], [7e4, 2e4]]
CYCLES = [[1e6, 2e6], [3e6, 1e6], [2e6, 2e6], [4e6, 5e6]]


@pytest.mark.parametrize(
    ("units", "change", "steps", "exact"),
    [
        ((3.0, 0.7), {}, (3.0, 0.7), True),
        ((3.0, 0.0), {}, (3.0, 0.0), True),
        ((3.0, 0.7), {(0, 0, 1): 2.5}, (2.5, 0.7), False),  # the bits of a client in draw 0
        ((3.0, 0.7), {(0, 3, 0): 0.1}, (3.0, 0.1), False),  # in cell 1 of draw 1
        ((3.0, 0.7), {(1, 2, 1): 4.0}, (3.0, 0.7), False),  # more cycles than in proportion
        ((3.0, 0.7), {(1, 1, 0): 0.7 * (1 + 1e-15)}, (3.0, 0.7), True),
    ],
)
def test_the_fixed_part_is_the_smallest_ratio_of_a_cell(units, change, steps, exact):
    """Of all draws and clients, bits and cycles; exact if all of them agree."""
    ratio = np.array([[[u, u] for u in 2 * units]] * 2)
    for place, value in change.items():
        ratio[place] = value
    cells = cells_of(BITS, CYCLES, ratio[0] * BITS, ratio[1] * CYCLES)
    found, agree = proportion(cells, 2)
    assert found == pytest.approx(steps, rel=1e-12)
    assert agree == exact


def test_clients_without_work_do_not_count_in_the_fixed_part():
    bits, cycles = np.array(BITS), np.array(CYCLES)
    bits[:, 1] = cycles[:, 1] = 0
    found, exact = proportion(cells_of(bits, cycles, 2 * bits, 2 * cycles), 2)
    assert (found.tolist(), exact) == ([2.0, 2.0], True)
    more = 2 * bits
    more[1, 1] = 1.0  # a client that sends the shared layers alone
    found, exact = proportion(cells_of(bits, cycles, more, 2 * cycles), 2)
    assert (found.tolist(), exact) == ([2.0, 2.0], False)
    none = np.zeros((4, 2))
    found, exact = proportion(cells_of(none, none, none, none), 2)
    assert (found.tolist(), exact) == ([0.0, 0.0], True)


def test_the_bound_of_a_solution_is_the_least_of_its_grid():
    """The objective is the cost of the plan among those of the grid, and the gap is theirs."""
    network = drawn(14, cells=3)
    found = solved(
        rounds(LOCAL, EDGE), **network, total=30, weights=(1.0, 5.0), local_steps=LOCAL,
        edge_rounds=EDGE,
    )  # fmt: skip
    assert found.bound == found.value.bounds.min() < found.objective
    assert found.objective == np.nanmin(found.value.costs)
    assert found.gap == pytest.approx(1 - found.bound / found.objective, rel=1e-6)
