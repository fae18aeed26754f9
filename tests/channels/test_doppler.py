"""Fading that is correlated in time matches Clarke's model and AR(1) by formula."""

import itertools

import numpy as np
import pytest
from scipy.special import i0e, j0

from channels import Doppler, Rayleigh, Rician, Stream, correlation_root

STREAM = Stream(7, ("doppler",))
SAMPLES = 40_000
ALL_CLIENTS = np.arange(SAMPLES)
ONE = np.eye(1)
MODELS = ("jakes", "ar1")
SE = 1 / np.sqrt(SAMPLES)  # of a mean of products of unit power


def drawn(fading, index, clients=ALL_CLIENTS, root=ONE):
    return fading.draw(STREAM, index, clients, root).astype(complex)


def correlation(first, second):
    return (first * second.conj()).mean(0)


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("k_db", [None, 3.0])
@pytest.mark.parametrize("lag", [1, 3, 40])
def test_jakes_has_clarkes_autocorrelation(k_db, lag):
    """E[h(t) h*(t + tau)] = J0(2 pi f_d tau) from two starts; standard error 0.005."""
    fading = Doppler(Rayleigh() if k_db is None else Rician(k_db), 20.0, 0.004, "jakes")
    for start in (0, 1000):
        actual = correlation(drawn(fading, start), drawn(fading, start + lag))[0]
        assert abs(actual - j0(2 * np.pi * 20.0 * 0.004 * lag)) < 4 * SE


@pytest.mark.parametrize("cycles", [0.05, 0.5])  # rho is 0.976 and -0.304
@pytest.mark.parametrize(("first", "second"), [(0, 1), (6, 7), (7, 8), (5, 9), (1000, 1003)])
def test_autoregression_has_powers_of_rho(cycles, first, second):
    """E[h_i h*_j] = J0(2 pi f_d T)^|i - j| across all intervals; standard error 0.005."""
    fading = Doppler(Rayleigh(), 10 * cycles, 0.1, "ar1")
    actual = correlation(drawn(fading, first), drawn(fading, second))[0]
    assert abs(actual - j0(2 * np.pi * cycles) ** (second - first)) < 4 * SE


def test_autoregression_is_that_of_its_recursion():
    """The innovations h_i - rho h_(i-1) are uncorrelated with each other and with the past."""
    fading = Doppler(Rayleigh(), 0.5, 0.1, "ar1")
    rho = j0(2 * np.pi * 0.05)
    blocks = [drawn(fading, i)[:, 0] for i in range(10)]
    new = [(b - rho * a) / np.sqrt(1 - rho**2) for a, b in itertools.pairwise(blocks)]
    series = np.stack([blocks[0], *new])
    assert np.abs(series @ series.conj().T / SAMPLES - np.eye(10)).max() < 5 * SE


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("index", [0, 37])
def test_one_block_is_that_of_independent_fading(model, index):
    """CN(0, R) at any one time, with the correlation of the antennas; standard error 0.005."""
    root = correlation_root(3, 0.5 - 0.6j)
    h = drawn(Doppler(Rayleigh(), 30.0, 0.002, model), index, root=root)
    assert np.abs(np.einsum("cm,cn->mn", h, h.conj()) / SAMPLES - root @ root.conj().T).max() < (
        5 * SE
    )
    assert np.abs(np.einsum("cm,cn->mn", h, h) / SAMPLES).max() < 5 * SE
    power = np.abs(h) ** 2
    for x in (0.1, 1.0, 3.0):
        assert np.abs((power > x).mean(0) - np.exp(-x)).max() < 4 * 0.5 * SE


def test_level_crossings_are_rices():
    """Jakes: sqrt(2 pi) f_d r exp(-r^2) upward crossings a second of r times the RMS amplitude.

    Over half a per cent of a period, 4 sd of the count, 40,000 clients and four pairs of blocks.
    """
    cycles = 0.01
    fading = Doppler(Rayleigh(), cycles, 1.0, "jakes")
    pairs = [(np.abs(drawn(fading, i)), np.abs(drawn(fading, i + 1))) for i in (0, 300, 600, 900)]
    for level in (0.3, 1.0, 1.5):
        up = np.mean([((a < level) & (b >= level)).mean() for a, b in pairs])
        rate = np.sqrt(2 * np.pi) * cycles * level * np.exp(-(level**2))
        assert abs(up - rate) < 4 * np.sqrt(rate / SAMPLES / len(pairs)) + 0.005 * rate


def test_level_crossings_of_an_autoregression():
    """P(|h_i| < r <= |h_(i+1)|) from the bivariate Rayleigh density, integrated numerically."""
    fading = Doppler(Rayleigh(), 0.1, 1.0, "ar1")
    rho, level = j0(2 * np.pi * 0.1), 0.8
    a, b = np.linspace(0, level, 801), np.linspace(level, 6, 2001)
    a, b = (a[1:] + a[:-1]) / 2, (b[1:] + b[:-1]) / 2
    scale = 1 - rho**2
    x, y = np.meshgrid(a, b, indexing="ij")
    bessel = 2 * rho * x * y / scale
    density = 4 * x * y / scale * np.exp(bessel - (x**2 + y**2) / scale) * i0e(bessel)
    expected = density.sum() * (level / 800) * ((6 - level) / 2000)
    first, second = np.abs(drawn(fading, 12)), np.abs(drawn(fading, 13))
    actual = ((first < level) & (second >= level)).mean()
    assert abs(actual - expected) < 4 * np.sqrt(expected) * SE


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("inner", [Rayleigh(), Rician(2.0)])
def test_a_channel_without_shift_stays(model, inner):
    fading = Doppler(inner, 0.0, 1.0, model)
    h = [fading.draw(STREAM, i, np.arange(50), correlation_root(4, 0.3)) for i in (0, 1, 6, 999)]
    assert all(np.array_equal(h[0], other) for other in h[1:])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("inner", [Rayleigh(), Rician(2.0)])
def test_some_clients_have_the_channels_of_all(model, inner):
    fading, root = Doppler(inner, 3.0, 0.05, model), correlation_root(3, 0.4)
    some = np.array([0, 3, 77])
    whole = fading.draw(STREAM, 21, np.arange(100), root)
    assert np.array_equal(fading.draw(STREAM, 21, some, root), whole[some])


def test_forgotten_blocks_are_those_of_independent_fading():
    """At a zero of J0 an autoregression is Rayleigh fading, to the bit."""
    fading = Doppler(Rayleigh(), 2.404825557695773 / (2 * np.pi), 1.0, "ar1")
    clients = np.arange(20)
    for index in (0, 1, 12):
        plain = Rayleigh().draw(STREAM, index, clients, np.eye(2))
        assert np.array_equal(fading.draw(STREAM, index, clients, np.eye(2)), plain)


def test_a_late_block_costs_few_draws(monkeypatch):
    """Block 1,000,000 of an autoregression takes 2 log2(1e6) = 40 draws at most."""
    calls = []
    normals = Stream.normals
    monkeypatch.setattr(Stream, "normals", lambda *a: calls.append(a) or normals(*a))
    Doppler(Rayleigh(), 1.0, 1e-6, "ar1").draw(STREAM, 999_999, np.arange(3), ONE)
    assert 20 < len(calls) <= 41


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"fading": "rayleigh"}, TypeError, "fading is 'rayleigh'"),
        ({"doppler_hz": -1.0}, ValueError, "doppler_hz is -1.0: give 0 to 100000 Hz"),
        ({"block_seconds": 0.0}, ValueError, "block_seconds is 0.0: give seconds above 0"),
        ({"model": "clarke"}, ValueError, "choose jakes or ar1"),
    ],
)
def test_refusals(values, error, words):
    with pytest.raises(error, match=words):
        Doppler(**values)
