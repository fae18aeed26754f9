"""``optimize_widths_and_bands``: its certificate, feasibility, SciPy as reference, hard cases."""

import numpy as np
import pytest
from scipy.optimize import minimize

from solvers import Status, allocate_bandwidth, optimize_widths_and_bands


def drawn(random, *shape):
    return (
        10 ** random.uniform(4, 6, shape),
        random.uniform(0, 2, shape),
        10 ** random.uniform(4, 9, shape),
    )


def ends(bits, seconds, snr_hz, found):
    widths, bands = found.value
    rate = bands * np.log1p(snr_hz / bands) / np.log(2)
    return widths * (seconds + bits / rate)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("clients", [1, 2, 5, 30])
def test_widths_are_optimal_and_end_in_time(clients):
    random = np.random.default_rng(clients)
    bits, seconds, snr_hz = drawn(random, 30, clients)
    band, deadline = 10 ** random.uniform(4, 8, 30), 10 ** random.uniform(-1, 1, 30)
    weights = random.uniform(0.1, 1, (30, clients))
    found = optimize_widths_and_bands(bits, seconds, snr_hz, band, deadline, weights=weights)
    assert found.gap.max() < 1e-13
    assert (found.value.widths <= 1).all()
    assert (found.value.bandwidth_hz.sum(-1) <= band * (1 + 1e-14)).all()
    late = ends(bits, seconds, snr_hz, found) / deadline[:, None]
    assert late.max() <= 1 + 1e-12
    np.testing.assert_allclose((weights * found.value.widths).sum(-1), found.objective, rtol=1e-14)
    others = random.dirichlet(np.ones(clients), 20)[:, None] * band[:, None]
    rate = others * np.log1p(snr_hz / others) / np.log(2)
    widths = np.minimum(deadline[:, None] / (seconds + bits / rate), 1)
    assert ((weights * widths).sum(-1) <= found.bound * (1 + 1e-13)).all()


def test_a_general_optimiser_finds_the_same():
    random = np.random.default_rng(3)
    bits, seconds, snr_hz = drawn(random, 4)
    found = optimize_widths_and_bands(bits, seconds, snr_hz, 1e6, 1.0)

    def lost(share):
        bands = np.exp(share - share.max())
        bands *= 1e6 / bands.sum()
        rate = bands * np.log1p(snr_hz / bands) / np.log(2)
        return -np.minimum(1 / (seconds + bits / rate), 1).sum()

    best = min(
        minimize(lost, start, method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-12}).fun
        for start in random.standard_normal((4, 4))
    )
    assert -best <= found.bound * (1 + 1e-12)
    assert found.objective == pytest.approx(-best, rel=1e-6)


def test_with_much_time_all_train_the_cap():
    bits, seconds, snr_hz = drawn(np.random.default_rng(4), 6)
    end = allocate_bandwidth(bits, seconds, snr_hz, 1e6).objective
    found = optimize_widths_and_bands(bits, seconds, snr_hz, 1e6, end * (1 + 1e-9))
    np.testing.assert_allclose(found.value.widths, 1)
    half = optimize_widths_and_bands(bits, seconds, snr_hz, 1e6, end, cap=0.5)
    assert half.objective == pytest.approx(3)
    less = optimize_widths_and_bands(bits, seconds, snr_hz, 1e6, 0.9 * end)
    assert less.objective < 6


def test_clients_without_a_channel_train_nothing():
    found = optimize_widths_and_bands([1e5, 1e5], 0, [0, 1e6], 1e5, 0.5)
    alone = optimize_widths_and_bands([1e5], 0, [1e6], 1e5, 0.5)
    assert found.objective == pytest.approx(alone.objective, rel=1e-14)
    assert found.value.widths[0] == found.value.bandwidth_hz[0] == 0
    none = optimize_widths_and_bands([1e5], 0, [0], 1e5, 0.5)
    assert none.objective == none.bound == 0
    assert none.status is Status.OPTIMAL


def test_short_uploads_beside_a_client_without_a_channel():
    """Warnings are errors: numbers of the client without a channel stay in range."""
    found = optimize_widths_and_bands(1e-20, 0.1, [0, 1e6, 2e6], 1e5, 1e-8)
    alone = optimize_widths_and_bands(1e-20, 0.1, [1e6, 2e6], 1e5, 1e-8)
    assert found.objective == pytest.approx(alone.objective, rel=1e-14)
    assert found.value.bandwidth_hz[0] == 0


def test_a_hopeless_client_trains_nothing():
    """Its best band is far below rounding errors of the cell's: no width would end in time."""
    bits, seconds, snr_hz = np.full(2, 1e5), np.full(2, 0.1), np.array([1e7, 1e3])
    found = optimize_widths_and_bands(bits, seconds, snr_hz, 1e5, 0.1, weights=[1, 1e-3])
    assert found.value.widths[1] == found.value.bandwidth_hz[1] == 0
    alone = optimize_widths_and_bands(bits[:1], seconds[:1], snr_hz[:1], 1e5, 0.1)
    assert found.objective == pytest.approx(alone.objective, rel=1e-14)
    assert found.status is Status.OPTIMAL


def test_spreads_of_200_db():
    random = np.random.default_rng(5)
    bits, seconds, _ = drawn(random, 50)
    found = optimize_widths_and_bands(bits, seconds, 10 ** random.uniform(-5, 15, 50), 1e6, 1.0)
    assert found.gap < 1e-12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1, 2, 3]}, "shapes do not fit"),
    ],
)
def test_bad_arguments_are_named(change, message):
    good = {
        "bits": [1.0, 1],
        "compute_seconds": 0,
        "snr_hz": 1,
        "bandwidth_hz": 1,
        "deadline_seconds": 1,
    }
    with pytest.raises(ValueError, match=message):
        optimize_widths_and_bands(**(good | change))
