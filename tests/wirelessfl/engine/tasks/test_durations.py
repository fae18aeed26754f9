"""Durations of requests, and what their clients spend."""

import numpy as np
import pytest

from channels.streams import Stream
from wirelessfl.air.delays import ShiftedExponential, client_speeds
from wirelessfl.theory import ShiftedExponential as Law


def test_shifted_exponential_durations():
    """Durations have mean 3 beta and the published distribution function.

    50,000 draws: the standard error of the mean is 0.3 %.
    """
    speeds = client_speeds(8, Stream(1))
    assert sorted(speeds.tolist()) == [0.7, 0.7, 1.0, 1.0, 1.0, 1.0, 1.3, 1.3]
    delays = ShiftedExponential([2.0, 4.0], np.array([1.0, 1.3]), Stream(9))
    drawn = np.array([delays.seconds(1, 1, number) for number in range(50_000)])
    law = Law(4.0 * 1.3)
    assert drawn.mean() == pytest.approx(law.mean_seconds, rel=0.012)
    assert drawn.min() >= 5.2
    for share in (0.1, 0.5, 0.9):
        # The standard error of a fraction is at most 0.0022.
        assert (drawn <= law.quantile(share)).mean() == pytest.approx(share, abs=0.007)
    assert delays.seconds(1, 1, 7) == drawn[7]  # by number, not by order
    assert delays.seconds(0, 0, 7) == pytest.approx(drawn[7] / 2.6)
    assert delays.compute_joules(1, 1, 9.0) == 0  # energy is not modelled
