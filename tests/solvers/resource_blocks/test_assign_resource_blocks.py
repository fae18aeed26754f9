"""``assign_resource_blocks`` against all assignments of small cells, and its certificate."""

import itertools
import math
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

from solvers import BlockAssignment, Status, assign_resource_blocks
from solvers.resource_blocks.matching import least_possible, prices


def losses(error, weights, allowed):
    """The expected loss of every assignment, and its number of clients with a block."""
    clients, blocks = error.shape
    for choice in itertools.product(range(-1, blocks), repeat=clients):
        used = [n for n in choice if n >= 0]
        if len(set(used)) < len(used) or not all(
            allowed[i, n] for i, n in enumerate(choice) if n >= 0
        ):
            continue
        rest = [error[i, n] if n >= 0 else 1 for i, n in enumerate(choice)]
        lost = [w * part for w, part in zip(weights, rest, strict=True)]
        yield math.fsum(lost), len(used)


@st.composite
def cells(draw):
    """Up to 4 clients and 4 blocks; many ties, forbidden blocks, errors of 0, 1 and 1e-12."""
    clients, blocks = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    usual = st.sampled_from([0.0, 1e-12, 0.1, 0.25, 0.5, 1.0]) | st.floats(0, 1)
    error = draw(st.lists(usual, min_size=clients * blocks, max_size=clients * blocks))
    number = st.sampled_from([0.0, 1.0, 3.0, 1e6]) | st.floats(0.01, 100)
    weights = draw(st.lists(number, min_size=clients, max_size=clients))
    open_to = st.lists(st.booleans(), min_size=clients * blocks, max_size=clients * blocks)
    shape = clients, blocks
    return np.reshape(error, shape), np.array(weights), np.reshape(draw(open_to), shape)


def check_value(found, error, weights, allowed):
    """The value is an assignment, and has the errors and the loss that are stated."""
    block, lost = found.value
    used = block[block >= 0]
    assert len(set(used.tolist())) == len(used)
    for i, n in enumerate(block):
        assert n < 0 or allowed[i, n]
        assert lost[i] == (error[i, n] if n >= 0 else 1)
    assert found.objective == pytest.approx(math.fsum(weights * lost), rel=1e-14)
    return len(used)


@pytest.mark.thorough
@given(cells())
@settings(max_examples=150, deadline=None)
def test_no_assignment_loses_less(cell):
    """Brute force over all assignments, for any number of clients and for every given one."""
    every = list(losses(*cell))
    best = min(lost for lost, _ in every)
    found = assign_resource_blocks(cell[0], weights=cell[1], allowed=cell[2])
    check_value(found, *cell)
    assert found.objective == pytest.approx(best, rel=1e-12, abs=1e-300)
    assert found.status is Status.OPTIMAL
    assert found.bound <= best * (1 + 1e-12)
    for count in range(1, min(cell[0].shape) + 1):
        found = assign_resource_blocks(cell[0], weights=cell[1], allowed=cell[2], count=count)
        some = [lost for lost, number in every if number == count]
        if not some:
            most = max(number for _, number in every)
            assert (found.status, found.value) == (Status.INFEASIBLE, None)
            assert found.message.startswith(f"count is {count}, but at most {most} clients can")
            continue
        assert check_value(found, *cell) == count
        assert found.objective == pytest.approx(min(some), rel=1e-9, abs=1e-300)
        assert found.bound <= min(some) * (1 + 1e-12)
        assert found.gap < 1e-6 or found.objective < 1e-8 * cell[1].max()


@given(cells(), st.lists(st.floats(0, 10), min_size=4, max_size=4), st.floats(-10, 10))
@settings(max_examples=100, deadline=None)
def test_any_prices_bound_every_assignment(cell, price, entry):
    """Weak duality."""
    error, weights, allowed = cell
    costs = np.where(allowed, weights[:, None] * error, np.inf)
    price = np.array(price[: error.shape[1]])
    for lost, number in losses(*cell):
        rounding = 1e-12 * (weights.sum() + 50)
        assert least_possible(costs, weights, price, 0.0, None) <= lost + rounding
        assert least_possible(costs, weights, price, entry, number) <= lost + rounding


def random_cell(seed, clients=12, blocks=5):
    random = np.random.default_rng(seed)
    error = random.uniform(size=(clients, blocks)) ** 3
    return error, random.integers(1, 9, clients), random.uniform(size=error.shape) < 0.7


@pytest.mark.parametrize("count", [None, 2, 5])
def test_the_bound_is_that_of_the_linear_program(count):
    """HiGHS finds the same dual value, and too high or too low prices have a lower bound."""
    error, weights, allowed = random_cell(3)
    costs = np.where(allowed, weights[:, None] * error, np.inf)
    found = assign_resource_blocks(error, weights=weights, allowed=allowed, count=count)
    clients, blocks = error.shape
    one_block = np.kron(np.eye(clients), np.ones(blocks))
    one_client = np.kron(np.ones(clients), np.eye(blocks))
    relaxed = linprog(
        (weights[:, None] * (error - 1)).ravel(),
        np.vstack([one_block, one_client]),
        np.ones(clients + blocks),
        None if count is None else np.ones((1, clients * blocks)),
        count,
        [(0, float(can)) for can in allowed.flat],
    )
    price, entry = prices(costs, 1.0 * weights, found.value.block, count)
    assert (price >= 0).all()
    proven = least_possible(costs, weights, price, entry, count)
    assert proven == pytest.approx(weights.sum() + relaxed.fun, rel=1e-12)
    assert found.bound == pytest.approx(proven, rel=1e-12)
    for worse, free in ((price + 9, entry), (np.zeros(blocks), 0.0)):
        assert least_possible(costs, weights, worse, free, count) < proven - 1e-3


@pytest.mark.parametrize("count", [None, 2, 5])
def test_an_assignment_that_is_not_optimal_has_a_gap(count):
    """Whatever assignment the prices are taken from, they bound the best."""
    error, weights, allowed = random_cell(4)
    costs = np.where(allowed, weights[:, None] * error, np.inf)
    best = assign_resource_blocks(error, weights=weights, allowed=allowed, count=count)
    block = best.value.block
    sends = np.flatnonzero(block >= 0)
    for one, other in itertools.permutations(sends, 2):
        worse = block.copy()
        worse[[one, other]] = block[[other, one]]
        if np.isinf(costs[sends, worse[sends]]).any():
            continue
        price, entry = prices(costs, 1.0 * weights, worse, count)
        assert least_possible(costs, weights, price, entry, count) <= best.objective + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_pruning_keeps_an_optimum(seed):
    """500 clients, of which many are equal, against SciPy's matching of all of them."""
    error, weights, allowed = random_cell(seed, clients=500, blocks=6)
    error, weights = np.round(error, 1), weights % 3
    found = assign_resource_blocks(error, weights=weights, allowed=allowed)
    gain = weights[:, None] * (1 - error) * allowed
    most = gain[linear_sum_assignment(gain, maximize=True)].sum()
    assert found.objective == pytest.approx(weights.sum() - most, rel=1e-12)
    assert found.gap < 1e-12
    for count in (1, 4):
        part = assign_resource_blocks(error, weights=weights, allowed=allowed, count=count)
        assert check_value(part, error, weights, allowed) == count
        assert part.gap < 1e-12


def test_many_clients_are_fast():
    random = np.random.default_rng(1)
    error, weights = random.uniform(size=(100_000, 8)), random.integers(100, 600, 100_000)
    start = time.perf_counter()
    for count in (None, 5):
        assert assign_resource_blocks(error, weights=weights, count=count).gap < 1e-12
    assert time.perf_counter() - start < 2


def test_blocks_of_a_known_cell():
    """By hand: client 0 leaves its best block to client 1, which has no other."""
    error = [[0.1, 0.2], [0.1, 0.9], [0.5, 0.5]]
    found = assign_resource_blocks(error, weights=[10, 10, 1])
    assert isinstance(found.value, BlockAssignment)
    assert found.value.block.tolist() == [1, 0, -1]
    assert found.value.packet_error.tolist() == [0.2, 0.1, 1.0]
    assert found.objective == pytest.approx(10 * 0.2 + 10 * 0.1 + 1)
    assert found.message == ""
    assert assign_resource_blocks(error, weights=[10, 10, 1], count=1).value.block[2] == -1


def test_a_cell_that_nobody_reaches():
    """All samples are lost; with a count there is no answer."""
    error = np.full((3, 2), 0.1)
    found = assign_resource_blocks(error, weights=[1, 2, 3], allowed=np.zeros((3, 2), bool))
    assert found.value.block.tolist() == [-1, -1, -1]
    assert (found.objective, found.bound, found.status) == (6, 6, Status.OPTIMAL)
    assert found.message == "clients 0, 1, 2 cannot send: no block is allowed"
    found = assign_resource_blocks(error, allowed=np.zeros((3, 2), bool), count=2)
    assert found.status is Status.INFEASIBLE
    assert found.message == (
        "count is 2, but at most 0 clients can have allowed blocks at the same time; clients 0, 1, "
        "2 cannot send: no block is allowed"
    )


def test_clients_that_no_block_helps_are_named():
    error, allowed = [[0.5, 1.0], [1.0, 1.0], [0.2, 0.3]], [[1, 1], [1, 0], [0, 0]]
    found = assign_resource_blocks(error, allowed=np.array(allowed, bool))
    assert found.value.block.tolist() == [0, -1, -1]
    assert found.message == (
        "client 2 cannot send: no block is allowed; client 1 cannot be received: packet_error is 1"
    )


def test_one_client_takes_the_best_block():
    found = assign_resource_blocks([[0.3, 0.1, 0.2]], weights=7)
    assert found.value.block.tolist() == [1]
    assert (found.objective, found.bound) == pytest.approx((0.7, 0.7))
    assert assign_resource_blocks([[0.0]]).objective == 0
    assert assign_resource_blocks([[0.0]]).status is Status.OPTIMAL
    assert assign_resource_blocks([[0.4], [0.2]]).value.block.tolist() == [-1, 0]


def test_blocks_that_reduce_no_loss_stay_empty():
    """Unless a count asks for them; a client without samples needs none."""
    error = [[0.5, 1.0], [0.4, 1.0], [0.1, 0.1]]
    found = assign_resource_blocks(error, weights=[1, 1, 0])
    assert found.value.block.tolist() == [-1, 0, -1]
    full = assign_resource_blocks(error, weights=[1, 1, 0], count=2)
    assert np.count_nonzero(full.value.block >= 0) == 2
    assert full.objective == found.objective


def test_small_losses_are_found_exactly():
    """Errors of 1e-14 are not lost in rounding errors of 1 - q."""
    error = np.array([[1e-14, 3e-14], [1.5e-14, 2e-14]])
    for count in (None, 2):
        found = assign_resource_blocks(error, count=count)
        assert found.value.block.tolist() == [0, 1]
        assert found.objective == pytest.approx(3e-14, rel=1e-12)
        assert found.gap < 1e-12


@pytest.mark.parametrize("count", [None, 2])
def test_a_batch_is_its_problems(count):
    """Leading axes of all arguments are broadcast; infeasible items stay alone."""
    random = np.random.default_rng(5)
    error, weights = random.uniform(size=(3, 1, 6, 4)), random.integers(1, 5, (2, 6))
    allowed = random.uniform(size=(3, 2, 6, 4)) < 0.5
    allowed[1, 0] = False
    many = assign_resource_blocks(error, weights=weights, allowed=allowed, count=count)
    assert many.objective.shape == (3, 2)
    for a, b in np.ndindex(3, 2):
        one = assign_resource_blocks(
            error[a, 0], weights=weights[b], allowed=allowed[a, b], count=count
        )
        assert (many.objective[a, b], many.bound[a, b]) == (one.objective, one.bound)
        assert many.status[a, b] is one.status
        assert many.value.block[a, b].tolist() == (
            one.value.block.tolist() if one.value else [-1] * 6
        )
    start = "1 of 6 problems are infeasible; item [1, 0]: count" if count else "1 of 6 problems go"
    assert many.message.startswith(start)
    empty = assign_resource_blocks(np.zeros((0, 3, 2)), count=count)
    assert empty.value.block.shape == (0, 3)


def test_tensors_in_tensors_out():
    found = assign_resource_blocks(torch.tensor([[0.3, 0.1]]), weights=[2.0])
    assert isinstance(found.value.block, torch.Tensor)
    assert found.value.block.tolist() == [1]
    assert found.value.packet_error.dtype == torch.float64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"packet_error": [0.1, 0.2]}, r"packet_error has shape \(2,\): give \[\.\.\., clients"),
        ({"packet_error": np.zeros((3, 0))}, r"packet_error has shape \(3, 0\)"),
        ({"count": 2, "packet_error": [[0.1], [0.2]]}, "count is 2: .* 1 to 1, all blocks"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        assign_resource_blocks(**{"packet_error": [[0.1, 0.2], [0.3, 0.4]]} | arguments)
    assert "\n" not in str(caught.value)
