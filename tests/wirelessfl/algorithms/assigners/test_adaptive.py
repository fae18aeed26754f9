"""Adaptive widths: brute force over all widths of few clients, and what they refuse."""

from itertools import product

import numpy as np
import pytest

from tests.wirelessfl.algorithms.assigners.contexts import WIDTHS, context, parameters
from wirelessfl.algorithms.assigners.arbitrary import Covered, Crossed
from wirelessfl.algorithms.assigners.ordered import Nested
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels import coverage, levels_of

LEVELS = [(1, 1, 1), (2, 1, 1), (3, 2, 1), (4, 2, 2), (4, 3, 2), (5, 3, 2), (6, 4, 3)]
"""Widths by ratio: floor(r W) of each layer, at least 1, for r = k / W."""
SIZES = np.array([parameters(counts) for counts in LEVELS])
SPEEDS = (1.0, 0.7, 1.9, 1.2)
FASTEST = {"budget": "fastest", "min_coverage": 2}


def counts_of(assigner, given):
    found = assigner.client_submodels(given)
    return [tuple(len(neurons) for neurons in mine) for mine in found.chosen]


def test_levels_by_hand():
    assert levels_of(context([0]).neurons()).widths.tolist() == [list(one) for one in LEVELS]


@pytest.mark.parametrize("deadline", [33 * 1.9, 33 * 1.9 * (1 - 1e-9), 64.0])
def test_alone_each_client_takes_all_that_ends_in_time(deadline):
    """In any cell; a client may end at the deadline itself."""
    assigner = Nested(budget="deadline", deadline=deadline)
    found = counts_of(assigner, context([0, 1, 0, 1], SPEEDS))
    best = [max(k for k in range(7) if SIZES[k] * s <= deadline) for s in SPEEDS]
    assert found == [LEVELS[k] for k in best]


def test_clients_that_wait_for_each_other_leave_no_level_unused():
    """Brute force over all levels of each cell: in time, with the largest smallest level."""
    node, deadline = np.array([0, 1, 0, 1, 0]), 110.0
    speeds = np.array([1.0, 0.7, 0.4, 1.2, 0.3])
    given = context(node, speeds, coupled=True)
    levels = Nested(budget="deadline", deadline=deadline).levels(given)
    for cell in range(2):
        rows = np.flatnonzero(node == cell)

        def late(choice, rows=rows):
            return (SIZES[np.array(choice)] * speeds[rows]).sum() > deadline

        chosen = levels[rows]
        assert not late(chosen)
        for client in range(len(rows)):
            more = chosen + (np.arange(len(rows)) == client)
            assert more.max() > 6 or late(more)
        fits = [c for c in product(range(7), repeat=len(rows)) if not late(c)]
        assert min(chosen) == max(min(choice) for choice in fits)
    alone = Nested(budget="deadline", deadline=deadline).levels(context(node, speeds))
    assert (levels <= alone).all()
    assert (levels < alone).any()


@pytest.mark.parametrize("wanted", [1, 2])
def test_the_fastest_widths_cover_each_cell_and_use_its_time(wanted):
    """Brute force over all widths of each cell; cells wait for the slower one."""
    node = np.array([0, 1, 0, 1, 0])
    speeds = np.array([1.0, 0.7, 1.9, 1.2, 0.9])
    assigner = Covered(budget="fastest", min_coverage=wanted)
    given = context(node, speeds)
    soonest = []
    for cell in range(2):
        rows = np.flatnonzero(node == cell)
        ends = [
            (SIZES[np.array(choice)] * speeds[rows]).max()
            for choice in product(range(7), repeat=len(rows))
            if (np.array([LEVELS[k] for k in choice]).sum(0) >= wanted * np.array(WIDTHS)).all()
        ]
        soonest.append(min(ends))
    end = max(soonest)
    assert soonest[0] != soonest[1]
    best = [max(k for k in range(7) if SIZES[k] * s <= end) for s in speeds]
    assert counts_of(assigner, given) == [LEVELS[k] for k in best]
    found = assigner.client_submodels(given)
    layers = given.neurons().layers
    for cell in range(2):
        mine = [found.chosen[row] for row in np.flatnonzero(node == cell)]
        assert min(times.min() for times in coverage(mine, layers)) >= wanted


@pytest.mark.parametrize(
    ("assigner", "changes", "message"),
    [
        (
            Nested(budget="deadline", deadline=26.5),
            {},
            r"deadline is 26.5: in round 3 client 9 needs 26.6 seconds .* Raise deadline, cpu_hz",
        ),
        (
            Nested(budget="deadline", deadline=26.5),
            {"coupled": True},
            r"client 9 needs 26.6 seconds for the smallest",
        ),
        (
            Nested(budget="deadline", deadline=1e9),
            {"seconds": (1.0, 1.0, np.inf, 1.0)},
            r"budget is 'deadline': the data rate of client 9 in round 3 is 0",
        ),
        (
            Covered(**FASTEST),
            {"coupled": True},
            r'budget="fastest" conflicts with an uplink in which clients of a cell wait',
        ),
        (
            Covered(budget="fastest", min_coverage=3),
            {},
            r"round 3: .* Lower min_coverage, or raise clients_per_round",
        ),
        (
            Nested(capacities=(0.5,), min_coverage=1),
            {},
            r"of the 2 clients of cell 0 in round 3, but min_coverage is 1",
        ),
    ],
)
def test_refusals_name_client_cell_and_remedy(assigner, changes, message):
    given = context([0, 1, 0, 1], **({"seconds": SPEEDS, "senders": [4, 2, 9, 0]} | changes))
    with pytest.raises(ConfigError, match=message):
        assigner.client_submodels(given)


def test_senders_are_checked_with_the_smallest_submodel():
    """As many clients as there are take little time; other budgets need no check."""
    given = context([0, 1, 0, 1], SPEEDS, senders=[4, 2, 9, 0])
    Nested(budget="deadline", deadline=14 * 1.9).check_senders(given)
    with pytest.raises(ConfigError, match=r"client 9 needs 26.6 seconds"):
        Nested(budget="deadline", deadline=14 * 1.9 - 1e-6).check_senders(given)
    silent = context([0, 0], (1.0, np.inf), senders=[3, 8])
    with pytest.raises(ConfigError, match="data rate of client 8"):
        Nested(budget="deadline", deadline=1e9).check_senders(silent)
    Nested(capacities=(0.5,)).check_senders(silent)


def test_the_coverage_of_a_star_has_no_cell_and_each_cell_has_its_own():
    """Two halves of the neurons, in one cell or in two."""
    assigner = Covered(capacities=(0.5,), min_coverage=1)
    star = context([0, 0], widths=(6, 4, 2))
    assert assigner.client_submodels(star) is not None
    with pytest.raises(ConfigError, match=r"by none of the 1 client of cell 0 in round 3"):
        assigner.client_submodels(context([0, 1], widths=(6, 4, 2)))
    with pytest.raises(ConfigError, match=r"by none of the 1 client of round 3"):
        assigner.client_submodels(context([0], widths=(6, 4, 2)))
    full = Covered(capacities=(1.0,), min_coverage=2)
    with pytest.raises(ConfigError, match=r"only 1 of the 1 client of cell 1 in round 3"):
        full.client_submodels(context([0, 1, 0]))


def test_the_coverage_of_weights_needs_more():
    """Two halves of each layer cover all neurons, and half of the weights between layers."""
    halves = {"capacities": (0.5,), "min_coverage": 1}
    given = context(np.zeros(4, int), widths=(6, 4))
    assert Covered(**halves).client_submodels(given) is not None
    with pytest.raises(ConfigError, match="min_coverage is 1"):
        Covered(**halves, coverage_of="weights").client_submodels(given)
    found = Crossed(**halves, coverage_of="weights").client_submodels(given)
    pairs = [set(product(*map(np.ndarray.tolist, mine))) for mine in found.chosen]
    assert set.union(*pairs) == set(product(range(6), range(4)))


def test_widths_are_those_of_the_client_not_of_its_place():
    assigner = Nested(widths=(1.0, 0.5, 0.2, 0.75))
    given = context([0, 0, 0], senders=[3, 0, 2], clients=4)
    assert assigner.shares(given).tolist() == [0.75, 1.0, 0.2]
    assert counts_of(assigner, given) == [(4, 3, 2), (6, 4, 3), (1, 1, 1)]
    np.testing.assert_array_equal(
        assigner.design_sizes.lengths(given), [parameters((4, 3, 2)), 87, parameters((1, 1, 1))]
    )
    np.testing.assert_array_equal(
        assigner.client_submodels(given).lengths, assigner.design_sizes.lengths(given)
    )
    assigner.check_clients(4)
    with pytest.raises(ConfigError, match="widths has 4 entries, and there are 3 clients"):
        assigner.check_clients(3)
    Nested().check_clients(3)


@pytest.mark.parametrize(
    ("settings", "clients", "expected"),
    [
        ({"widths": (1.0, 0.5, 0.25)}, 3, (1 + 2 + 4) / 3),
        ({"capacities": (1.0, 0.5)}, 4, 1.5),
        ({"capacities": (1.0, 0.5)}, 3, 4 / 3),  # the first one has one client more
        ({"capacities": (1.0, 0.5), "budget": "bytes"}, 4, 1.0),
        ({"budget": "deadline", "deadline": 1.0}, 4, 1.0),
    ],
)
def test_mean_reciprocal_widths(settings, clients, expected):
    assert Nested(**settings).design_sizes.reciprocal_width(clients) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("settings", "fixed", "ahead"),
    [
        ({}, True, False),
        ({"budget": "bytes"}, True, False),
        ({"min_coverage": 1}, True, True),
        ({"budget": "deadline", "deadline": 1.0}, False, True),
        (FASTEST, False, True),
    ],
)
def test_widths_from_the_channels_are_planned_ahead(settings, fixed, ahead):
    """Such rounds have no lengths before they are planned."""
    assigner = Nested(**settings)
    assert (assigner.fixed_shapes, assigner.plans_ahead) == (fixed, ahead)
    assert (assigner.design_sizes.lengths(context([0, 0])) is None) == ahead


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": "deadline"}, "needs a deadline"),
        ({"budget": "fastest"}, "conflicts with min_coverage=0"),
        (FASTEST | {"coverage_of": "weights"}, "coverage_of='weights' conflicts"),
    ],
)
def test_settings_that_conflict(settings, message):
    with pytest.raises(ValueError, match=message):
        Nested(**settings)
    assert Nested(min_coverage=1, coverage_of="weights").coverage_of == "weights"


def test_requests_cannot_promise_a_coverage():
    """A deadline is of each client alone."""
    Nested().check_requests("schedule")
    Nested(budget="deadline", deadline=1.0).check_requests("schedule")
    with pytest.raises(ConfigError, match="min_coverage=1 conflicts with schedule"):
        Nested(min_coverage=1).check_requests("schedule")
    with pytest.raises(ConfigError, match=r'budget="fastest" conflicts .* or budget "deadline"'):
        Nested(**FASTEST).check_requests("schedule")
    with pytest.raises(ConfigError, match="min_coverage=1 conflicts with schedule"):
        Nested(budget="deadline", deadline=1.0, min_coverage=1).check_requests("schedule")


@pytest.mark.parametrize("scale", ["none", "width"])
def test_submodels_train_on_the_scale_that_is_set(scale):
    assigner = Nested(submodel_scale=scale, capacities=(0.5,))
    assert assigner.client_submodels(context([0])).scaled == (scale == "width")
    assert assigner.design_sizes.of == "clients"
