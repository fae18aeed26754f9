"""``schedule_uplink`` against all orders, SciPy, and hard or bad problems."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from solvers import UPLINK_ACCESS, Status, schedule_uplink


def drawn(random, *shape):
    """Seconds of readiness and uploads; some clients have nothing to send, some are ready at 0."""
    ready = random.uniform(0, 1, shape) * (random.random(shape) < 0.8)
    return ready, 10 ** random.uniform(-3, 1, shape) * (random.random(shape) < 0.8)


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_no_order_ends_sooner(seed, clients):
    """Uploads do not overlap nor begin early, and no order of them ends before the objective."""
    ready, upload = drawn(np.random.default_rng(seed), clients)
    found = schedule_uplink(ready, upload)
    ends = []
    for order in permutations(range(clients)):
        free = 0.0
        for i in order:
            free = max(free, ready[i]) + upload[i] if upload[i] else free
        ends.append(max(free, ready.max()))
    assert found.objective == found.bound == pytest.approx(min(ends), rel=1e-14)
    starts = found.value.start_seconds
    assert (starts >= ready).all()
    assert (starts + upload).max() == found.objective
    send = np.flatnonzero(upload)
    send = send[np.argsort(starts[send])]
    assert (starts[send][1:] >= (starts + upload)[send][:-1]).all()


@given(st.integers(0, 2**32), st.integers(1, 30))
def test_shares_are_optimal(seed, clients):
    """All ends follow from the shares; SciPy finds the same root; slots are no better."""
    ready, upload = drawn(np.random.default_rng(seed), clients)
    found = schedule_uplink(ready, upload, "shares")
    shares, send = found.value.shares, upload > 0
    assert shares.sum() <= 1 + 1e-14
    assert (shares[~send] == 0).all()
    ends = (ready[send] + upload[send] / shares[send]).max(initial=ready.max())
    assert found.objective == pytest.approx(ends, rel=1e-14)
    assert found.gap < 1e-13
    root = 0.0
    if send.any():
        most = ready.max() + upload.sum()
        low, high = (ready + upload)[send].max() * (1 - 1e-12), most * (1 + 1e-12)
        root = brentq(
            lambda end: 1 - (upload[send] / (end - ready[send])).sum(), low, high, xtol=1e-15
        )
    assert found.objective == pytest.approx(max(root, ready.max()), rel=1e-12)
    slots = schedule_uplink(ready, upload, "slots")
    assert slots.objective == slots.bound >= found.bound
    assert slots.value.shares.sum() == pytest.approx(1.0 if send.any() else 0.0)
    one = np.divide(upload, slots.value.shares, where=send, out=np.zeros(clients))
    assert slots.objective == pytest.approx((ready + one).max(), rel=1e-14)
    # Fixed shares leave the uplink unused until clients are ready: an order does not.
    assert schedule_uplink(ready, upload).objective <= found.objective * (1 + 1e-14)


def shares_needed(ready, upload, end):
    """Sum of the shares with which all uploads end by ``end``, exactly; infinite if none do."""
    send = [(Fraction(r), Fraction(u)) for r, u in zip(ready, upload, strict=True) if u]
    if any(end <= r for r, _ in send):
        return np.inf
    return sum(u / (end - r) for r, u in send)


WIDE = [([0, 3600], [600, 1e-7]), ([0, 1e8], [1, 1]), ([0, 1e8, 2e8], [1, 1e8, 0])]


def spread(seed):
    """Two dozen decades between uploads, and between the times at which clients are ready."""
    random = np.random.default_rng(seed)
    ready, upload = 10 ** random.uniform(-12, 12, (2, random.integers(1, 12)))
    return ready * (random.random(len(ready)) < 0.8), upload


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("ready", "upload"), [*WIDE, *map(spread, range(100))])
def test_shares_end_at_the_root_in_exact_arithmetic(ready, upload):
    """A few units in the last place earlier, the shares would add up to more than 1."""
    found = schedule_uplink(ready, upload, "shares")
    end, few = Fraction(found.objective), 4 * Fraction(np.spacing(found.objective))
    earlier, later = end - few, max(end + few, Fraction(max(ready)))
    assert shares_needed(ready, upload, later) <= 1
    assert earlier < max(ready) or shares_needed(ready, upload, earlier) >= 1
    assert found.status is Status.OPTIMAL
    assert found.gap < 1e-15
    assert found.value.shares.sum() <= 1 + 1e-15


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("access", UPLINK_ACCESS)
def test_a_problem_has_the_same_solution_alone(access):
    """Bit for bit, in every memory layout: a batch takes as many steps as its slowest problem."""
    random = np.random.default_rng(3)
    ready, upload = 10 ** random.uniform(-6, 6, (2, 300, 20))
    many = schedule_uplink(np.asfortranarray(ready), upload, access)
    for row in range(300):
        one = schedule_uplink(ready[row], upload[row], access)
        assert (one.objective, one.bound) == (many.objective[row], many.bound[row])
        for alone, together in zip(one.value, many.value, strict=True):
            np.testing.assert_array_equal(alone, together[row])


def test_a_queue_of_many_clients():
    """All clients are ready before the first is served: uploads follow each other to the end."""
    ready = np.random.default_rng(4).permutation(300_000) * 2.0**-20
    found = schedule_uplink(ready, 2.0, "sequential")
    assert found.objective == 600_000
    assert (np.sort(found.value.start_seconds) == np.arange(0, 600_000, 2)).all()


@pytest.mark.parametrize("access", UPLINK_ACCESS)
def test_batches_give_the_answers_of_single_problems(access):
    random = np.random.default_rng(1)
    ready, upload = drawn(random, 4, 7)
    upload[2, 3:5] = np.inf
    many = schedule_uplink(ready, upload, access)
    for row in range(4):
        one = schedule_uplink(ready[row], upload[row], access)
        assert one.objective == pytest.approx(many.objective[row], rel=1e-15)
        if row != 2:
            for alone, together in zip(one.value, many.value, strict=True):
                np.testing.assert_allclose(alone, together[row], rtol=1e-14)
    assert (one.status, many.status[2]) == (Status.OPTIMAL, Status.INFEASIBLE)
    assert (many.value.shares[2] == -1).all()
    text = "clients 3, 4 cannot send: upload_seconds is infinite"
    assert many.message == f"1 of 4 problems are infeasible; item [2]: {text}"
    assert schedule_uplink(ready[2], upload[2], access).message == text


@pytest.mark.parametrize("access", UPLINK_ACCESS)
@pytest.mark.parametrize("late", [0.5, 1.5, 5.0, 6.0])
def test_a_client_without_bits_ends_when_it_is_ready(access, late):
    """It is ready before, between or after the others' uploads, and takes no part of the uplink."""
    ready, upload = np.array([1.0, 1.0]), np.array([2.0, 1.0])
    others = schedule_uplink(ready, upload, access)
    assert others.objective == pytest.approx({"slots": 5.0}.get(access, 4.0), rel=1e-14)
    found = schedule_uplink(np.append(ready, late), np.append(upload, 0.0), access)
    assert found.objective == pytest.approx(max(others.objective, late), rel=1e-15)
    assert found.bound == pytest.approx(max(others.bound, late), rel=1e-15)
    assert found.value.shares[2] == 0
    np.testing.assert_allclose(found.value.shares[:2], others.value.shares, rtol=1e-14)


def test_wide_spreads():
    """200 dB between uploads, in the first client's favour or not."""
    random = np.random.default_rng(2)
    upload = 10 ** random.uniform(-10, 10, (50, 30))
    found = schedule_uplink(random.uniform(0, 10, (50, 30)), upload, "shares")
    assert found.gap.max() < 1e-13


@pytest.mark.parametrize("access", UPLINK_ACCESS)
@pytest.mark.parametrize("upload", [[1e-13], [1e-13, 3.0], [1e-300, 3.0, 0.0]])
def test_uploads_shorter_than_the_rounding_of_the_time(access, upload):
    ready = [1.7e9, 0.0, 0.0][: len(upload)]
    solution = schedule_uplink(ready, upload, access)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == ready[0]
    assert 0 < solution.value.shares.sum() <= len(upload)


def test_tensors_give_tensors():
    found = schedule_uplink(torch.tensor([[0.0, 1.0]] * 3), 2)
    assert found.value.start_seconds.tolist() == [[0.0, 2.0]] * 3
    assert found.objective.dtype == torch.float64
    assert found.objective.tolist() == [4.0] * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 0], 1e308), r"upload_seconds is 1e\+308: give at most 1e\+60 seconds"),
        ((0, 1), "at least one"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        schedule_uplink(*arguments)
