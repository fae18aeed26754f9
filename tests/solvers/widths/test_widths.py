"""Widths match brute force, a mixed-integer program, explicit masks and hand-computed examples."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse

from solvers import Status, coverage_frontier, fastest_widths, widths_by_deadline
from solvers.widths.width_problem import WidthLevels

SECONDS = st.one_of(st.integers(0, 5).map(float), st.floats(0, 3))  # ties, and zeros


@st.composite
def problems(draw, clients=5, levels=4):
    """Seconds [clients, levels] and neurons [layers, levels], non-decreasing in the level."""
    clients, levels = draw(st.integers(1, clients)), draw(st.integers(1, levels))
    row = st.lists(SECONDS, min_size=levels, max_size=levels).map(sorted)
    layer = st.lists(st.integers(1, 9), min_size=levels, max_size=levels).map(sorted)
    seconds = draw(st.lists(row, min_size=clients, max_size=clients))
    return np.array(seconds), np.array(draw(st.lists(layer, min_size=1, max_size=2)))


def slowest(seconds, levels):
    return seconds[np.arange(len(seconds)), levels].max()


def covers(neurons, levels, coverage):
    return (neurons[:, levels].sum(-1) >= coverage * neurons[:, -1]).all()


def choices(seconds):
    """All combinations of one level per client."""
    clients, levels = seconds.shape
    return [np.array(choice) for choice in product(range(levels), repeat=clients)]


def dealt_masks(widths, full):
    """Circular masks [clients, full]: each client's arc starts where the previous one ended."""
    masks, begin = np.zeros((len(widths), full), dtype=bool), 0
    for mask, width in zip(masks, widths, strict=True):
        mask[(begin + np.arange(width)) % full] = True
        begin += width
    return masks


def random_problem(seed):
    rng = np.random.default_rng(seed)
    clients, levels, layers = rng.integers(2, 25), rng.integers(2, 9), rng.integers(1, 4)
    seconds = rng.integers(1, 200, (clients, levels)).cumsum(1) / 8  # exactly representable
    neurons = rng.integers(1, 40, (layers, levels)).cumsum(1)
    return seconds, neurons, int(rng.integers(1, clients + 1))


@given(problems(), st.integers(1, 6))
def test_no_choice_of_levels_is_faster(problem, coverage):
    """Objectives equal brute force; no client could have a higher level in the same time."""
    seconds, neurons = problem
    solution = fastest_widths(seconds, neurons, coverage)
    enough = [k for k in choices(seconds) if covers(neurons, k, coverage)]
    if not enough:
        assert coverage > len(seconds)
        assert solution.status is Status.INFEASIBLE
        assert solution.value is None
        assert solution.objective == solution.bound == np.inf
        return
    assert solution.status is Status.OPTIMAL
    assert solution.value.dtype == np.int64
    assert covers(neurons, solution.value, coverage)
    best = min(slowest(seconds, k) for k in enough)
    assert solution.objective == solution.bound == best == slowest(seconds, solution.value)
    assert solution.gap == 0
    in_time = [k for k in choices(seconds) if slowest(seconds, k) <= best]
    assert np.array_equal(solution.value, np.max(in_time, axis=0))


@given(problems(), SECONDS.filter(bool))
def test_no_choice_of_levels_within_the_deadline_covers_more(problem, deadline):
    """Objectives equal brute force; each client has the highest level that meets the deadline."""
    seconds, neurons = problem
    solution = widths_by_deadline(seconds, neurons, deadline)
    in_time = [k for k in choices(seconds) if slowest(seconds, k) <= deadline]
    if not in_time:
        assert solution.status is Status.INFEASIBLE
        assert solution.value is None
        assert solution.objective == solution.bound == -np.inf
        return
    assert solution.status is Status.OPTIMAL
    assert solution.value.dtype == np.int64
    best = max((neurons[:, k].sum(-1) / neurons[:, -1]).min() for k in in_time)
    assert solution.objective == solution.bound == best
    assert solution.gap == 0
    assert np.array_equal(solution.value, np.max(in_time, axis=0))


@given(problems(clients=12, levels=6))
def test_frontier_equals_single_problems(problem):
    """The frontier equals separate solutions; higher coverage never takes less time."""
    seconds, neurons = problem
    frontier = coverage_frontier(seconds, neurons)
    singles = [fastest_widths(seconds, neurons, g + 1) for g in range(len(seconds))]
    times = np.array([single.objective for single in singles])
    assert (np.diff(times) >= 0).all()
    for field in (frontier.value, frontier.objective, frontier.bound):
        assert field.dtype == np.float64
        assert np.array_equal(field, times)
    assert (frontier.gap == 0).all()
    assert (frontier.status == Status.OPTIMAL).all()
    for single in singles:
        if single.objective > 0:
            by_deadline = widths_by_deadline(seconds, neurons, single.objective)
            assert np.array_equal(by_deadline.value, single.value)


@given(problems(clients=12, levels=6), st.data())
def test_less_time_does_not_suffice(problem, data):
    """In any shorter time, some client has no level or the coverage is too low."""
    seconds, neurons = problem
    coverage = data.draw(st.integers(1, len(seconds)))
    objective = fastest_widths(seconds, neurons, coverage).objective
    levels = (seconds < objective).sum(-1) - 1
    assert levels.min() < 0 or not covers(neurons, levels, coverage)


@given(problems(clients=12, levels=6), st.data())
def test_masks_attain_the_coverage_of_each_neuron(problem, data):
    """Circular masks reach the guaranteed coverage; higher coverage would take longer."""
    seconds, neurons = problem
    coverage = data.draw(st.integers(1, len(seconds)))
    solution = fastest_widths(seconds, neurons, coverage)
    guaranteed = []
    for layer in neurons:
        widths = layer[solution.value]
        masks = dealt_masks(widths, layer[-1])
        assert np.array_equal(masks.sum(-1), widths)
        assert masks.sum(0).min() >= coverage
        assert np.ptp(masks.sum(0)) <= 1
        guaranteed.append(masks.sum(0).min())
    if solution.objective > 0:
        by_deadline = widths_by_deadline(seconds, neurons, solution.objective)
        assert np.floor(by_deadline.objective) == min(guaranteed)
        later = fastest_widths(seconds, neurons, min(guaranteed) + 1)
        assert later.objective > solution.objective


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 4))
def test_masks_exist_if_and_only_if_the_widths_add_up(widths, coverage):
    """The condition on widths is exact: brute force over all masks on four neurons confirms it."""
    masks = [list(product([0, 1], repeat=4)) for _ in widths]
    fits = ([m for m in ms if sum(m) == w] for ms, w in zip(masks, widths, strict=True))
    max_coverage = max(np.sum(choice, axis=0).min() for choice in product(*fits))
    assert (max_coverage >= coverage) == (sum(widths) >= coverage * 4)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("seed", range(40))
def test_a_mixed_integer_program_agrees(seed):
    """A program with one binary variable per client and level, solved by HiGHS, agrees."""
    seconds, neurons, coverage = random_problem(seed)
    clients, levels = seconds.shape
    one_each = sparse.kron(sparse.eye(clients), np.ones((1, levels)))
    times = one_each.multiply(seconds.ravel())
    kept = np.tile(neurons, clients)
    rows = sparse.bmat(
        [[one_each, None], [times, -np.ones((clients, 1))], [kept, np.zeros((len(kept), 1))]]
    )
    low = np.concatenate([np.ones(clients), np.full(clients, -np.inf), coverage * neurons[:, -1]])
    high = np.concatenate([np.ones(clients), np.zeros(clients), np.full(len(kept), np.inf)])
    size = clients * levels
    answer = optimize.milp(
        np.append(np.zeros(size), 1),
        integrality=np.append(np.ones(size), 0),
        bounds=optimize.Bounds(0, np.append(np.ones(size), np.inf)),
        constraints=optimize.LinearConstraint(rows.tocsr(), low, high),
        options={"mip_rel_gap": 0},
    )
    assert answer.status == 0
    found = answer.x[:size].reshape(clients, levels).argmax(-1)
    assert covers(neurons, found, coverage)
    solution = fastest_widths(seconds, neurons, coverage)
    assert solution.objective == slowest(seconds, found)


@given(problems(clients=8), st.data())
def test_the_order_of_clients_does_not_matter(problem, data):
    seconds, neurons = problem
    coverage = data.draw(st.integers(1, len(seconds)))
    order = data.draw(st.permutations(range(len(seconds))))
    value = fastest_widths(seconds, neurons, coverage).value
    assert np.array_equal(fastest_widths(seconds[order], neurons, coverage).value, value[order])


def test_by_hand():
    """Three clients, the last of them slow, with a layer of 8 neurons."""
    seconds = [[1, 2, 4], [1, 2, 4], [3, 6, 12]]

    def widths(coverage):
        solution = fastest_widths(seconds, [2, 4, 8], coverage)
        return solution.objective, solution.value.tolist()

    assert widths(1) == (3, [1, 1, 0])  # 4 + 4 + 2: the slow client's level 0 takes 3 s
    assert widths(2) == (4, [2, 2, 0])  # 8 + 8 + 2
    assert widths(3) == (12, [2, 2, 2])
    assert coverage_frontier(seconds, [2, 4, 8]).value.tolist() == [3, 4, 12]
    # In the second layer, 2 + 2 + 1 neurons of levels 1, 1, 0 do not cover all 8 neurons.
    two = [[2, 4, 8], [1, 2, 8]]
    assert coverage_frontier(seconds, two).value.tolist() == [4, 4, 12]
    by_deadline = widths_by_deadline(seconds, two, 3.5)
    assert by_deadline.value.tolist() == [1, 1, 0]
    assert by_deadline.objective == 5 / 8


def test_solutions_do_not_share_memory():
    seconds = np.array([[1.0, 2.0, 4.0], [3.0, 6.0, 12.0]])
    given = seconds.copy()
    frontier = coverage_frontier(seconds, [2, 4, 8])
    frontier.value[:] = frontier.objective[:] = -1
    fastest_widths(seconds, [2, 4, 8], 2)
    assert np.array_equal(seconds, given)
    assert frontier.bound.tolist() == [4, 12]


def test_cost_grows_with_the_logarithm_of_the_levels(monkeypatch):
    """For 3e5 levels, bisection counts neurons at most 20 times, and the frontier only once."""
    rng = np.random.default_rng(0)
    seconds, neurons = rng.random((1000, 300)).cumsum(1), np.arange(1, 301)
    calls, kept = [], WidthLevels.kept
    monkeypatch.setattr(
        WidthLevels, "kept", lambda levels, limit: (calls.append(limit), kept(levels, limit))[1]
    )
    fastest_widths(seconds, neurons, 300)
    assert len(calls) <= np.ceil(np.log2(seconds.size)) + 1
    calls.clear()
    coverage_frontier(seconds, neurons)
    assert len(calls) == 1
