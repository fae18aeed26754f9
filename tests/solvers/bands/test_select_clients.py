"""``select_clients`` against all sets of small cells, Gurobi, and its certificate."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from solvers import Selection, SolverUnavailableError, Status, allocate_bandwidth, select_clients
from solvers.bands.knapsack import cheapest
from solvers.bands.least_band import least_band
from solvers.mask_sizes.gurobi import _environment


def drawn(random, *shape):
    """Bits, seconds and SNR x band of clients that differ by orders of magnitude."""
    bits = 10 ** random.uniform(4, 6, shape)
    return bits, random.uniform(0, 0.5, shape), 10 ** random.uniform(5, 9, shape)


def least_time(bits, ready, snr_hz, band, sets):
    """The least time of any of the sets, in one batch; sets may differ in size."""
    masks = np.zeros((len(sets), len(bits)), dtype=bool)
    for mask, some in zip(masks, sets, strict=True):
        mask[list(some)] = True
    ends = allocate_bandwidth(bits * masks, ready * masks, snr_hz, band).objective
    return np.where(((bits > 0) & (snr_hz == 0) & masks).any(-1), np.inf, ends).min()


def check_bands(found, bits, ready, snr_hz, band):
    """The bands fit, and with them the chosen clients end by the objective."""
    chosen, bands = found.value
    assert bands.sum() <= band * (1 + 1e-14)
    assert (bands[~chosen] == 0).all()
    send = chosen & (bits > 0)
    with np.errstate(all="ignore"):
        seconds = np.where(send, bits * np.log(2) / (bands * np.log1p(snr_hz / bands)), 0)
    assert (ready + seconds)[chosen].max() == pytest.approx(found.objective, rel=1e-12)


@given(st.integers(0, 2**32), st.integers(1, 9), st.booleans())
def test_no_other_clients_end_sooner(seed, clients, odd):
    """By count: brute force over all sets, also with clients without bits or channel."""
    random = np.random.default_rng(seed)
    bits, ready, snr_hz = drawn(random, clients)
    if odd:
        bits *= random.random(clients) < 0.7
        snr_hz *= random.random(clients) < 0.8
    count = int(random.integers(1, clients + 1))
    found = select_clients(bits, ready, snr_hz, 1e6, count=count)
    best = least_time(bits, ready, snr_hz, 1e6, list(combinations(range(clients), count)))
    assert found.objective == pytest.approx(best, rel=1e-12)
    if np.isinf(best):
        assert found.status is Status.INFEASIBLE
        return
    assert found.gap < 1e-13
    assert found.value.chosen.sum() == count
    check_bands(found, bits, ready, snr_hz, 1e6)


@given(st.integers(0, 2**32), st.integers(1, 8), st.sampled_from([1, 3, 1000, None]))
def test_no_clients_of_that_value_end_sooner(seed, clients, levels):
    """By values, which are all equal, few integers, many, or reals."""
    random = np.random.default_rng(seed)
    bits, ready, snr_hz = drawn(random, clients)
    snr_hz *= random.random(clients) < 0.9
    values = random.random(clients) if levels is None else random.integers(0, levels + 1, clients)
    wanted = random.uniform(0, 1.1) * values.sum() + 1e-9
    found = select_clients(bits, ready, snr_hz, 1e6, values=values, at_least=wanted)
    sets = [s for k in range(1, clients + 1) for s in combinations(range(clients), k)]
    sets = [some for some in sets if values[list(some)].sum() >= wanted * (1 - 1e-12)]
    best = least_time(bits, ready, snr_hz, 1e6, sets) if sets else np.inf
    assert found.objective == pytest.approx(best, rel=1e-12)
    if np.isinf(best):
        assert found.status is Status.INFEASIBLE
        return
    assert found.gap < 1e-13
    assert values[found.value.chosen].sum() >= wanted * (1 - 1e-12)
    check_bands(found, bits, ready, snr_hz, 1e6)


@pytest.mark.parametrize(("values", "at_least"), [([0.1, 0.7], 0.8), ([0.7, 0.1, 0.1, 0.1], 1.0)])
def test_sums_of_values_may_miss_the_total_by_rounding_errors(values, at_least):
    """All of these clients are wanted, and their values sum to less than the total, in binary."""
    assert np.sum(values) < at_least
    clients = len(values)
    found = select_clients([1e5] * clients, 0, 1e7, 1e6, values=values, at_least=at_least)
    assert found.value.chosen.all()
    slow = [1e5] * clients + [1e7]  # further clients are not needed
    found = select_clients(slow, 0, 1e7, 1e6, values=[*values, 9.0], at_least=at_least)
    assert found.value.chosen.tolist() == [True] * clients + [False]
    more = at_least * (1 + 1e-11)
    found = select_clients([1e5] * clients, 0, 1e7, 1e6, values=values, at_least=more)
    assert found.status is Status.INFEASIBLE


@pytest.mark.parametrize("late", [0.1, 9.0])
@pytest.mark.parametrize(
    "choice", [{"count": 4}, {"values": [1, 1, 1, 1], "at_least": 4}, {"count": 3}]
)
def test_a_client_without_bits_ends_when_it_is_ready(choice, late):
    """It is chosen only if all are wanted, or if others end later."""
    bits, snr_hz = np.array([1e5, 2e5, 3e5, 0]), np.array([1e6, 1e7, 1e8, 1e7])
    ready = np.array([0.2, 0, 0.1, late])
    found = select_clients(bits, ready, snr_hz, 1e6, **choice)
    sets = list(combinations(range(4), choice.get("count", 4)))
    others = allocate_bandwidth(bits[:3], ready[:3], snr_hz[:3], 1e6).objective
    best = least_time(bits, ready, snr_hz, 1e6, sets)
    assert 0.1 < others < 9
    assert found.objective == pytest.approx(best, rel=1e-14)
    if len(sets) == 1:
        assert best == pytest.approx(max(others, late), rel=1e-14)
    else:
        assert found.value.chosen[3] == (late < others)


def test_batches_give_the_answers_of_single_problems():
    """Rows with and without a solution; ``at_least`` may vary where the clients do not."""
    random = np.random.default_rng(1)
    bits, ready, snr_hz = drawn(random, 3, 40)
    snr_hz[1, :30] = 0
    many = select_clients(bits, ready, snr_hz, 1e6, count=12)
    for row in (0, 2):
        one = select_clients(bits[row], ready[row], snr_hz[row], 1e6, count=12)
        assert one.objective == many.objective[row]
        np.testing.assert_array_equal(one.value.chosen, many.value.chosen[row])
    assert not many.value.chosen[1].any()
    assert (many.value.bandwidth_hz[1] == -1).all()
    assert many.status.tolist() == [Status.OPTIMAL, Status.INFEASIBLE, Status.OPTIMAL]
    assert many.message == (
        "1 of 3 problems are infeasible; item [1]: count is 12, but 10 of 40 clients can send; "
        "clients 0, 1, 2, 3, 4, ... cannot send: snr_hz is 0"
    )
    levels = np.array([5.0, 12, 40])
    found = select_clients(bits[0], ready[0], snr_hz[0], 1e6, values=1, at_least=levels)
    assert found.value.chosen.sum(-1).tolist() == levels.tolist()
    assert found.objective[1] == pytest.approx(many.objective[0], rel=1e-14)
    full = allocate_bandwidth(bits[0], ready[0], snr_hz[0], 1e6)
    assert found.objective[2] == pytest.approx(full.objective, rel=1e-14)


def test_wide_spreads_and_totals_of_all():
    """200 dB between channels, where bands have large errors; all clients are needed."""
    random = np.random.default_rng(2)
    bits, ready, snr_hz = (10 ** random.uniform(*r, (30, 40)) for r in ((0, 7), (-6, 2), (-5, 15)))
    values = random.random((30, 40))
    full = allocate_bandwidth(bits, ready, snr_hz, 1e6).objective
    for choice in ({"count": 40}, {"values": values, "at_least": values.sum(-1)}):
        found = select_clients(bits, ready, snr_hz, 1e6, **choice)
        assert found.gap.max() < 1e-13
        assert found.value.chosen.all()
        np.testing.assert_allclose(found.objective, full, rtol=1e-14)
    assert select_clients(bits, ready, snr_hz, 1e6, count=20).gap.max() < 1e-13


def test_gurobi_finds_nothing_sooner():
    """A little before the objective no set fits the band; a little later one does."""
    gurobipy = pytest.importorskip("gurobipy")
    try:
        environment = _environment()
    except SolverUnavailableError as error:
        pytest.skip(str(error))
    random = np.random.default_rng(5)
    bits, ready, snr_hz = drawn(random, 60)
    values = random.random(60)
    found = select_clients(bits, ready, snr_hz, 1e6, values=values, at_least=12.0)
    assert found.gap < 1e-13
    for factor, fits in ((1 - 1e-6, False), (1 + 1e-6, True)):
        window = found.objective * factor - ready
        able = (window > 0) & (bits * np.log(2) < window * snr_hz)
        needed = np.full(60, 9.0)  # no client has more than the whole band
        needed[able] = least_band(bits[able], window[able], snr_hz[able])[0] / 1e6
        with gurobipy.Model(env=environment) as model:
            pick = model.addMVar(60, vtype="B")
            model.Params.MIPGap = 0
            model.addConstr(values @ pick >= 12.0)
            model.setObjective(needed.clip(max=9.0) @ pick)
            model.optimize()
            assert (model.ObjVal < 1) is fits
    environment.dispose()


def test_a_hard_knapsack_is_cut_short(monkeypatch):
    """Costs equal to values: among many sums only the bound tells how close the best one is."""
    values = np.random.default_rng(3).random(40)
    monkeypatch.setattr("solvers.bands.knapsack._MAX_CHOICES", 100)
    items, bound = cheapest(values, values, 7.7, np.inf)
    total = values[items].sum()
    assert 7.7 <= total < 7.7 * (1 + 1e-4)
    assert bound == pytest.approx(7.7, rel=1e-6)
    items, bound = cheapest(np.ones(60), np.ones(60), 9.5, np.inf)
    assert len(items) == 10
    assert bound == pytest.approx(10, rel=1e-12)


def test_tensors_give_tensors():
    bits = torch.full((2, 3), 1e5)
    found = select_clients(bits, torch.tensor([0.3, 0.1, 0.2]), 1e7, 1e6, count=2)
    assert isinstance(found.value, Selection)
    assert found.value.chosen.tolist() == [[False, True, True]] * 2
    assert found.value.bandwidth_hz.dtype == found.objective.dtype == torch.float64


GOOD = {"bits": [1e5, 1e5, 1e5], "compute_seconds": 0, "snr_hz": [1e7, 0, 0], "bandwidth_hz": 1e6}


def test_shortfalls_are_named():
    found = select_clients(**GOOD, values=[2, 3, 4], at_least=5)
    assert (found.value, found.objective, found.status) == (None, np.inf, Status.INFEASIBLE)
    assert found.message == (
        "at_least is 5.0, but the clients that can send have a total value of 2.0; "
        "clients 1, 2 cannot send: snr_hz is 0"
    )
    assert select_clients(**GOOD, count=2).message.startswith("count is 2, but 1 of 3 clients can")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({}, "given are neither count nor values: give either count, or values and at_least"),
        ({"values": 1}, "given are values: give either count"),
        ({"count": 1, "at_least": 1}, "given are count, at_least: give"),
        ({"count": 1, "values": 1, "at_least": 1}, "given are count, values, at_least"),
        ({"values": [1, 2, -1], "at_least": 1}, r"values\[2\] is -1.0: give a finite number >= 0"),
        ({"values": 1, "at_least": 0}, "at_least is 0.0: give a finite number > 0"),
        ({"values": [1, 2], "at_least": 1}, r"values \(2,\), .* and at_least \[...\]"),
    ],
)
def test_bad_choices_are_named(choice, message):
    with pytest.raises(ValueError, match=message):
        select_clients(**GOOD, **choice)
