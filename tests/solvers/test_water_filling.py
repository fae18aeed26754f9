"""``water_filling`` against KKT conditions, SciPy and cvxpy, and its dual bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from solvers import Status, water_filling


def rate(gain, powers, bandwidth):
    width = bandwidth / gain.shape[-1]
    return (width * np.log1p(powers * gain / width)).sum(-1) / np.log(2)


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_marginal_rates_are_equal_where_there_is_power(seed, count):
    """Karush-Kuhn-Tucker: 1 / (p + b/G) is a common price with power, and at most that without."""
    random = np.random.default_rng(seed)
    gain, power = 10 ** random.uniform(3, 9, count), 10 ** random.uniform(-5, 1)
    found = water_filling(gain, power, 1e6)
    assert found.status is Status.OPTIMAL
    assert found.value.sum() == pytest.approx(power, rel=1e-12)
    assert (found.value >= 0).all()
    marginal = 1 / (found.value + 1e6 / count / gain)
    price = marginal.max()
    np.testing.assert_allclose(marginal[found.value > 0], price, rtol=1e-9)
    assert found.objective == pytest.approx(float(rate(gain, found.value, 1e6)), rel=1e-12)
    assert found.objective <= found.bound <= found.objective * (1 + 1e-12)
    others = random.dirichlet(np.ones(count), 50) * power
    assert rate(gain, others, 1e6).max() <= found.bound * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_water_level_is_that_of_bisection(seed):
    """An independent root of the sum of powers, in batches that broadcast."""
    random = np.random.default_rng(seed)
    gain, power = 10 ** random.uniform(4, 8, (5, 1, 16)), np.array([1e-3, 0.1, 3.0])
    band = 10 ** random.uniform(5, 7, (5, 1))
    found = water_filling(gain, power, band)
    assert found.value.shape == (5, 3, 16)
    for i, j in np.ndindex(5, 3):
        noise = band[i, 0] / 16 / gain[i, 0]

        def left(level, noise=noise, j=j):
            return np.maximum(level - noise, 0).sum() - power[j]

        level = brentq(left, 0, noise.max() + power[j], xtol=1e-18, rtol=1e-14)
        powers = np.maximum(level - noise, 0)
        np.testing.assert_allclose(found.value[i, j], powers, rtol=1e-8, atol=1e-12 * power[j])
        assert found.objective[i, j] == pytest.approx(float(rate(gain[i, 0], powers, band[i, 0])))


def test_a_cone_solver_agrees():
    cvxpy = pytest.importorskip("cvxpy")
    random = np.random.default_rng(5)
    gain = 10 ** random.uniform(5, 7, 8)  # b = 1 MHz: SNRs of 0.1 to 10 at 1 W
    found = water_filling(gain, 1.0, 8e6)
    powers = cvxpy.Variable(8, nonneg=True)
    nats = cvxpy.sum(cvxpy.log1p(cvxpy.multiply(gain / 1e6, powers)))
    problem = cvxpy.Problem(cvxpy.Maximize(nats), [cvxpy.sum(powers) <= 1.0])
    problem.solve(solver=cvxpy.CLARABEL)
    assert found.objective == pytest.approx(1e6 * problem.value / np.log(2), rel=1e-6)
    np.testing.assert_allclose(found.value, powers.value, atol=1e-4)


def test_equal_gains_share_and_nothing_without_gain_or_power():
    assert water_filling([2e6] * 4, 1.0, 4e6).value.tolist() == [0.25] * 4
    nothing = water_filling([[0.0, 0.0], [1.0, 0.0]], [1.0, 0.0], 1e6)
    assert nothing.objective.tolist() == nothing.bound.tolist() == [0, 0]
    assert not nothing.value.any()
    assert water_filling([0.0, 1e6], 1.0, 1e6).value.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1.0], 1, 1), r"gain_per_noise\[0\] is -1"),
        (([1.0], -1, 1), "power is -1"),
        (([1.0], 1, 0), "bandwidth is 0"),
        ((1.0, 1, 1), r"give \[..., subcarriers\]"),
        (([1.0, 2.0], [1, 2, 3], [1, 2]), "power"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        water_filling(*arguments)
