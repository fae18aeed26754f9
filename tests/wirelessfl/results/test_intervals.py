"""Paired effects over seeds: values, bounds and intervals by hand and by SciPy's t distribution."""

import math

import numpy as np
import pytest
from scipy import stats

from wirelessfl.results.intervals import (
    HIDDEN,
    CostToTarget,
    Effect,
    contrast,
    difference,
    over_best,
    quantile,
    ratio,
)
from wirelessfl.runs.targets import cost_to

INF = math.inf
RATIO = {"shown": "ratio"}
VALUES = (0.3, 0.1, 0.45, 0.2)


def costs(**by_seed):
    """Costs by seed: a number, or a pair of it and whether the target was reached."""
    pairs = {int(k[1:]): v if isinstance(v, tuple) else (v, True) for k, v in by_seed.items()}
    return {seed: CostToTarget(*pair) for seed, pair in pairs.items()}


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_intervals_are_those_of_student_s_t(level, count):
    values = VALUES[:count]
    expected = stats.t.interval(
        level, count - 1, loc=np.mean(values), scale=np.std(values, ddof=1) / math.sqrt(count)
    )
    effect = Effect("", values, 0.1)
    assert effect.interval_of(level) == pytest.approx(expected, rel=1e-9)
    assert effect.mean == pytest.approx(np.mean(values))
    assert quantile(count - 1, level) == pytest.approx(stats.t.ppf((1 + level) / 2, count - 1))
    if level == 0.95:
        assert effect.interval == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "deviation", "open_low", "open_high"),
    [
        ({"rounding": 0.05}, 0.1, False, False),
        ({"rounding": 0.25}, 0.25, False, False),
        ({"at_least": True}, HIDDEN, False, True),
        ({"at_most": True}, HIDDEN, True, False),
        ({"at_least": True, "at_most": True}, HIDDEN, True, True),
        ({"at_least": True, "rounding": 0.4}, 0.4, False, True),
    ],
)
def test_deviations_have_a_least_value(options, deviation, open_low, open_high):
    """Equal values are not certain, and runs that end at a cap hide how much seeds differ."""
    values = (0.4, 0.5, 0.6)  # their deviation is 0.1
    low, high = Effect("", values, 0.1, **options).interval
    half = stats.t.ppf(0.975, 2) * deviation / math.sqrt(3)
    assert low == (-INF if open_low else pytest.approx(0.5 - half, rel=1e-9))
    assert high == (INF if open_high else pytest.approx(0.5 + half, rel=1e-9))


def test_one_seed_has_no_interval_and_a_computation_no_width():
    assert Effect("", (2.0,), 1.0).interval == (-INF, INF)
    assert Effect("", (2.0,), 1.0, exact=True).interval == (2.0, 2.0)
    assert Effect("", (2.0, 4.0), 1.0, exact=True).interval == (3.0, 3.0)


def test_differences_are_paired_by_seed():
    more, less = {1: 80.0, 3: 70.0, 2: 90.0}, {2: 85.0, 1: 81.0, 4: 10.0}
    found = difference("gain", more, less, 1.0, equal=True)
    assert found == Effect("gain", (-1.0, 5.0), 1.0, "points", equal=True)
    assert difference("", more, less, 1.0, shown="number").shown == "number"
    assert difference("", more, {}, 1.0).values == ()


def test_ratios_are_paired_by_seed():
    """Seeds that one lacks are left out; those where neither reached the target have no value."""
    more = costs(s1=20.0, s2=(30.0, False), s3=(50.0, False), s4=8.0, s5=1.0)
    less = costs(s1=10.0, s2=10.0, s3=(9.0, False), s4=16.0, s6=1.0)
    found = ratio("N = 4", more, less, 1.1)
    assert found.values == pytest.approx((math.log(2), math.log(3), -math.log(2)))
    assert (found.least, found.shown, found.unknown) == (math.log(1.1), "ratio", 1)
    assert (found.at_least, found.at_most, found.size) == (True, False, None)
    assert (found.name, found.equal, found.rounding) == ("N = 4", False, 0.0)
    turned = ratio("", less, more, 1.1, equal=True, size=1.5)
    assert turned.values == pytest.approx([-value for value in found.values])
    assert (turned.at_least, turned.at_most) == (False, True)
    assert (turned.equal, turned.size) == (True, math.log(1.5))
    assert ratio("", {}, less, 1.1).empty == "runs missing"
    never = costs(s1=(5.0, False))
    assert (ratio("", never, never, 1.1).empty, ratio("", never, never, 1.1).unknown) == (
        "target not reached",
        1,
    )


def test_costs_are_known_up_to_the_interval_between_tests():
    """The logarithm of a cost is uniform between two tests; the largest seed counts."""
    coarse, fine = CostToTarget(12.0, True, 10.0), CostToTarget(12.0, True, 11.9)
    assert coarse.rounding == pytest.approx(math.log(1.2) / math.sqrt(12))
    # Before the first test, at most half of the cost is assumed.
    assert CostToTarget(12.0, True, 0.0).rounding == pytest.approx(math.log(2) / math.sqrt(12))
    assert CostToTarget(12.0, True).rounding == CostToTarget(12.0, False, 10.0).rounding == 0
    found = ratio("", {1: coarse, 2: fine}, {1: coarse, 2: fine}, 1.1)
    assert found.rounding == pytest.approx(math.sqrt(2) * coarse.rounding)
    four = contrast("", ({1: coarse}, {1: coarse}), ({1: coarse}, {1: coarse}), 1.1)
    assert four.rounding == pytest.approx(2 * coarse.rounding)


def test_the_best_competitor_has_the_lowest_geometric_mean_of_common_seeds():
    """Here 9 of 3 and 27, though another has the lower arithmetic mean; seed 3 lacks ours."""
    others = {
        "steady": costs(s1=10.0, s2=10.0, s3=1.0),
        "varied": costs(s1=3.0, s2=27.0, s3=900.0),
        "slow": costs(s1=11.0, s2=11.0, s3=1.0),
    }
    found = over_best("best", others, costs(s2=9.0, s1=6.0), 1.1)
    assert found.name == "best, varied"
    assert found.values == pytest.approx((math.log(0.5), math.log(3)))
    assert found.among == 3
    empty = over_best("best", others, costs(s7=9.0), 1.1)
    assert (empty.name, empty.values, empty.among) == ("best", (), 3)
    assert empty.least == math.log(1.1)


def test_a_contrast_is_the_quotient_of_two_ratios():
    high = costs(s1=8.0, s2=9.0), costs(s1=2.0, s2=(3.0, False))
    low = costs(s1=6.0, s2=5.0), costs(s1=3.0, s2=5.0)
    found = contrast("", high, low, 1.2)
    assert found.values == pytest.approx((math.log(2), math.log(3)))
    assert (found.at_least, found.at_most) == (False, True)
    assert found.least == math.log(1.2)
    some = contrast("", high, (costs(s1=6.0), low[1]), 1.2)
    assert some.values == pytest.approx((math.log(2),))
    # Both ratios need a run that reached its target.
    lost = costs(s1=(8.0, False), s2=9.0), costs(s1=(2.0, False), s2=3.0)
    assert contrast("", lost, low, 1.2).unknown == 1


ROWS = [
    {"accuracy": a, "joules": j}
    for a, j in zip((0.1, 0.5, 0.7, 0.4, 0.8, 0.9), (0.0, 2.0, 5.0, 9.0, 14.0, 20.0), strict=True)
]


@pytest.mark.parametrize(
    ("target", "tests", "expected"),
    [
        (0.1, 1, CostToTarget(0.0, True, None)),
        (0.6, 1, CostToTarget(5.0, True, 2.0)),
        (0.95, 1, CostToTarget(20.0, False)),
        (0.6, 2, CostToTarget(5.0, True, 2.0)),
        (0.65, 2, CostToTarget(20.0, True, 14.0)),
        (0.7, 3, CostToTarget(20.0, True, 14.0)),
        (0.71, 3, CostToTarget(20.0, False)),
    ],
)
def test_costs_until_a_mean_of_tests(target, tests, expected):
    assert cost_to(ROWS, target, tests).of("joules") == expected


@pytest.mark.parametrize(
    ("options", "criterion"),
    [
        ({}, "at least 0.5"),
        ({"shown": "points"}, "at least 0.50 points"),
        ({"shown": "points", "least": 1.0}, "at least 1.0 points"),
        ({"shown": "ratio", "least": math.log(1.05)}, "at least 1.05"),
        ({"size": 2.0}, "at least 2"),
        ({"equal": True}, "within 0.5"),
        ({"equal": True, "shown": "points"}, "within 0.50 points"),
        ({"equal": True, "shown": "ratio", "least": math.log(1.25)}, "0.80 to 1.25"),
        ({"equal": True, "one_sided": True}, "at most 0.5"),
    ],
)
def test_what_agrees_with_a_claim_in_words(options, criterion):
    assert Effect("", (), **({"least": 0.5} | options)).criterion == criterion


@pytest.mark.parametrize(
    ("values", "options", "text"),
    [
        ((), {}, "x: runs missing"),
        ((), {"empty": "target not reached"}, "x: target not reached"),
        ((2.0,), {}, "x: 2 (1 seed)"),
        ((2.0,), {"exact": True}, "x: 2 (computed)"),
        ((2.0, 2.0), {"unknown": 3}, "x: 2 (2 to 2, 2 seeds, 3 without a value)"),
        ((1.5, -0.5), {"shown": "points"}, "x: +0.5 (-12.2 to +13.2, 2 seeds)"),
        (
            (0.0, 0.0),
            RATIO | {"at_least": True},
            "x: at least 1.00 (0.07 or more, 2 seeds)",
        ),
        (
            (0.0, 0.0),
            RATIO | {"at_most": True},
            "x: at most 1.00 (14.81 or less, 2 seeds)",
        ),
        ((0.0,), RATIO | {"at_most": True, "at_least": True}, "x: about 1.00 (1 seed)"),
    ],
)
def test_effects_in_words(values, options, text):
    """0.3 is the least deviation of bounds: t 0.3 / sqrt 2 = 2.695, and e^2.695 = 14.81."""
    assert str(Effect("x", values, 1.0, **options)) == text
    assert str(Effect("", values, 1.0, **options)) == text.removeprefix("x: ")
