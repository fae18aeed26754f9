"""Monte Carlo power and correlation of fading models match their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import (
    Fading,
    Rayleigh,
    Rician,
    Stream,
    correlate,
    correlation_root,
    exponential_correlation,
    path_loss_db,
)

STREAM = Stream(5, ("fading",))
SAMPLES = 200_000
ALL_CLIENTS = np.arange(SAMPLES)


def standard_error(samples):
    return samples.std(axis=0).max() / np.sqrt(len(samples))


def correlation_by_definition(antennas, rho):
    matrix = np.empty((antennas, antennas), dtype=complex)
    for m in range(antennas):
        for n in range(antennas):
            matrix[m, n] = rho ** (m - n) if m >= n else np.conj(rho) ** (n - m)
    return matrix


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("rho", [0.0, 0.9, 0.5 - 0.6j])
def test_rayleigh_has_the_given_correlation(rho):
    """E[h h^H] = R and E[h h^T] = 0; the standard error is at most 1/sqrt(2e5) = 0.0023."""
    antennas = 4
    h = Rayleigh().draw(STREAM, 0, ALL_CLIENTS, correlation_root(antennas, rho))
    assert h.dtype == np.complex64
    assert h.shape == (SAMPLES, antennas)
    products = h[:, :, None] * h[:, None, :].conj()
    assert standard_error(products) < 0.01 / 3
    wanted = correlation_by_definition(antennas, rho)
    assert np.abs(products.mean(axis=0) - wanted).max() < 0.01
    assert np.abs((h[:, :, None] * h[:, None, :]).mean(axis=0)).max() < 0.01
    assert np.abs(h.mean(axis=0)).max() < 0.01


def test_rayleigh_power_is_exponential():
    """P(|h|^2 > x) = e^-x; the standard error is below 0.5/sqrt(2e5) = 0.0011."""
    power = np.abs(Rayleigh().draw(STREAM, 1, ALL_CLIENTS, np.eye(1))[:, 0]) ** 2
    for x in (0.1, 0.7, 1.0, 3.0):
        assert abs((power > x).mean() - np.exp(-x)) < 0.004


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("k_db", [-100.0, -3.0, 6.0, 100.0])
def test_rician_moments(k_db):
    """The power per antenna has mean 1 and variance (2K+1)/(K+1)^2."""
    k = 10 ** (k_db / 10)
    h = Rician(k_db).draw(STREAM, 0, ALL_CLIENTS, correlation_root(3, 0.4))
    assert h.dtype == np.complex64
    power = np.abs(h.astype(complex)) ** 2
    assert standard_error(power) < 0.01 / 3
    assert np.abs(power.mean(axis=0) - 1).max() < 0.01
    deviations = (power - 1) ** 2
    assert standard_error(deviations) < 0.04 / 3
    assert np.abs(deviations.mean(axis=0) - (2 * k + 1) / (k + 1) ** 2).max() < 0.04
    assert np.abs(h.mean(axis=0)).max() < 0.01  # the phase is uniform


def test_line_of_sight_is_a_plane_wave_from_a_fixed_angle():
    """With K = 100 dB, h is a plane wave; its angle is fixed, its phase changes between blocks."""
    first, second = (
        Rician(100.0).draw(STREAM, index, np.arange(500), np.eye(6)) for index in (0, 1)
    )
    turn = first[:, 1:] / first[:, :-1]
    assert np.abs(turn - turn[:, :1]).max() < 2e-4
    assert np.abs(second[:, 1:] / second[:, :-1] - turn).max() < 2e-4
    assert np.abs(second - first).mean() > 0.5
    # The sine of a uniform angle has an arcsine law with variance 1/2; standard error 0.016.
    sine = np.angle(turn[:, 0]) / np.pi
    assert abs((sine**2).mean() - 0.5) < 0.05
    other = Rician(100.0).draw(Stream(6), 0, np.arange(500), np.eye(6))
    assert np.abs(other[:, 1] / other[:, 0] - turn[:, 0]).mean() > 0.5


def test_rician_correlates_only_the_scattered_part():
    """Neighbouring antennas have E[h_1 h_0^*] = (rho + K J_0(pi)) / (K+1).

    The tolerance is at least three standard errors.
    """
    k, rho, bessel = 2.0, 0.8, -0.30424217764409386
    h = Rician(10 * np.log10(k)).draw(STREAM, 0, ALL_CLIENTS, correlation_root(2, rho))
    products = h[:, 1] * h[:, 0].conj()
    assert standard_error(products) < 0.01 / 3
    assert abs(products.mean() - (rho + k * bessel) / (k + 1)) < 0.01


@given(
    st.integers(1, 12),
    st.complex_numbers(max_magnitude=1).filter(lambda rho: abs(rho) < 1),
)
def test_root_squares_to_the_definition(antennas, rho):
    """L is lower triangular, and L L^H equals R."""
    wanted = correlation_by_definition(antennas, rho)
    root = correlation_root(antennas, rho)
    assert np.allclose(root @ root.conj().T, wanted, rtol=0, atol=1e-12)
    assert np.allclose(exponential_correlation(antennas, rho), wanted, rtol=0, atol=1e-12)
    assert np.allclose(root, np.tril(root))


@given(st.integers(0, 700), st.integers(1, 12), st.integers(0, 3), st.integers(0, 99))
def test_correlate_is_a_matrix_product_rounded_per_client(clients, antennas, kind, seed):
    """For any root, the result for a client is bit-identical in every subset of the clients."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((antennas, antennas, 2)).view(complex)[..., 0]
    root = [root, np.tril(root).real, np.eye(antennas), np.diag(root.diagonal())][kind]
    white = rng.standard_normal((clients, antennas, 2)).view(complex)[..., 0]
    h = correlate(white, root)
    assert h.dtype == np.complex64
    np.testing.assert_allclose(h, white @ root.T, rtol=1e-5, atol=1e-5)
    some = np.flatnonzero(rng.random(clients) < rng.random())
    assert np.array_equal(correlate(white[some], root), h[some])


@given(st.sampled_from([Rayleigh(), Rician(3.0)]), st.sampled_from([0.0, 0.6, 0.3j]), st.data())
def test_channels_of_some_clients_equal_those_in_a_full_draw(model, rho, data):
    antennas = data.draw(st.integers(1, 11))
    root = correlation_root(antennas, rho)
    whole = model.draw(STREAM, 2, np.arange(600), root)
    some = np.array(data.draw(st.lists(st.integers(0, 599), unique=True)), dtype=np.int64)
    first = data.draw(st.integers(0, 599))
    for clients in (some, np.arange(first, 600), np.array([first])):
        assert np.array_equal(model.draw(STREAM, 2, clients, root), whole[clients])


def test_root_is_exact_for_nearly_equal_antennas():
    root = correlation_root(64, 1 - 2**-53)
    assert np.allclose(root @ root.T, 1, rtol=0, atol=1e-12)


def test_fading_models_are_recognised():
    assert isinstance(Rayleigh(), Fading)
    assert isinstance(Rician(), Fading)
    assert not isinstance("rayleigh", Fading)


def test_path_loss_by_hand():
    """At 1 km the loss is 15.3 + 37.6 * 3 = 128.1 dB, as in TR 36.942."""
    assert np.allclose(path_loss_db([1.0, 1000.0, 2000.0]), [15.3, 128.1, 128.1 + 37.6 * 0.30103])
    free_space = path_loss_db(40.0, exponent=2, reference_db=30, reference_m=4)
    assert free_space == pytest.approx(50)
    kilometres = path_loss_db([200.0, 700.0], reference_db=128.1, reference_m=1000)
    assert np.allclose(kilometres, path_loss_db([200.0, 700.0]))  # the same model
    assert path_loss_db(0.5, reference_m=0.5) == 15.3


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"distance_m": 0.2}, r"distance_m contains 0\.2: give finite metres >= 1\. A kilometre"),
        ({"distance_m": [300, 0.9]}, r"contains 0\.9: .* metres >= 1\."),
        ({"distance_m": 0.4, "reference_m": 0.5}, r"contains 0\.4: .* metres >= 0\.5\."),
        ({"distance_m": [900, 100], "reference_m": 1e3}, r"at 100 metres is -22\.3 dB, a gain"),
        ({"distance_m": 5, "reference_db": -30}, "at 5 metres is -3.719 dB, a gain: give metres"),
    ],
)
def test_path_loss_errors(settings, name):
    with pytest.raises(ValueError, match=name):
        path_loss_db(**settings)
