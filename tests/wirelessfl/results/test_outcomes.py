"""Outcomes of effects: all cases of the table in ``outcomes``, with their bounds."""

import math

import pytest
from scipy import stats

from wirelessfl.results.intervals import Effect
from wirelessfl.results.outcomes import Signs, excluded, outcome, outcome_of

INF = math.inf


class Known(Effect):
    """An effect with a given interval."""

    def interval_of(self, level):
        return self.ends

    def __new__(cls, *ends, **_):
        return super().__new__(cls)

    def __init__(self, *ends, **more):
        super().__init__("", (0.0,) * 3, **({"least": 1.0} | more))
        object.__setattr__(self, "ends", ends)


@pytest.mark.parametrize(
    ("low", "high", "found", "rest"),
    [
        (1.0, 2.0, "agrees", ""),
        (1.0, INF, "agrees", ""),
        (0.99, 2.0, "undecided", "same direction"),
        (0.01, 0.99, "smaller", ""),
        (0.01, 1.0, "no difference", ""),
        (0.01, 1.01, "undecided", "same direction"),
        (0.0, 0.99, "no difference", ""),
        (-1.0, 1.0, "no difference", ""),
        (-0.9, -0.1, "no difference", ""),
        (-1.01, 0.9, "undecided", "not as large"),
        (-1.01, 1.0, "undecided", ""),
        (-1.01, -0.99, "undecided", "other direction"),
        (-2.0, -1.0, "opposite", ""),
        (-INF, -1.0, "opposite", ""),
        (-INF, 0.5, "undecided", "not as large"),
        (-INF, INF, "undecided", ""),
    ],
)
def test_every_outcome_needs_the_whole_interval(low, high, found, rest):
    effect = Known(low, high)
    assert outcome_of(effect) == found
    assert found != "undecided" or excluded(effect) == rest


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (2.0, 3.0, "agrees"),
        (1.5, 1.9, "smaller"),
        (0.1, 0.9, "smaller"),
        (1.5, 2.0, "undecided"),
        (-0.1, 0.9, "no difference"),
        (-0.1, 1.9, "undecided"),
        (-3.0, -1.0, "opposite"),
    ],
)
def test_claims_of_a_size_agree_beyond_it(low, high, found):
    """The least effect that counts is 1, the least effect of the claimed size 2."""
    assert outcome_of(Known(low, high, size=2.0)) == found


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (-1.0, 1.0, "agrees"),
        (0.1, 0.9, "agrees"),
        (-1.01, 0.0, "undecided"),
        (1.01, 2.0, "opposite"),
        (1.0, 2.0, "undecided"),
        (-2.0, -1.01, "opposite"),
        (-INF, 0.0, "undecided"),
        (1.01, INF, "opposite"),
    ],
)
def test_claims_of_no_difference(low, high, found):
    assert outcome_of(Known(low, high, equal=True)) == found


def test_seeds_that_an_outcome_needs():
    assert outcome_of(Effect("", (5.0, 5.1), 1.0)) == "not tested"
    assert outcome_of(Effect("", (5.0, 5.1, 4.9), 1.0)) == "agrees"
    assert outcome_of(Effect("", (5.0,), 1.0, exact=True)) == "agrees"
    assert outcome_of(Effect("", (), 1.0)) == "not tested"
    assert outcome_of(Effect("", (), 1.0, unknown=2)) == "not tested"
    assert outcome_of(Effect("", (5.0, 5.1), 1.0, unknown=1)) == "undecided"
    assert outcome_of(Effect("", (5.0, 5.1, 4.9), 1.0, unknown=1)) == "undecided"
    assert outcome_of(Effect("", (), 1.0, unknown=3)) == "undecided"


def test_the_best_of_several_needs_a_stricter_interval():
    values = (-1.05, -1.2, -1.35)
    assert outcome_of(Effect("", values, 0.8)) == "opposite"
    assert outcome_of(Effect("", values, 0.8, among=6)) == "undecided"


def test_several_effects_need_one_outcome():
    yes, no = Known(1, 2), Known(-2, -1)
    few = Effect("", (5.0,), 1.0)
    assert outcome([yes, yes]) == "agrees"
    assert outcome([yes, no]) == "undecided"
    assert outcome([yes, few]) == outcome([no, few]) == outcome([]) == "not tested"


@pytest.mark.parametrize("positive", range(19))
def test_a_sign_test_is_the_exact_binomial_one(positive):
    signs = Signs("", (1.0,) * positive + (-0.1,) * (18 - positive) + (0.0,))
    wanted = stats.binomtest(positive, 18)
    assert signs.p_value == pytest.approx(wanted.pvalue)
    interval = wanted.proportion_ci(0.95)
    assert signs.interval == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert signs.value == f"{positive} of 18"
    assert (outcome_of(signs) == "undecided") == (wanted.pvalue > 0.05)
    assert outcome_of(signs) in ("undecided", "agrees" if positive > 9 else "opposite")


def test_without_settings_there_is_no_sign():
    assert outcome_of(Signs("", (0.0,))) == outcome_of(Signs("", ())) == "not tested"
    assert Signs("", ()).value == "runs missing"
