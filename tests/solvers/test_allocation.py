"""Allocation of requests matches brute force, plain greedy and hand-computed examples."""

import heapq
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import Status, allocate_requests

WEIGHTS = st.one_of(
    st.integers(0, 6).map(float),  # ties, and zeros
    st.sampled_from([0.1, 0.3, 0.7]),  # squares that need rounding
    st.floats(-3, 3).map(lambda power: 10**power),
)


@st.composite
def problems(draw, tasks=4, total=14):
    tasks = draw(st.integers(1, tasks))
    weights = draw(st.lists(WEIGHTS, min_size=tasks, max_size=tasks))
    each = st.lists(st.integers(0, 4), min_size=tasks, max_size=tasks)
    return weights, draw(st.integers(0, total)), draw(st.one_of(st.integers(0, 4), each))


def cost(weights, requests):
    """Sum of w^2 / R in exact arithmetic; None if it is infinite."""
    terms = [
        Fraction(w) ** 2 / r if r else None for w, r in zip(weights, requests, strict=True) if w
    ]
    return None if None in terms else sum(terms, Fraction(0))


def plain_greedy(weights, total, floors):
    """Allocate one request at a time, to the task whose cost decreases most."""
    requests = [max(f, w > 0) for w, f in zip(weights, floors, strict=True)]
    shares = [w / 2.0**500 for w in weights] if any(weights) else [1.0 for _ in weights]
    while sum(requests) < total:
        pairs = zip(shares, requests, strict=True)
        saved = [w**2 / (r * (r + 1)) if r else (np.inf if w else 0.0) for w, r in pairs]
        requests[saved.index(max(saved))] += 1
    return requests


@given(problems())
def test_no_split_costs_less(problem):
    """The cost equals that of brute force over all splits, in exact arithmetic."""
    weights, total, floor = problem
    floors = np.full(len(weights), floor).tolist()
    solution = allocate_requests(weights, total, floor=floor)
    splits = product(*(range(low, total + 1) for low in floors))
    costs = [cost(weights, split) for split in splits if sum(split) == total]
    best = min((c for c in costs if c is not None), default=None)
    if best is None:
        assert solution.status is Status.INFEASIBLE
        assert solution.value is None
        assert solution.objective == solution.bound == np.inf
    else:
        assert solution.status is Status.OPTIMAL
        assert solution.value.dtype == np.int64
        assert solution.value.sum() == total
        assert (solution.value >= floors).all()
        found = cost(weights, solution.value.tolist())
        # Savings that differ only by rounding may swap places.
        assert best <= found <= best * (1 + Fraction(1, 10**15))
        assert solution.objective == solution.bound == pytest.approx(float(best), rel=1e-14)
        assert solution.gap == 0


@given(st.lists(WEIGHTS, min_size=1, max_size=8), st.integers(0, 900), st.data())
def test_bulk_allocation_equals_plain_greedy(weights, total, data):
    """Allocating most requests in bulk gives the same result as plain greedy."""
    floors = data.draw(st.lists(st.integers(0, 200), min_size=len(weights), max_size=len(weights)))
    solution = allocate_requests(weights, total, floor=floors)
    if solution.value is not None:
        # Scaling by another power of two is exact as well.
        scaled = [w * 2.0**480 for w in weights]
        assert solution.value.tolist() == plain_greedy(scaled, total, floors)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=8), st.integers(10**6, 2**50))
def test_many_requests_are_in_proportion(weights, total):
    """R_m is within two requests of the continuous solution, total w_m / sum w."""
    value = allocate_requests(weights, total).value
    ideal = total * np.array(weights) / sum(weights)
    assert value.sum() == total
    assert np.abs(value - ideal).max() <= 2


def test_by_hand():
    def split(weights, total, **floor):
        return allocate_requests(weights, total, **floor).value.tolist()

    assert split([1, 2, 3], 60) == [10, 20, 30]
    assert split([1, 1, 1], 8) == [3, 3, 2]  # on ties the first task comes first
    assert split([0, 0, 0], 8) == [3, 3, 2]
    assert split([0, 0, 0], 8, floor=[5, 0, 0]) == [5, 2, 1]
    assert split([0, 2, 2], 9, floor=[0, 1, 1]) == [0, 5, 4]  # a finished task
    assert split([0, 1, 9], 20, floor=3) == [3, 3, 14]
    assert split([5], 7) == [7]
    assert split([1e-150, 1e150], 5) == [1, 4]
    assert allocate_requests([3, 4], 4).objective == 9 / 2 + 16 / 2


def test_infeasibility_messages_state_the_shortfall():
    solution = allocate_requests([1, 2], 5, floor=[4, 3])
    assert solution.status is Status.INFEASIBLE
    assert solution.message == "floors add up to 7, 2 more than total 5"
    solution = allocate_requests([1, 2, 0], 1, floor=0)
    assert solution.message.startswith("floors add up to 2, 1 more than total 1; a floor of 0")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1]], 5), ValueError, r"weights has shape \(1, 1\)"),
        (([1, 2], 5, [1]), ValueError, r"floor has shape \(1,\).*here \(2,\)"),
    ],
)
def test_invalid_arguments_are_rejected(arguments, error, message):
    weights, total, *floor = arguments
    with pytest.raises(error, match=message):
        allocate_requests(weights, total, **({"floor": floor[0]} if floor else {}))


@pytest.mark.parametrize("total", [40, 1000, 10**6, 2**50])
def test_cost_does_not_grow_with_the_total(monkeypatch, total):
    """Whatever the total, at most four requests per task are allocated one by one."""
    replaced, replace = [], heapq.heapreplace
    heap = SimpleNamespace(
        heapify=heapq.heapify,
        heapreplace=lambda queue, entry: (replaced.append(entry), replace(queue, entry))[1],
    )
    monkeypatch.setattr("solvers.allocation.heapq", heap)
    for seed in range(20):
        weights = np.random.default_rng(seed).random(10)
        replaced.clear()
        found = allocate_requests(weights, total).value
        assert found.sum() == total
        assert len(replaced) <= 4 * len(weights)
