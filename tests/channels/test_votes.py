"""Majority votes by energy against the probabilities of Gamma variables."""

import numpy as np
import pytest

from channels import Stream, wrong_vote_probability
from channels.votes import energy_difference, powers_of_sides


def test_with_one_antenna_it_is_a_share_of_the_powers():
    powers = np.array([0.0, 0.3, 2.0, 50.0])
    against = powers[:, None]
    expected = (1 + against) / (2 + powers + against)
    found = wrong_vote_probability(powers, against, antennas=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("antennas", [1, 2, 7])
def test_it_is_the_probability_of_a_ratio_of_gamma_variables(antennas):
    """200,000 draws per case: the standard error is at most 0.0012."""
    dice = np.random.default_rng(antennas)
    for power_for, power_against in ((3.0, 1.0), (0.2, 0.0), (8.0, 6.0)):
        plus = (1 + power_for) * dice.standard_gamma(antennas, 200_000)
        minus = (1 + power_against) * dice.standard_gamma(antennas, 200_000)
        found = wrong_vote_probability(power_for, power_against, antennas=antennas)
        assert found == pytest.approx((minus > plus).mean(), abs=0.004)


def test_both_sides_make_one_decision():
    a, b = np.random.default_rng(1).uniform(0, 30, (2, 50))
    both = wrong_vote_probability(a, b, antennas=5) + wrong_vote_probability(b, a, antennas=5)
    np.testing.assert_allclose(both, 1, rtol=1e-12)
    assert (np.diff(wrong_vote_probability(a[0], np.sort(b), antennas=5)) > 0).all()


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("antennas", [1, 3])
@pytest.mark.parametrize("sides", [(3, 1), (5, 4), (2, 0)])
def test_votes_in_rayleigh_fading_are_wrong_as_often_as_predicted(antennas, sides):
    """Clients of unequal strength; 1500 draws with 20 elements each that share their channels.

    Elements of one draw are correlated: the standard error over the draws is below 0.006.
    """
    signs = np.repeat(np.array([1, -1], np.int8), sides)[:, None].repeat(20, 1)
    powers = np.linspace(0.5, 2.0, len(signs))
    wrong = []
    for seed in range(1500):
        stream = Stream(seed)
        parts = stream.child("h").normals(0, np.arange(len(signs)), 2 * antennas)
        h = parts.astype(float).view(complex) / np.sqrt(2)
        difference = energy_difference(signs, h, np.sqrt(powers), stream)
        wrong.append((difference < 0).mean())
    for_it, against = (side[0] for side in powers_of_sides(signs, powers))
    predicted = wrong_vote_probability(for_it, against, antennas=antennas)
    standard = np.std(wrong) / np.sqrt(len(wrong))
    assert standard < 0.008
    assert np.mean(wrong) == pytest.approx(predicted, abs=3 * standard)


def test_one_client_without_noise_decides_alone():
    """A client that sends nothing leaves only noise, which decides by chance."""
    signs = np.random.default_rng(1).integers(-1, 2, (1, 70_000)).astype(np.int8)
    difference = energy_difference(signs, np.ones((1, 2)) + 0j, np.full(1, 1e6), Stream(1))
    sent = signs[0] != 0
    np.testing.assert_array_equal(np.sign(difference[sent]), signs[0, sent])
    assert (difference[~sent] > 0).mean() == pytest.approx(0.5, abs=0.01)  # s.e. 0.0033


def test_equal_streams_give_equal_votes():
    signs = np.random.default_rng(2).choice([-1, 1], (3, 66_000)).astype(np.int8)
    h = np.ones((3, 2)) + 0j
    whole = energy_difference(signs, h, np.ones(3), Stream(1))
    shifted = energy_difference(signs[::-1], h, np.ones(3), Stream(2))
    assert (whole != shifted).all()
    repeated = energy_difference(signs, h, np.ones(3), Stream(1))
    np.testing.assert_array_equal(whole, repeated)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 1.0, 2), "power_for contains -1.0"),
        ((1.0, np.inf, 2), "power_against contains inf"),
        ((1.0, 1.0, 0), "antennas is 0: give an integer from 1"),
        (([1.0, 2.0], [1.0, 2.0, 3.0], 1), r"the shapes do not fit: power_for \(2,\)"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        wrong_vote_probability(*arguments[:2], antennas=arguments[2])
