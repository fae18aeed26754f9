"""Clients that are late by a part of a symbol: sums by hand, and errors against their formula."""

import numpy as np
import pytest
import torch

from channels import Stream, air_sum, aircomp_mean, aligned_sum, transmit_scales
from channels.time_offsets import delays, steps

DICE = np.random.default_rng(1)
UPDATES = (DICE.standard_normal((4, 30)) + 1).cumsum(1) / 5
"""Updates whose neighbouring elements are correlated."""
H = DICE.standard_normal((4, 3, 2)).view(complex)[..., 0]
A = np.ones(3)
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("per_symbol", [1, 2])
def test_a_late_client_sends_part_of_its_previous_symbol(per_symbol):
    """The received sum is that of a rectangular pulse, integrated over the server's symbols."""
    x, fine = UPDATES[:, :9], 1000
    late = delays(Stream(3), np.arange(4), 0.8)
    assert ((late > 0) & (late < 0.8)).all()
    found = WEIGHTS @ (x + late[:, None] * steps(x, per_symbol))
    expected = np.zeros(9)
    for row, delay, weight in zip(x, late, WEIGHTS, strict=True):
        for first in range(per_symbol):  # I and Q are streams of their own
            pulses = np.repeat(row[first::per_symbol], fine)
            shifted = np.concatenate([np.zeros(round(delay * fine)), pulses])[: len(pulses)]
            expected[first::per_symbol] += weight * shifted.reshape(-1, fine).mean(1)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert torch.equal(
        steps(torch.from_numpy(x), per_symbol), torch.from_numpy(steps(x, per_symbol))
    )


def test_without_offsets_nothing_changes():
    options = {"snr_db": 5.0, "convention": "physical", "stream": Stream(1), "csi_error": 0.1}
    plain = aircomp_mean(UPDATES, H, A, **options)
    neutral = aircomp_mean(UPDATES, H, A, time_offset=0.0, **options)
    np.testing.assert_array_equal(plain.estimate, neutral.estimate)
    assert plain.predicted_error == neutral.predicted_error
    assert not plain.air.delays.any()


def test_delays_are_uniform_and_belong_to_clients():
    late = delays(Stream(1), np.arange(20_000), 0.5)
    assert late.mean() == pytest.approx(0.25, abs=0.004)  # s.e. 0.001
    assert late.var() == pytest.approx(0.25 / 12, rel=0.03)  # s.e. 0.6 %
    np.testing.assert_array_equal(delays(Stream(1), np.array([7, 2]), 0.5), late[[7, 2]])


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize(
    "options",
    [
        {"time_offset": 0.4},
        {"time_offset": 1.0, "convention": "published"},
        {"time_offset": 0.7, "csi_error": 0.05, "phase_error": 0.3, "elements_per_symbol": 2},
    ],
)
def test_the_error_is_predicted(options):
    """Interference of symbols, misalignment and noise: 600 sums, 3 standard errors."""
    options = {"convention": "physical", "snr_db": 25.0, "weights": WEIGHTS} | options
    means = [aircomp_mean(UPDATES, H, A, stream=Stream(seed), **options) for seed in range(600)]
    realised = np.array([mean.realised_error for mean in means])
    standard = realised.std() / np.sqrt(len(realised))
    assert standard < 0.06 * means[0].predicted_error
    assert realised.mean() == pytest.approx(means[0].predicted_error, abs=3 * standard)


def test_the_error_by_hand():
    """One client, tau uniform to T: E tau^2 d^2 = T^2 / 3 d^2, and no noise to speak of."""
    x = UPDATES[:1]
    mean = aircomp_mean(x, [[1.0]], [1.0], snr_db=150.0, stream=Stream(1), time_offset=0.6)
    d = np.diff(x[0], prepend=0.0)
    assert mean.predicted_error == pytest.approx(0.12 * np.mean(d**2), rel=1e-9)
    realised = mean.air.delays[0] ** 2 * np.mean(d**2)
    assert mean.realised_error == pytest.approx(realised, rel=1e-5)


@pytest.mark.parametrize("time_offset", [-0.1, 1.5, np.nan, np.inf])
def test_bad_offsets(time_offset):
    scales = transmit_scales(WEIGHTS, 1.0, snr_db=0.0)
    with pytest.raises(ValueError, match="give one number from 0 to 1, a part of a symbol"):
        air_sum(H, A, WEIGHTS, scales, time_offset=time_offset, stream=Stream(1))
    with pytest.raises(ValueError, match="give a Stream from which to draw the time offsets"):
        aligned_sum(H, A, WEIGHTS, np.zeros(4), time_offset=0.5)
