"""``optimize_widths_by_time``: independent clients, maximal levels, and fairness by brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import Load, Network, ReadyOrder, Stream
from solvers import OptimalBands, Status, optimize_widths_by_time, widths_by_deadline


def independent(table):
    """Seconds of candidate levels, from a table [clients, levels]."""
    return lambda levels: table[np.arange(len(table)), levels]


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 6), st.integers(1, 33))
def test_independent_clients_have_the_levels_of_the_table(seed, clients, levels, candidates):
    random = np.random.default_rng(seed)
    table = random.choice([0.0, 0.5, 1.0], (clients, levels)).cumsum(-1)
    neurons = np.sort(random.integers(1, 50, levels))
    deadline = random.uniform(0.1, levels)
    cell_of = np.sort(random.integers(0, 3, clients))
    wanted = widths_by_deadline(table, neurons, deadline)
    found = optimize_widths_by_time(
        independent(table), neurons, deadline, cell_of=cell_of, candidates=candidates
    )
    assert np.array_equal(found.value, wanted.value)
    for field in ("objective", "bound", "gap", "status", "message"):
        assert getattr(found, field) == getattr(wanted, field)


def radio(access, seed=0):
    """Seconds of candidate levels [candidates, clients] of a network of two cells."""
    random = np.random.default_rng(seed)
    network = Network.from_snr(
        [0, 0, 0, 1, 1],
        cpu_hz=random.uniform(0.2e9, 2e9, 5),
        snr_db=random.uniform(-5, 15, 5),
        bandwidth_hz=1e6,
    )
    draw = network.draw(Stream(seed))
    share = np.array([1.0, 1.7, 3.0, 6.0])
    calls = []

    def seconds(levels):
        calls.append(len(levels))
        return access.serve(Load(3e7 * share[levels], 2e4 * share[levels]), draw).seconds

    return seconds, calls


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("access", [ReadyOrder(), OptimalBands()], ids=["order", "bands"])
def test_coupled_clients(access, seed):
    """In time, no client can take more, and no other choice has a larger smallest level."""
    seconds, calls = radio(access, seed)
    least = seconds(np.zeros((1, 5), dtype=int)).max()
    deadline = 2.2 * least
    cells = np.array([0, 0, 0, 1, 1])
    calls.clear()
    found = optimize_widths_by_time(seconds, [1, 2, 3, 4], deadline, cell_of=cells, candidates=4)
    assert len(calls) <= 12
    every = np.array(list(product(range(4), repeat=5)))
    timely = seconds(every) <= deadline
    levels, proven = found.value, True
    assert (seconds(levels[None]) <= deadline).all()
    for mine in (cells == 0, cells == 1):
        good = every[timely[:, mine].all(-1)][:, mine]
        assert good.min(-1).max() == levels[mine].min()
        wider = (good >= levels[mine]).all(-1) & (good > levels[mine]).any(-1)
        assert not wider.any()
        proven &= bool((good <= levels[mine]).all())
    assert (found.status is Status.OPTIMAL) == proven
    assert np.isnan(found.bound) == (not proven)
    assert found.objective == pytest.approx((1 + levels).sum() / 4)


def test_all_full_widths_and_no_time():
    seconds, _ = radio(ReadyOrder())
    full = optimize_widths_by_time(seconds, [1, 2, 3, 4], 1e6, cell_of=[0, 0, 0, 1, 1])
    assert full.value.tolist() == [3] * 5
    assert full.status is Status.OPTIMAL
    late = optimize_widths_by_time(seconds, [1, 2, 3, 4], 1e-3, cell_of=[0, 0, 0, 1, 1])
    assert late.status is Status.INFEASIBLE
    assert "5 of 5 clients miss the deadline of 0.001 seconds even at level 0" in late.message


@pytest.mark.parametrize(
    ("times", "more", "message"),
    [
        (lambda k: k[:, :1], {}, r"seconds returned shape \(1, 1\) for levels of shape \(1, 2\)"),
        (lambda k: k - 1.0, {}, "seconds returned negative numbers or NaN"),
        (lambda k: k, {"neurons": [2, 1]}, "neurons.1. is 1.0, less than 2.0"),
        (lambda k: k, {"neurons": []}, "neurons has shape .*, with at least one level"),
    ],
)
def test_wrong_arguments(times, more, message):
    arguments = {"neurons": [1, 2], "deadline": 1.0, "cell_of": [0, 0], **more}
    with pytest.raises(ValueError, match=message):
        optimize_widths_by_time(times, **arguments)
