"""Sums of given precoders: gains and noise written out, and the variance of their errors."""

from typing import Any

import numpy as np
import pytest

from channels import Stream, air_sum, aligned_sum, transmit_scales

WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])


def cell(seed: int = 0) -> tuple[Any, Any, Any]:
    """Channels, a beamformer and precoders that align the signals, one of them 0."""
    rng = np.random.default_rng(seed)
    h = rng.standard_normal((4, 3, 2)).view(complex)[..., 0]
    a = rng.standard_normal((3, 2)).view(complex)[..., 0]
    z = h @ a.conj()
    return h, a, np.array([0.5, 0.2, 0.0, 0.7]) * z.conj() / np.abs(z)


def test_gains_and_noise_of_given_precoders() -> None:
    h, a, alpha = cell()
    found = aligned_sum(h, a, WEIGHTS, alpha)
    gains = [(a.conj() @ h[i]) * alpha[i] for i in range(4)]
    np.testing.assert_allclose(found.gains, gains, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.aligned, gains, rtol=1e-12, atol=1e-15)
    assert found.noise_variance == pytest.approx(sum(abs(a) ** 2) / 2)
    assert found.shrink == 1
    rms = np.array([1.0, 2, 3, 4])
    assert found.predicted_error(rms, 0.3) == pytest.approx(found.noise_variance + 0.09)


def test_inverting_precoders_give_the_sum_of_channel_inversion() -> None:
    h, a, _ = cell()
    rms = np.array([1.0, 2, 0.5, 3])
    scales = transmit_scales(WEIGHTS, rms, snr_db=3.0, convention="physical")
    errors: dict[str, Any] = {"csi_error": 0.1, "phase_error": 0.2, "stream": Stream(1)}
    inverted = air_sum(h, a, WEIGHTS, scales, convention="physical", **errors)
    nu = (np.abs(h @ a.conj()) / np.linalg.norm(a) / scales).min()
    receive = a / np.linalg.norm(a) / nu
    found = aligned_sum(h, receive, WEIGHTS, inverted.precoders, **errors)
    for name, value in vars(inverted).items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-12, err_msg=name)


def test_variance_of_the_gains() -> None:
    """20000 clients with one channel: means and variances of the gains within 4 standard errors."""
    h, a, alpha = cell()
    count = 20000
    for which in (0, 2):  # the latter does not send
        found = aligned_sum(
            np.repeat(h[which : which + 1], count, 0),
            a,
            np.ones(count),
            np.full(count, alpha[which]),
            csi_error=0.2,
            phase_error=0.4,
            stream=Stream(3),
        )
        np.testing.assert_allclose(
            [found.gains.real.var(), found.gains.imag.var()],
            found.gain_variance[:, 0],
            rtol=4 * np.sqrt(2 / count),
        )
        expected = found.shrink * found.aligned[0]
        assert abs(found.gains.mean() - expected) <= 4 * found.gains.std() / np.sqrt(count)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"precoders": np.ones(4)}, r"client 0 has a\^H h alpha = .* real and >= 0"),
        ({"phase_error": 0.1}, "stream is None"),
    ],
)
def test_invalid_input_is_named(change: dict[str, Any], message: str) -> None:
    h, a, alpha = cell()
    good: dict[str, Any] = {"h": h, "receive": a, "weights": WEIGHTS, "precoders": alpha}
    with pytest.raises(ValueError, match=message):
        aligned_sum(**{**good, **change})


def test_a_client_that_the_beamformer_nulls_may_send() -> None:
    """Its gain is 0 up to rounding, and its phase is arbitrary."""
    h, a, _ = cell()
    h[1] -= a * np.vdot(a, h[1]) / np.vdot(a, a)
    alpha = np.array([0, 1j, 0, 0])
    found = aligned_sum(h, a, WEIGHTS, alpha, csi_error=0.5, stream=Stream(0))
    assert found.aligned[1] < 1e-15
    assert found.gain_variance[0, 1] == pytest.approx(0.25 * sum(abs(a) ** 2))
    assert abs(found.gains[1]) > 1e-3
