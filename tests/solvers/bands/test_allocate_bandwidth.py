"""``allocate_bandwidth`` against SciPy and cvxpy, its certificate, and hard or bad problems."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from solvers import Status, allocate_bandwidth
from solvers.bands.least_band import least_band, spectral_ratio

LN2 = np.log(2)


def drawn(random, *shape):
    """Bits, seconds and SNR x band of clients that differ by orders of magnitude."""
    bits = 10 ** random.uniform(4, 6, shape)
    return bits, random.uniform(0, 0.5, shape), 10 ** random.uniform(5, 9, shape)


def seconds(bits, ready, snr_hz, bands):
    return ready + bits * LN2 / (bands * np.log1p(snr_hz / bands))


def by_bisection(bits, ready, snr_hz, band):
    """T* by bisection, with each client's band by bisection, from rates alone."""

    def excess(end):
        low, high = np.full(len(bits), -60.0), np.full(len(bits), 60.0)  # exponents of the bands
        for _ in range(60):
            middle = (low + high) / 2
            late = seconds(bits, ready, snr_hz, np.exp(middle)) > end
            low, high = np.where(late, middle, low), np.where(late, high, middle)
        return np.log(np.exp(high).sum() / band)

    first = seconds(bits, ready, snr_hz, band).max()
    last = seconds(bits, ready, snr_hz, band / len(bits)).max()
    return brentq(excess, first * (1 - 1e-9), last * (1 + 1e-9), xtol=1e-13)


@pytest.mark.parametrize("clients", [1, 2, 15, 50])
def test_the_least_time_is_that_of_bisection(clients):
    """Bands fill the cell, no client ends later than the objective, and SciPy agrees."""
    random = np.random.default_rng(clients)
    bits, ready, snr_hz = drawn(random, 5, clients)
    band = 10 ** random.uniform(5, 7, 5)
    found = allocate_bandwidth(bits, ready, snr_hz, band)
    assert (found.status == Status.OPTIMAL).all()
    assert found.gap.max() < 1e-14
    np.testing.assert_allclose(found.value.sum(-1), band, rtol=1e-14)
    ends = seconds(bits, ready, snr_hz, found.value).max(-1)
    np.testing.assert_allclose(ends, found.objective, rtol=1e-12)
    expected = [by_bisection(*one) for one in zip(bits, ready, snr_hz, band, strict=True)]
    np.testing.assert_allclose(found.objective, expected, rtol=1e-10)


@given(st.integers(0, 2**32), st.integers(1, 8))
def test_no_other_bands_end_sooner(seed, clients):
    """The bound holds for any bands; more band, power or fewer bits never end later."""
    random = np.random.default_rng(seed)
    bits, ready, snr_hz = drawn(random, clients)
    found = allocate_bandwidth(bits, ready, snr_hz, 1e6)
    others = random.dirichlet(np.ones(clients), 50) * 1e6
    assert seconds(bits, ready, snr_hz, others).max(-1).min() >= found.bound * (1 - 1e-15)
    for easier in (
        (bits, ready, snr_hz, 2e6),
        (bits, ready, 2 * snr_hz, 1e6),
        (bits / 2, ready, snr_hz, 1e6),
    ):
        assert allocate_bandwidth(*easier).objective <= found.objective * (1 + 1e-15)


def test_a_cone_program_agrees():
    """cvxpy minimises the end with the same rates, written as relative entropies."""
    cvxpy = pytest.importorskip("cvxpy")
    random = np.random.default_rng(4)
    bits, ready, snr_hz = drawn(random, 6)
    snr_hz = snr_hz.clip(1e6)
    found = allocate_bandwidth(bits, ready, snr_hz, 1e6)
    end, band = cvxpy.Variable(), cvxpy.Variable(6)  # the band in MHz
    snr = snr_hz / 1e6
    rate = -cvxpy.rel_entr(band, band + snr) / LN2  # MHz: b log2(1 + snr / b)
    problem = cvxpy.Problem(
        cvxpy.Minimize(end),
        [rate >= cvxpy.multiply(bits / 1e6, cvxpy.inv_pos(end - ready)), cvxpy.sum(band) <= 1],
    )
    problem.solve(solver="CLARABEL")
    assert found.objective == pytest.approx(end.value, rel=1e-6)


def test_the_root_is_exact_at_both_ends():
    """Residuals are rounding errors for SNRs from -100 dB to 200 dB; derivatives agree."""
    a = np.concatenate([10 ** np.linspace(-19, -1, 200), 1 - 10 ** np.linspace(-10, -1, 200)])
    y = spectral_ratio(a)
    assert np.abs(a * y / np.log1p(y) - 1).max() < 1e-14
    window = np.linspace(0.2, 2, 50)
    bits, snr_hz = np.full(50, 1e5), np.full(50, 1e6)
    band, slope = least_band(bits, window, snr_hz)
    further = least_band(bits, window * (1 + 1e-6), snr_hz)[0]
    np.testing.assert_allclose((further - band) / (1e-6 * window), slope, rtol=1e-4)


def test_equal_clients_get_equal_bands():
    found = allocate_bandwidth(1e5, np.zeros(7), 1e7, 1e6)
    np.testing.assert_allclose(found.value, 1e6 / 7, rtol=1e-14)
    assert isinstance(found.objective, float)
    assert found.status is Status.OPTIMAL


def test_clients_without_bits_need_no_band():
    """They still delay the round; without any bits the round ends with the last of them."""
    found = allocate_bandwidth([1e5, 0], [0, 9.0], [1e7, 0], 1e6)
    assert found.value == pytest.approx([1e6, 0])
    assert found.objective == pytest.approx(9.0)
    alone = allocate_bandwidth([0.0, 0.0], [1.0, 2.0], [0.0, 1.0], 1e6)
    assert alone.objective == alone.bound == 2.0
    assert (alone.value == 0).all()


def test_wide_spreads_and_many_clients():
    """200 dB between channels, and 100,000 clients in one cell."""
    random = np.random.default_rng(2)
    for clients in (50, 100_000):
        bits, ready, _ = drawn(random, clients)
        snr_hz = 10 ** random.uniform(-5, 15, clients)
        found = allocate_bandwidth(bits, ready, snr_hz, 1e8)
        assert found.gap < 1e-13
        assert seconds(bits, ready, snr_hz, found.value).max() <= found.objective * (1 + 1e-12)


def test_magnitudes_up_to_the_limits_are_computed():
    """Any units: numbers that differ by up to 120 orders of magnitude."""
    random = np.random.default_rng(7)
    bits, ready, snr_hz = 10 ** random.uniform(-60, 60, (3, 200, 4))
    found = allocate_bandwidth(bits, ready, snr_hz, 10 ** random.uniform(-60, 60, 200))
    assert (found.status == Status.OPTIMAL).all()


def test_clients_without_a_channel_are_named():
    single = allocate_bandwidth([1e5, 1e5, 0], 0, [1e7, 0, 0], 1e6)
    assert (single.value, single.objective, single.status) == (None, np.inf, Status.INFEASIBLE)
    assert single.message == "client 1 cannot send: snr_hz is 0"
    batch = allocate_bandwidth([[1e5, 1e5], [1e5, 1e5]], 0, [[1e7, 1e7], [0, 0]], 1e6)
    assert batch.status.tolist() == [Status.OPTIMAL, Status.INFEASIBLE]
    assert (batch.value[1] == -1).all()
    assert batch.objective[1] == np.inf
    assert batch.message == (
        "1 of 2 problems are infeasible; item [1]: clients 0, 1 cannot send: snr_hz is 0"
    )


def test_tensors_give_tensors():
    bits = torch.full((2, 3), 1e5)
    found = allocate_bandwidth(bits, 0.1, torch.full((3,), 1e7), torch.tensor([1e6, 2e6]))
    assert found.value.shape == (2, 3)
    assert found.value.dtype == found.objective.dtype == torch.float64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": [-1.0, 1]}, r"bits\[0\] is -1.0: give a finite number >= 0, in bits"),
        ({"bandwidth_hz": 1e-300}, "bandwidth_hz is 1e-300: give a number from 1e-60"),
        ({"bandwidth_hz": 0}, "bandwidth_hz is 0.0: give a finite number > 0, in Hz"),
        ({"bits": [[1, 1]] * 3, "bandwidth_hz": [1, 2]}, r"not fit: .*bandwidth_hz \(2,\)"),
        ({"bits": [], "snr_hz": 1}, r"bits has shape \(0,\): give .* with clients"),
    ],
)
def test_bad_arguments_are_named(change, message):
    good = {"bits": [1.0, 1], "compute_seconds": 0, "snr_hz": [1, 2], "bandwidth_hz": 1}
    with pytest.raises(ValueError, match=message):
        allocate_bandwidth(**(good | change))


def test_bands_sum_to_the_band_where_uploads_are_as_short_as_rounding_errors():
    random = np.random.default_rng(0)
    bits, snr = (10 ** random.uniform(*ends, (2000, 3)) for ends in ((-6, 6), (2, 10)))
    ready, band = 1e7 * random.random((2000, 3)), 10 ** random.uniform(3, 9, 2000)
    found = allocate_bandwidth(bits, ready, snr, band)
    np.testing.assert_allclose(found.value.sum(-1), band, rtol=2e-12)
    assert found.gap.max() < 1e-14
