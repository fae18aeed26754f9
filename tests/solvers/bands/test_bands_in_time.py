"""``allocate_bands_in_time`` against cvxpy, fixed shares of band and time, and weak duality."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from solvers import (
    BandsInTime,
    Status,
    allocate_bands_in_time,
    allocate_bandwidth,
    schedule_uplink,
)
from solvers.bands import interval_prices
from solvers.bands.interval_prices import Block, IntervalPrices, nats, shortest

LN2 = np.log(2)


def drawn(random, clients, spread):
    """Bits, seconds and SNR x band of clients that differ by orders of magnitude."""
    bits = 10 ** random.uniform(4, 6, clients)
    return bits, random.uniform(0, spread, clients), 10 ** random.uniform(5, 9, clients)


def check_delivery(found, bits, ready, snr_hz, band):
    """The bands fit at all times, no client sends before it is ready, and all bits arrive."""
    starts, bands = found.value
    assert (np.diff(starts) >= 0).all()
    assert (bands.sum(0) <= band * (1 + 1e-13)).all()
    assert (bands[starts < ready[:, None]] == 0).all()
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(bands > 0, bands * np.log1p(snr_hz[:, None] / bands) / LN2, 0)
    seconds = np.diff(np.append(starts, found.objective))
    np.testing.assert_array_less(bits * (1 - 1e-9), rates @ seconds + 1e-300)


@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from([0.01, 0.3, 10]))
def test_fixed_shares_end_no_sooner(seed, clients, spread):
    """Constant bands and the whole band in turn are special cases; the certificate is tight."""
    random = np.random.default_rng(seed)
    bits, ready, snr_hz = drawn(random, clients, spread)
    ready *= random.random(clients) < 0.8
    bits *= random.random(clients) < 0.9
    found = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
    assert found.gap < 1e-8
    check_delivery(found, bits, ready, snr_hz, 1e6)
    constant = allocate_bandwidth(bits, ready, snr_hz, 1e6)
    turns = schedule_uplink(ready, bits / (1e6 * np.log2(1 + snr_hz / 1e6)))
    assert found.objective <= min(constant.objective, turns.objective) * (1 + 1e-8)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("clients", "spread"), [(2, 0.1), (4, 0.3), (6, 0.1), (6, 1), (9, 0.3), (32, 1)]
)
def test_a_cone_program_agrees(clients, spread):
    """cvxpy minimises the end over hertz x seconds in each interval, by relative entropies."""
    cvxpy = pytest.importorskip("cvxpy")
    random = np.random.default_rng(clients)
    bits, ready, snr_hz = drawn(random, clients, spread)
    snr_hz = snr_hz.clip(1e6)
    starts = np.sort(ready)
    end, parts = cvxpy.Variable(), cvxpy.Variable((clients, clients), nonneg=True)
    limits, sent = [], [0] * clients
    for k in range(clients):
        length = (starts[k + 1] if k + 1 < clients else end) - starts[k]
        limits.append(cvxpy.sum(parts[:, k]) <= length)
        for i in range(clients):
            if ready[i] > starts[k]:
                limits.append(parts[i, k] == 0)
            else:
                whole = parts[i, k] + snr_hz[i] / 1e6 * length
                sent[i] -= cvxpy.rel_entr(parts[i, k], whole) / LN2
    limits += [sent[i] >= bits[i] / 1e6 for i in range(clients)]
    cvxpy.Problem(cvxpy.Minimize(end), [*limits, end >= starts[-1]]).solve(solver="CLARABEL")
    found = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
    assert found.objective == pytest.approx(end.value, rel=1e-6)


@pytest.mark.parametrize("late", [0.1, 0.6, 0.95, 1.3])
@pytest.mark.parametrize("clients", [30, 150])
def test_longer_intervals_are_a_start_only(clients, late, monkeypatch):
    """The optimum is that of a search that starts from constant bands, at any load of the cell."""
    random = np.random.default_rng(clients)
    bits, ready, snr_hz = drawn(random, clients, 1.0)
    ready *= late * allocate_bandwidth(bits, 0, snr_hz, 1e6).objective
    found = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
    assert found.gap < 1e-10
    check_delivery(found, bits, ready, snr_hz, 1e6)
    monkeypatch.setattr(interval_prices, "_FEW", clients)
    direct = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
    assert direct.gap < 1e-10
    assert found.objective == pytest.approx(direct.objective, rel=1e-9)


def test_any_prices_give_a_bound():
    """Weak duality; so errors of the search cannot make a bound invalid."""
    random = np.random.default_rng(3)
    lengths = random.uniform(0, 0.1, 5)
    block = Block(
        random.uniform(0.05, 0.3, 6), np.arange(6), 10 ** random.uniform(-1, 2, 6), lengths
    )
    plan, bound = shortest(block)
    assert bound == pytest.approx(plan.last, rel=1e-9)
    for scale in (0.01, 0.1, 1, 10):
        for _ in range(20):
            prices, weights = scale * random.normal(size=(2, 6))
            assert IntervalPrices(block, prices, weights).bound <= plan.last


def test_clients_that_are_ready_together_have_constant_bands():
    random = np.random.default_rng(4)
    bits, _, snr_hz = drawn(random, 20, 1)
    found = allocate_bands_in_time(bits, 0.3, snr_hz, 1e6)
    constant = allocate_bandwidth(bits, 0.3, snr_hz, 1e6)
    assert found.objective == pytest.approx(constant.objective, rel=1e-12)
    np.testing.assert_allclose(found.value.bandwidth_hz[:, -1], constant.value, rtol=1e-9)


@pytest.mark.parametrize("late", [-1e-3, -1e-9, 0, 1e-9, 1e-3])
def test_the_last_client_is_ready_when_the_others_end(late):
    """There the others' weights tend to 0: alone, the last client ends as soon."""
    random = np.random.default_rng(6)
    bits, ready, snr_hz = drawn(random, 8, 0.3)
    others = allocate_bands_in_time(bits[:7], ready[:7], snr_hz[:7], 1e6)
    ready[7] = others.objective * (1 + late)
    found = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
    assert found.gap < 1e-8
    alone = ready[7] + bits[7] / (1e6 * np.log2(1 + snr_hz[7] / 1e6))
    if late >= 0:
        assert found.objective == pytest.approx(alone, rel=1e-12)
    assert alone <= found.objective <= alone * (1 + max(-late, 1e-12))


@pytest.mark.parametrize("late", [0.1, 3.0])
def test_a_client_without_bits_ends_when_it_is_ready(late):
    """It is ready before or after the others end; their bands do not change."""
    bits, ready, snr_hz = drawn(np.random.default_rng(8), 6, 0.3)
    others = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
    assert 0.1 < others.objective < 3
    bits, ready, snr_hz = np.append(bits, 0), np.append(ready, late), np.append(snr_hz, 1e7)
    found = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
    assert found.objective == max(others.objective, late)
    assert found.bound == max(others.bound, late)
    check_delivery(found, bits, ready, snr_hz, 1e6)


def test_wide_spreads():
    """120 dB between channels, and uploads of 1 bit to 10 Mbit."""
    random = np.random.default_rng(7)
    for clients in (5, 20):
        bits, ready, snr_hz = (
            10 ** random.uniform(*r, clients) for r in ((0, 7), (-3, 1), (2, 14))
        )
        found = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
        assert found.gap < 1e-8
        check_delivery(found, bits, ready, snr_hz, 1e6)


def test_batches_and_clients_that_cannot_send():
    random = np.random.default_rng(5)
    bits, ready, snr_hz = drawn(random, (3, 4), 0.3)
    bits[2], snr_hz[1, 2] = 0, 0
    many = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
    assert many.status.tolist() == [Status.OPTIMAL, Status.INFEASIBLE, Status.OPTIMAL]
    assert (many.value.bandwidth_hz[1] == -1).all()
    text = "client 2 cannot send: snr_hz is 0"
    assert many.message == f"1 of 3 problems are infeasible; item [1]: {text}"
    assert many.objective[2] == many.bound[2] == ready[2].max()
    assert (many.value.bandwidth_hz[2] == 0).all()
    one = allocate_bands_in_time(bits[0], ready[0], snr_hz[0], 1e6)
    np.testing.assert_array_equal(one.value.bandwidth_hz, many.value.bandwidth_hz[0])
    nothing = allocate_bands_in_time(bits[1], ready[1], snr_hz[1], 1e6)
    assert (nothing.value, nothing.message) == (None, text)


@pytest.mark.parametrize("snr_hz", [1e-60, 1e-9, 1e-3])
def test_a_client_far_below_the_noise(snr_hz):
    """Its rate is snr_hz / ln 2 in any band; the other clients are done long before."""
    bits, ready, snr = (
        np.array([[1e6, 1e5], [1e6, 1e5]]),
        np.array([0.0, 0.1]),
        np.full((2, 2), 1e7),
    )
    snr[0, 0] = snr_hz
    found = allocate_bands_in_time(bits, ready, snr, 2e7)
    assert (found.status == Status.OPTIMAL).all()
    assert found.objective[0] == pytest.approx(1e6 * LN2 / snr_hz, rel=1e-9)
    usual = allocate_bands_in_time(bits[1], ready, snr[1], 2e7)
    assert found.objective[1] == usual.objective


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("seed", range(40))
def test_numbers_from_one_limit_to_the_other(seed):
    """Warnings are errors: prices that overflow on the way are no better than those before."""
    random = np.random.default_rng(seed)
    bits, ready, snr_hz, band = (
        *10 ** random.uniform(-60, 60, (3, 5)),
        10 ** random.uniform(-60, 60),
    )
    found = allocate_bands_in_time(bits, ready, snr_hz, band)
    assert found.bound <= found.objective
    alone = (ready + bits * LN2 / band / np.log1p(snr_hz / band)).max()
    constant = allocate_bandwidth(bits, ready, snr_hz, band).objective
    assert alone * (1 - 1e-12) <= found.objective <= constant * (1 + 1e-12)


def test_a_step_without_a_solution_ends_the_search_of_its_problem_only(monkeypatch):
    random = np.random.default_rng(8)
    bits, ready, snr_hz = drawn(random, (2, 5), 0.1)
    usual = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
    solve, calls = np.linalg.solve, []

    def failing(matrix, right):
        calls.append(1)
        if len(calls) == 1:
            raise np.linalg.LinAlgError("Singular matrix")
        return solve(matrix, right)

    monkeypatch.setattr(np.linalg, "solve", failing)
    found = allocate_bands_in_time(bits, ready, snr_hz, 1e6)
    assert found.objective[1] == usual.objective[1]
    assert found.bound[0] <= usual.objective[0] <= found.objective[0] < np.inf
    for row in range(2):
        one = BandsInTime(*(array[row] for array in found.value))
        check_delivery(
            replace(usual, value=one, objective=found.objective[row]),
            bits[row], ready[row], snr_hz[row], 1e6,
        )  # fmt: skip


def test_tensors_give_tensors():
    found = allocate_bands_in_time(torch.full((2, 3), 1e5), torch.arange(3), 1e7, 1e6)
    assert isinstance(found.value, BandsInTime)
    assert found.value.start_seconds.tolist() == [[0, 1, 2]] * 2
    assert found.value.bandwidth_hz.shape == (2, 3, 3)
    assert found.objective.dtype == torch.float64


def test_the_root_is_exact():
    w = 10 ** np.linspace(-4, 2, 200)
    z = np.where(w < 1e-2, w**2 / 2 - w**3 / 6 + w**4 / 24 - w**5 / 120, w + np.expm1(-w))
    np.testing.assert_allclose(nats(z), w, rtol=1e-10)
