"""Over-the-air sums match Monte Carlo estimates and a symbol-level reference.

Each test states its standard error; tolerances are at least three of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from channels import (
    Stream,
    air_sum,
    aircomp_mean,
    aircomp_seconds_per_element,
    edge_round_seconds,
    section_vi_c,
    transmit_scales,
)

CLIENTS, ANTENNAS = 6, 4
WEIGHTS = np.array([0.3, 0.1, 0.25, 0.05, 0.2, 0.1])
CONVENTIONS: list[dict[str, Any]] = [
    {"convention": "published"},
    {"convention": "physical"},
    {"convention": "physical", "elements_per_symbol": 2},
]


def channels_and_beamformer(seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((CLIENTS + 1, ANTENNAS, 2)).view(complex)[..., 0]
    return numbers[:-1] / np.sqrt(2), numbers[-1] / np.linalg.norm(numbers[-1])


def updates(elements: int, seed: int = 0) -> NDArray[np.float64]:
    """Updates [clients, elements] with unequal scales and means, as after gradient accumulation."""
    rng = np.random.default_rng(seed)
    size = np.array([0.1, 1.0, 3.0, 0.5, 2.0, 1.0])[:, None]
    return size * (rng.standard_normal((CLIENTS, elements)) + 0.5)


def test_all_arguments_may_be_tensors() -> None:
    """Also conjugated views and tensors with a gradient, which NumPy cannot read."""
    h, a = channels_and_beamformer()
    x, snr = updates(50), np.linspace(0, 5, CLIENTS)
    expected = aircomp_mean(
        x, h, a, snr_db=snr, stream=Stream(1), weights=WEIGHTS, csi_error=snr / 100
    )
    h_tensor = torch.from_numpy(h.conj()).conj()
    a_tensor = torch.from_numpy(a).requires_grad_()
    negated = torch.from_numpy(1j * snr).conj().imag  # a view with the negative bit
    got = aircomp_mean(
        torch.from_numpy(x).requires_grad_(),
        h_tensor,
        a_tensor,
        snr_db=torch.from_numpy(snr).requires_grad_(),
        stream=Stream(1),
        weights=torch.from_numpy(WEIGHTS).requires_grad_(),
        csi_error=-negated / 100,
    )
    np.testing.assert_allclose(got.estimate.numpy(), expected.estimate, rtol=1e-11)
    scales = torch.ones(CLIENTS).requires_grad_()
    summed = air_sum(h_tensor, a_tensor, torch.from_numpy(WEIGHTS), scales)
    plain = air_sum(h, a, WEIGHTS, np.ones(CLIENTS))
    np.testing.assert_array_equal(summed.precoders, plain.precoders)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_estimate_is_unbiased_with_predicted_variance(convention: Any, weights: Any) -> None:
    """Over 2e5 elements, the error has mean 0 and the predicted variance.

    Standard errors: 0.32 % for the variance, 0.22 % of sigma for the mean.
    """
    h, a = channels_and_beamformer()
    x = updates(200_000)
    got = aircomp_mean(x, h, a, snr_db=5.0, stream=Stream(1), weights=weights, **convention)
    q = np.full(CLIENTS, 1 / CLIENTS) if weights is None else weights
    error = got.estimate - q @ x
    assert abs(error.mean()) < 0.01 * error.std()
    assert error.var() == pytest.approx(got.predicted_error, rel=0.01)
    assert got.realised_error == pytest.approx((error**2).mean(), rel=1e-9)


def test_predicted_error_matches_closed_form() -> None:
    """The predicted error equals (25), or its physical counterpart, at the weakest client."""
    h, a = channels_and_beamformer()
    x, snr = updates(50), 10**0.5
    gain = np.abs(h @ a.conj()) ** 2

    def predicted(**options: Any) -> float:
        return aircomp_mean(x, h, a, snr_db=5.0, stream=Stream(0), **options).predicted_error

    mean_square = (x**2).mean(1)
    weakest = (gain / mean_square).min()
    assert predicted() == pytest.approx(1 / (snr * gain.min()))
    assert predicted(weights=WEIGHTS) == pytest.approx(1 / (snr * gain.min()))
    physical = predicted(convention="physical")
    assert physical == pytest.approx(1 / (2 * CLIENTS**2 * snr * weakest))
    twice = predicted(convention="physical", elements_per_symbol=2)
    assert twice == pytest.approx(2 * physical)
    weighted = (gain / (WEIGHTS**2 * mean_square)).min()
    assert predicted(convention="physical", weights=WEIGHTS) == pytest.approx(
        1 / (2 * snr * weighted)
    )


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_sum_matches_symbol_level_simulation(convention: Any) -> None:
    """Precoders, noise variance and power match a simulation of (22).

    The simulation applies precoding, channels, noise at each antenna, and combining by a / nu. With
    2e5 elements, the standard error is 0.32 % for the error's power and below 0.5 % for a client's
    power.
    """
    h, a = channels_and_beamformer(3)
    x, snr_db = updates(200_000, 1), -3.0
    per_symbol = convention.get("elements_per_symbol", 1)
    rms = np.sqrt((x**2).mean(1))
    scales = transmit_scales(WEIGHTS, rms, snr_db=snr_db, **convention)
    air = air_sum(h, a, WEIGHTS, scales, convention=convention["convention"])
    nu = (np.abs(h @ a.conj()) / scales).min()
    symbols = x.astype(complex) if per_symbol == 1 else x[:, 0::2] + 1j * x[:, 1::2]
    rng = np.random.default_rng(5)
    z = rng.standard_normal((ANTENNAS, symbols.shape[1], 2)).view(complex)[..., 0] / np.sqrt(2)
    sent = air.precoders[:, None] * symbols
    received = (a / nu).conj() @ (h.T @ sent + z)
    if per_symbol == 1:
        estimate = received.real
    else:
        estimate = np.stack([received.real, received.imag], 1).reshape(-1)
    power = (np.abs(sent) ** 2).mean(1)
    limit = 10 ** (snr_db / 10)
    error = ((estimate - WEIGHTS @ x) ** 2).mean()
    if convention["convention"] == "physical":
        assert error == pytest.approx(air.noise_variance, rel=0.01)
        # The weakest client meets its limit with equality.
        assert power.max() == pytest.approx(limit, rel=1e-9)
    else:
        # The real part has half the noise variance of the published convention.
        assert error == pytest.approx(air.noise_variance / 2, rel=0.01)
        assert (np.abs(air.precoders) <= WEIGHTS * np.sqrt(limit) * (1 + 1e-9)).all()
        assert np.abs(air.precoders / WEIGHTS).max() == pytest.approx(np.sqrt(limit))


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_only_the_physical_convention_limits_power(convention: Any) -> None:
    """With large updates, clients exceed their power limits only in the published convention."""
    snr_db = np.array([0.0, 5, -5, 10, 3, 0])
    x = 20 * updates(300)
    for seed in range(5):
        h, a = channels_and_beamformer(seed)
        got = aircomp_mean(x, h, a, snr_db=snr_db, stream=Stream(seed), **convention)
        if convention["convention"] == "physical":
            assert got.power.max() == pytest.approx(1, rel=1e-9)
        else:
            assert got.power.max() > 1


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize(("csi_error", "phase_error"), [(0.05, 0.0), (0.0, 0.3), (0.05, 0.3)])
def test_predicted_error_with_imperfect_channels(
    convention: Any, csi_error: float, phase_error: float
) -> None:
    """The mean error of 300 or 1200 draws equals the prediction, within 3 standard errors."""
    h, a = channels_and_beamformer(4)
    x = updates(64, 2)
    options: dict[str, Any] = {
        "snr_db": 20.0,
        "weights": WEIGHTS,
        "csi_error": csi_error,
        "phase_error": phase_error,
        **convention,
    }
    draws = 300 if csi_error else 1200  # many, to detect missing shrinkage
    got = [aircomp_mean(x, h, a, stream=Stream(i), **options) for i in range(draws)]
    errors = np.array([g.realised_error for g in got])
    standard = errors.std() / np.sqrt(len(errors))
    assert standard < 0.08 * got[0].predicted_error
    assert errors.mean() == pytest.approx(got[0].predicted_error, abs=3 * standard)
    gains = np.array([g.air.gains for g in got])
    shrunk = WEIGHTS * np.exp(-(phase_error**2) / 2)
    off, allowed = gains.mean(0) - shrunk, 4 * gains.std(0) / np.sqrt(len(got))
    assert (np.abs(off) < allowed).all()
    if phase_error and not csi_error:
        assert (allowed < (WEIGHTS - shrunk)).all()  # the test would detect missing shrinkage


def test_phase_error_mixes_the_two_elements_of_a_symbol() -> None:
    """A complex symbol carries two elements; the received pair is the complex sum of c_i x_i."""
    h, a = channels_and_beamformer()
    x = updates(7)
    options: dict[str, Any] = {"snr_db": 300.0, "phase_error": 0.5, "stream": Stream(2)}
    got = aircomp_mean(x, h, a, convention="physical", elements_per_symbol=2, **options)
    packed = np.pad(x, ((0, 0), (0, 1)))
    total = got.air.gains @ (packed[:, 0::2] + 1j * packed[:, 1::2])
    by_hand = np.stack([total.real, total.imag], 1).reshape(-1)[:7]
    np.testing.assert_allclose(got.estimate[:6], by_hand[:6], atol=1e-9)
    assert got.estimate[6] == pytest.approx(by_hand[6], abs=1e-9)


def test_torch_input_and_reproducibility() -> None:
    """Torch input gives torch output of the same dtype; only equal streams give equal noise."""
    h, a = channels_and_beamformer()
    x = updates(40).astype(np.float32)
    one = aircomp_mean(x, h, a, snr_db=0.0, stream=Stream(1))
    other = aircomp_mean(torch.from_numpy(x), h, a, snr_db=0.0, stream=Stream(1))
    assert one.estimate.dtype == np.float32
    assert other.estimate.dtype == torch.float32
    np.testing.assert_allclose(one.estimate, other.estimate.numpy(), atol=1e-5)
    again = aircomp_mean(x, h, a, snr_db=0.0, stream=Stream(2))
    assert not np.allclose(one.estimate, again.estimate)


def test_a_silent_client_does_not_limit_the_others() -> None:
    """A client with zero updates or zero weight does not reduce the power of the other clients."""
    h, a = channels_and_beamformer()
    x = updates(30)
    weakest = int(np.abs(h @ a.conj()).argmin())
    h[weakest] *= 1e-6
    weights = np.where(np.arange(CLIENTS) == weakest, 0.0, WEIGHTS)
    for options in ({"convention": "physical"}, {"convention": "published"}):
        got = aircomp_mean(x, h, a, snr_db=0.0, stream=Stream(0), weights=weights, **options)
        assert got.predicted_error < 100
        assert got.power[weakest] == 0
    silent = aircomp_mean(0 * x, h, a, snr_db=0.0, stream=Stream(0), convention="physical")
    assert silent.realised_error == silent.predicted_error == 0


def test_upload_time_does_not_depend_on_the_number_of_clients() -> None:
    """In t_s seconds, B / Delta_f elements are sent for any number of clients ((34), (35))."""
    draw = section_vi_c(4, 60, stream=Stream(1)).draw(Stream(2))
    seconds = aircomp_seconds_per_element(draw)
    np.testing.assert_allclose(seconds, 1e-3 / 14 / (9e6 / 15e3))
    share = np.array([1000.0, 2000, 3000, 4000])
    work: dict[str, Any] = {"model_parameters": 10_000, "local_steps": 20}
    got = edge_round_seconds(draw, share, seconds_per_bit=seconds, bits_per_parameter=1, **work)
    for cell in range(4):
        slowest = draw.network.cpu_hz[draw.network.cell_of == cell].min()
        by_hand = 20 * share[cell] * 1e6 / (slowest * 10_000) + share[cell] / 600 / 14e3
        assert got[cell] == pytest.approx(by_hand, rel=1e-12)
    blocks = draw.network.draws(Stream(2), range(5))
    assert aircomp_seconds_per_element(blocks).shape == (5, 60)
    half = aircomp_seconds_per_element(draw, elements_per_symbol=2)
    np.testing.assert_allclose(half, seconds / 2)
    three = aircomp_seconds_per_element(draw, np.arange(60) < 3)
    assert (three[3:] == 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"updates": np.ones((6, 2), int)}, "dtype int64"),
        ({"h": np.ones((5, 4))}, r"updates have shape \(6, 5\) and h \(5, 4\): give"),
        ({"weights": [1, 2]}, "weights are"),
        ({"weights": [0] * 6}, "not all 0"),
        ({"updates": np.ones((6, 2), np.float16)}, "dtype float16"),
        ({"beamformer": np.zeros(4)}, "the beamformer is 0"),
        ({"elements_per_symbol": 2}, "elements_per_symbol=2 conflicts with convention='published'"),
        ({"h": np.zeros((6, 4))}, r"client 0 has \|a\^H h\| = 0"),
    ],
)
def test_invalid_input_is_named(change: dict[str, Any], message: str) -> None:
    h, a = channels_and_beamformer()
    good: dict[str, Any] = {"updates": updates(5), "h": h, "beamformer": a, "snr_db": 0.0}
    with pytest.raises(ValueError, match=message):
        aircomp_mean(**{**good, "stream": Stream(0), **change})


def test_small_and_large_updates_keep_their_scale() -> None:
    """Power and error are correct even if squares overflow or underflow in single precision."""
    h, a = channels_and_beamformer()
    for factor in (1e-24, 1e20):
        x = (factor * updates(50)).astype(np.float32)
        for given in (x, torch.from_numpy(x).requires_grad_()):
            got = aircomp_mean(given, h, a, snr_db=0.0, stream=Stream(0), convention="physical")
            assert got.power.max() == pytest.approx(1)
            assert got.realised_error == pytest.approx(got.predicted_error, rel=0.5)


def test_errors_of_channels_need_a_stream() -> None:
    h, a = channels_and_beamformer()
    with pytest.raises(ValueError, match="stream is None"):
        air_sum(h, a, WEIGHTS, np.ones(6), phase_error=0.1)


def test_a_client_has_the_same_channel_error_in_any_subset() -> None:
    """A client's channel error depends on its index, not on its row or on the other clients."""
    h, a = channels_and_beamformer()
    errors: dict[str, Any] = {"csi_error": 0.1, "phase_error": 0.3, "stream": Stream(4)}
    whole = air_sum(h, a, WEIGHTS, np.ones(6), clients=np.arange(10, 16), **errors)
    some = np.array([1, 4, 5])
    found = air_sum(h[some], a, WEIGHTS[some], np.ones(3), clients=10 + some, **errors)
    assert np.array_equal(found.gains, whole.gains[some])
    by_row = air_sum(h[some], a, WEIGHTS[some], np.ones(3), **errors)
    assert (by_row.gains != found.gains).all()
    with pytest.raises(ValueError, match=r"clients \(2,\): give \[clients\] values for each"):
        air_sum(h[some], a, WEIGHTS[some], np.ones(3), clients=[0, 1], **errors)


def test_the_mmse_convention_is_found_in_solvers() -> None:
    remedy = r"choose 'published' or 'physical'\. For 'mmse', solvers\.align_transmitters decides"
    with pytest.raises(ValueError, match=remedy):
        transmit_scales(0.5, 1.0, snr_db=10.0, convention="mmse")  # type: ignore[arg-type]
