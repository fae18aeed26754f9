"""FedAST: round durations match simulations; the bound equals that of Theorem 1."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.theory import (
    BufferedRun,
    ShiftedExponential,
    arrival_seconds,
    buffer_seconds,
    fedast_corollary_1,
    synchronous_round_seconds,
)


def mean_and_error(samples):
    return samples.mean(), samples.std(ddof=1) / math.sqrt(len(samples))


@pytest.mark.parametrize(("buffer", "requests", "rate"), [(3, 24, 0.5), (1, 7, 2.0), (20, 5, 1.0)])
def test_buffer_seconds_against_simulation(buffer, requests, rate):
    """Requests are reissued immediately; the time between rounds is averaged over runs."""
    rng, runs, rounds = np.random.default_rng(1), 400, 30
    # A request returns at the cumulative sums of its delays; ``turns`` suffices for all buffers.
    turns = 6 * buffer * rounds // requests + 40
    returns = rng.exponential(1 / rate, (runs, requests, turns)).cumsum(-1)
    arrivals = np.sort(returns.reshape(runs, -1))[:, : buffer * rounds]
    assert (returns[..., -1].min(1) > arrivals[:, -1]).all()  # every request had enough delays
    mean, error = mean_and_error(arrivals[:, -1] / rounds)
    expected = buffer_seconds(buffer=buffer, requests=requests, rate_hz=rate)
    assert 3 * error < 0.04 * expected
    assert mean == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize(("tasks", "rate"), [([5], 1.0), ([30, 12, 8], 0.25), ([1, 0], 3.0)])
def test_synchronous_round_seconds_is_the_mean_of_the_slowest_client(tasks, rate):
    delays = np.random.default_rng(2).exponential(1 / rate, (20_000, sum(tasks)))
    mean, error = mean_and_error(delays.max(1))
    expected = synchronous_round_seconds(requests=tasks, rate_hz=rate)
    assert 3 * error < 0.03 * expected
    assert mean == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(("arrival", "requests"), [(1, 9), (30, 48), (9, 10), (4, 4)])
def test_arrival_seconds_is_the_mean_time_of_the_kth_arrival(arrival, requests):
    delays = np.random.default_rng(3).exponential(2.0, (20_000, requests))
    mean, error = mean_and_error(np.sort(delays)[:, arrival - 1])
    expected = arrival_seconds(arrival=arrival, requests=requests, rate_hz=0.5)
    assert 3 * error < 0.03 * expected
    assert mean == pytest.approx(expected, rel=0.03)


def test_round_times_by_hand():
    assert buffer_seconds(buffer=3, requests=6, rate_hz=0.5) == 1
    harmonic = Fraction(1) + Fraction(1, 2) + Fraction(1, 3) + Fraction(1, 4)
    found = synchronous_round_seconds(requests=[3, 1], rate_hz=2)
    assert found == pytest.approx(float(harmonic / 2), rel=1e-15)
    found = arrival_seconds(arrival=2, requests=4, rate_hz=1)
    assert found == pytest.approx(1 / 4 + 1 / 3, rel=1e-15)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=6).filter(any), st.floats(0.01, 100))
def test_the_straggler_effect_grows_as_the_logarithm(tasks, rate):
    """Measured in mean delays, a round takes log n plus Euler's constant plus O(1 / n).

    The last term is positive and less than 1 / (2 n).
    """
    everyone = sum(tasks)
    excess = rate * synchronous_round_seconds(requests=tasks, rate_hz=rate) - math.log(everyone)
    assert 0 < excess - np.euler_gamma < 0.5 / everyone + 1e-12


@given(st.integers(1, 200), st.data())
def test_waiting_times_add_up(requests, data):
    """The time for all n clients is that for the first k plus that for the other n - k."""
    k = data.draw(st.integers(1, requests))
    first = arrival_seconds(arrival=k, requests=requests, rate_hz=1)
    rest = synchronous_round_seconds(requests=[requests - k], rate_hz=1) if k < requests else 0.0
    assert first + rest == pytest.approx(synchronous_round_seconds(requests=[requests], rate_hz=1))


def test_shifted_exponential_draws():
    """Draws have mean 3 beta, deviation 2 beta, minimum beta, and ``cdf`` as distribution."""
    law, number = ShiftedExponential(0.148), 200_000
    draws = law.quantile(np.random.default_rng(4).random(number))
    by_hand = 0.148 + np.random.default_rng(5).exponential(2 * 0.148, number)
    for samples in (draws, by_hand):
        mean, error = mean_and_error(samples)
        assert 3 * error < 0.01 * law.mean_seconds
        assert mean == pytest.approx(law.mean_seconds, rel=0.01)
        assert samples.min() >= 0.148
        # A fraction of n draws has a standard error of at most 1 / (2 sqrt(n)), here 0.0011.
        for x in (0.2, 0.3, 0.6, 1.5):
            assert (samples <= x).mean() == pytest.approx(law.cdf(x), abs=0.0045)
    # An exponential's standard deviation has a relative error of sqrt(2 / n), here 0.3 %.
    assert draws.std() == pytest.approx(2 * 0.148, rel=0.02)


@given(st.floats(0.01, 10), st.floats(0, 0.999))
def test_quantile_inverts_cdf(beta, probability):
    law = ShiftedExponential(beta)
    assert law.cdf(law.quantile(probability)) == pytest.approx(probability, abs=1e-12)
    assert law.cdf([0.0, beta / 2, beta]).tolist() == [0, 0, 0]
    assert law.quantile([0.0, 1.0]).tolist() == [beta, np.inf]


RUN = {
    "rounds": 400,
    "buffer": 4,
    "requests": 6,
    "local_steps": 9,
    "smoothness": 3.0,
    "gradient_variance": 11.0,
    "heterogeneity": 2.0,
    "initial_gap": 5.0,
    "largest_staleness": 7,
}


def test_the_bound_by_hand():
    """Terms and minimum rounds equal exact fractions, with sqrt(T b tau) = 120."""
    bound = fedast_corollary_1(BufferedRun(**RUN))
    by_hand = {
        "initial_gap": Fraction(15, 120),
        "client_noise": (Fraction(1, 120) + Fraction(1, 3600)) * 29,
        "asynchrony": Fraction(6, 1600) * (11 + 9 * 6 * 2),
    }
    assert bound.terms == pytest.approx({name: float(term) for name, term in by_hand.items()})
    assert bound.min_rounds == 9 * 16 * 6 * 7
    assert not bound.holds
    assert fedast_corollary_1(BufferedRun(**RUN | {"rounds": bound.min_rounds})).holds
    assert (
        fedast_corollary_1(BufferedRun(**RUN | {"largest_staleness": 0})).min_rounds == 9 * 36 * 4
    )


@given(
    st.integers(1, 9999),
    st.integers(1, 40),
    st.integers(1, 99),
    st.integers(1, 50),
    st.integers(0, 30),
)
def test_the_bound_is_theorem_1_at_its_learning_rates(rounds, buffer, requests, steps, staleness):
    """Terms and condition equal those of (4) at the corollary's step sizes."""
    changes = {"rounds": rounds, "buffer": buffer, "requests": requests, "local_steps": steps}
    bound = fedast_corollary_1(BufferedRun(**RUN | changes | {"largest_staleness": staleness}))
    smooth, local, spread, gap = 3.0, 11.0, 2.0, 5.0
    client, server = 1 / (steps * smooth * math.sqrt(rounds)), math.sqrt(steps * buffer)
    theorem = {
        "initial_gap": gap / (rounds * client * server * steps),
        "client_noise": (smooth * client * server / buffer + smooth**2 * client**2 * steps)
        * (local + steps * spread),
        "asynchrony": (smooth * server * client / buffer) ** 2
        * steps
        * requests
        * (local + steps * requests * spread),
    }
    assert bound.terms == pytest.approx(theorem, rel=1e-9)
    limits = [1 / (6 * smooth * steps * math.sqrt(steps * buffer))]
    if staleness:
        limits.append(1 / (4 * smooth * steps * math.sqrt(steps * requests * staleness)))
    if rounds != bound.min_rounds:  # where the two agree up to rounding
        assert bound.holds == (client < min(limits))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: buffer_seconds(buffer=0, requests=1, rate_hz=1), "buffer is 0"),
        (lambda: buffer_seconds(buffer=1, requests=1, rate_hz=0), "rate_hz is 0"),
        (lambda: synchronous_round_seconds(requests=[0], rate_hz=1), "sum of requests is 0"),
        (lambda: synchronous_round_seconds(requests=[2, -1], rate_hz=1), r"requests\[1\] is -1"),
        (lambda: arrival_seconds(arrival=5, requests=4, rate_hz=1), "arrival is 5 with requests=4"),
        (lambda: ShiftedExponential(0), "shift_seconds is 0"),
        (lambda: ShiftedExponential(1).quantile([0.5, 1.1]), r"probability contains 1\.1"),
        (lambda: fedast_corollary_1(BufferedRun(**RUN | {"rounds": 1.5})), r"rounds is 1\.5"),
        (
            lambda: fedast_corollary_1(BufferedRun(**RUN | {"heterogeneity": -1})),
            "heterogeneity is -1",
        ),
    ],
)
def test_invalid_arguments_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()
