"""Probabilities that uploads are lost, against formulas, Monte-Carlo draws and integrals."""

import math
import time

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc
from scipy.stats import norm

from channels import Stream, outage_probability, packet_error_probability, rate_bps, snr_linear

NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)


def test_packet_errors_are_those_of_the_formula():
    snr, waterfall = np.array([[0.01, 1.0], [7.5, 1e4]]), [-3.0, 4.77]
    found = packet_error_probability(snr, waterfall)
    for row, column in np.ndindex(2, 2):
        m = 10 ** (waterfall[column] / 10)
        assert found[row, column] == pytest.approx(1 - math.exp(-m / snr[row, column]), rel=1e-12)


def test_packet_errors_in_the_limits():
    """All are lost without a signal, m / SNR of them with a strong one, 63 % at the threshold."""
    assert packet_error_probability([0.0, 1e-320], 0.0).tolist() == [1, 1]
    assert packet_error_probability(1e20, 10.0) == pytest.approx(1e-19, rel=1e-12)
    assert packet_error_probability(10.0, 10.0) == pytest.approx(1 - math.exp(-1), rel=1e-12)
    assert packet_error_probability(0.0, -300.0) == 1
    assert np.shape(packet_error_probability(1.0, 0.0)) == ()
    assert packet_error_probability(np.zeros((0, 3)), 0.0).shape == (0, 3)


def test_packet_errors_of_a_faded_channel():
    """Their mean over Rayleigh draws is the integral of the paper's mean over the fading."""
    random = Stream(1).generator()
    mean, m = 5.0, 10**0.033
    draws = packet_error_probability(mean * random.exponential(size=100_000), 0.33).mean()
    wanted = quad(lambda g: (1 - math.exp(-m / (mean * g))) * math.exp(-g), 0, 50)[0]
    assert draws == pytest.approx(wanted, abs=4 * 0.3 / math.sqrt(1e5))


@pytest.mark.parametrize("antennas", [1, 3])
@pytest.mark.parametrize("variance", [0.05, 0.4, 3.0])
def test_outages_are_those_of_drawn_channels(antennas, variance):
    """Of 20,000 channels h' + e, so many have a lower capacity than the rate that is sent."""
    random = Stream(antennas).generator()
    known = random.standard_normal(2 * antennas).view(complex) / math.sqrt(2)
    errors = random.standard_normal((20_000, 2 * antennas)).view(complex) * math.sqrt(variance / 2)
    gain, power = (abs(known) ** 2).sum(), (abs(known + errors) ** 2).sum(-1)
    snr = 10.0
    for margin in (0.0, 1.5, 6.0):
        sent = rate_bps(1e6, snr / snr_linear(margin), gain)
        share = (rate_bps(1e6, snr, power) < sent).mean()
        found = float(outage_probability(gain, margin, variance, antennas))
        assert share == pytest.approx(found, abs=4 * math.sqrt(found * (1 - found) / 2e4) + 1e-4)


def by_integral(noncentrality, margin_db, antennas):
    """P((a + Z)^2 + G < a^2 / margin), integrated over Z: G is a sum of 2 M - 1 squares."""
    a = math.sqrt(noncentrality)
    top = a * 10 ** (-margin_db / 20)
    low = max(top - 15 - 4 * antennas / top, 0)
    angle = (NODES + 1) * math.pi / 4
    x = low + (top - low) * np.sin(angle)  # so that the root of top - x is smooth
    step = (top - low) * np.cos(angle) * WEIGHTS * math.pi / 4
    density = norm.pdf(x - a) + norm.pdf(x + a)  # of |a + Z| = x
    return step @ (density * gammainc(antennas - 0.5, (top - x) * (top + x) / 2))


@pytest.mark.parametrize("antennas", [1, 4, 30])
def test_outages_are_those_of_an_integral(antennas):
    """Also next to where the method changes (noncentrality 1000, or 100 M), and far above it."""
    for noncentrality in (0.3, 12.0, 700.0, 990.0, 1010.0, 2990.0, 3010.0, 1e5, 1e7):
        for margin in (0.0, 0.01, 0.1, 0.7, 3.0):
            found = outage_probability(noncentrality / 2, margin, 1.0, antennas)
            wanted = by_integral(noncentrality, margin, antennas)
            assert found == pytest.approx(wanted, abs=1e-12), (noncentrality, margin)


@pytest.mark.parametrize("antennas", [1, 2, 16, 500, 1_000_000])
def test_outages_are_probabilities_at_all_ratios(antennas):
    """Without NaN; they fall with the margin, and without one rise to 1/2 as the variance falls."""
    gain = np.concatenate([[1e-300], np.geomspace(1e-12, 1e12, 97), [1e300]])
    margin = np.array([0, 1e-9, 1e-3, 0.1, 1, 10, 300.0])
    found = outage_probability(gain[:, None], margin, 1.0, antennas)
    assert ((found >= 0) & (found <= 0.5)).all()
    assert (np.diff(found, axis=1) <= 1e-14).all()
    assert (np.diff(found[:, 0]) >= -1e-13).all()
    assert found[-1, 0] == pytest.approx(0.5, abs=1e-12)
    assert found[-1, 1:].tolist() == [0] * 6


def test_outages_depend_on_the_ratio_only():
    unit = np.array([1e-290, 1.0, 1e290])
    found = outage_probability(3.0 * unit, 1.0, 0.2 * unit, 2)
    assert found == pytest.approx(np.full(3, found[1]), rel=1e-12)
    assert found[1] > 0.01


def test_one_antenna_with_a_strong_error():
    """v much larger than the gain: ||e||^2 / v is exponential, so P = 1 - exp(-gain / (l v))."""
    found = outage_probability(1e-6, 3.0, 1.0, 1)
    assert found == pytest.approx(-math.expm1(-1e-6 / 10**0.3), rel=1e-5)


def test_known_channels_have_no_outage():
    """At variance 0 the rate is at most the capacity; without a channel, the rate is 0."""
    gain = np.array([0.0, 1e-12, 3.0, 1e300])
    for margin in (0.0, 2.0):
        assert outage_probability(gain, margin, 0.0, 4).tolist() == [0] * 4
    assert outage_probability(0.0, 0.0, 1.0, 4) == 0


def test_arguments_of_outages_are_broadcast():
    found = outage_probability(np.ones((5, 1, 3)), np.ones((2, 1)), [0.1, 0.0, 0.4], 2)
    assert found.shape == (5, 2, 3)
    assert (found == found[:1, :1]).all()
    for i, variance in enumerate([0.1, 0.0, 0.4]):
        assert found[0, 0, i] == outage_probability(1.0, 1.0, variance, 2)
    assert outage_probability(np.ones((0, 3)), 1.0, 1.0, 2).shape == (0, 3)


def test_many_outages_are_fast():
    gain = np.geomspace(1e-3, 1e9, 100_000)
    start = time.perf_counter()
    outage_probability(gain, 1.0, 1.0, 4)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: packet_error_probability([1, 2], [1, 2, 3]), "the shapes do not fit: snr"),
        (lambda: outage_probability([1, 2], 1, [1, 2, 3], 1), "the shapes do not fit: gain"),
    ],
)
def test_bad_arguments_of_failures_are_named(call, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        call()
    assert "\n" not in str(caught.value)
