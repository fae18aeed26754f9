"""Outcomes follow from intervals: against t-tests of SciPy, and for unreached targets."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from experiments.evidence import final
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import accuracies, best_accuracy, rank_of
from wirelessfl.results.intervals import (
    CostToTarget,
    Effect,
    contrast,
    difference,
    over_best,
    ratio,
)
from wirelessfl.results.outcomes import outcome_of
from wirelessfl.runs.targets import cost_to


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=9))
def test_the_interval_is_that_of_a_t_test(values):
    """The interval is that of SciPy's paired t-test."""
    if np.std(values) < 1e-6:
        return
    low, high = Effect("", tuple(values), 1.0).interval
    wanted = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (low, high) == pytest.approx((wanted.low, wanted.high))


def test_criteria_are_shown_in_their_units():
    assert Effect("", (), 1.0, "points").criterion == "at least 1.0 points"
    assert Effect("", (), 1.5, "points", equal=True).criterion == "within 1.5 points"
    assert Effect("", (), math.log(1.25), "ratio").criterion == "at least 1.25"
    assert Effect("", (), math.log(1.25), "ratio", equal=True).criterion == "0.80 to 1.25"


def test_few_experiments_exclude_an_effect_at_the_threshold():
    draws = np.random.default_rng(1).normal(1.0, 1.0, (2000, 4))
    wrong = sum(Effect("", tuple(row), 1.0).interval[1] < 1.0 for row in draws)
    # One side of a 95 % interval is exceeded in 2.5 %; the standard error is 0.35 %.
    assert wrong / len(draws) < 0.025 + 4 * math.sqrt(0.025 * 0.975 / len(draws))


def test_differences_are_paired_by_seed():
    effect = difference("x", {1: 80.0, 2: 70.0, 3: 1.0}, {2: 60.0, 1: 75.0, 4: 0.0}, 2.0)
    assert effect.values == (5.0, 10.0)
    assert str(effect) == "x: +7.5 (-24.3 to +39.3, 2 seeds)"


def test_diverged_seeds_are_left_out_counted_and_favour_nobody():
    """The value of seed 1 is in no mean; an outcome in favour of the diverged method is none."""
    sound = {1: 80.0, 2: 81.0, 3: 82.0, 4: 80.0}
    lower = {seed: value - 30 for seed, value in sound.items()}
    lost = {1: math.nan}
    effect = difference("", sound, lower | lost, 2.0)
    assert effect.values == (30.0, 30.0, 30.0)
    assert (effect.count, effect.diverged) == ("3 seeds, 1 diverged", (0, 1))
    assert outcome_of(effect) == "agrees"
    assert outcome_of(difference("", sound | lost, lower, 2.0)) == "undecided"
    assert outcome_of(difference("", lower | lost, sound, 2.0)) == "opposite"
    assert outcome_of(difference("", lower, sound | lost, 2.0)) == "undecided"
    assert outcome_of(difference("", sound, sound | lost, 2.0, equal=True)) == "undecided"
    few = difference("", sound, lower | lost | {2: math.nan}, 2.0)
    assert outcome_of(few) == "undecided"
    none = difference("", sound, dict.fromkeys(sound, math.nan), 2.0)
    assert (none.value, outcome_of(none)) == ("diverged", "undecided")


def test_ratios_of_costs_are_bounded_by_unreached_targets():
    """If a target is not reached, the cost of the whole run bounds the effect."""
    slow = {1: CostToTarget(8.0, True), 2: CostToTarget(9.0, True), 3: CostToTarget(8.0, True)}
    fast = {1: CostToTarget(4.0, True), 2: CostToTarget(4.0, True), 3: CostToTarget(4.1, True)}
    effect = ratio("", slow, fast, 1.2)
    assert effect.values == pytest.approx([math.log(2), math.log(2.25), math.log(8 / 4.1)])
    assert outcome_of(effect) == "agrees"
    assert outcome_of(ratio("", fast, slow, 1.2)) == "opposite"
    assert str(effect).startswith("2.06 (1.7")
    never = {seed: CostToTarget(cost.cost, False) for seed, cost in slow.items()}
    assert outcome_of(ratio("", never, fast, 1.2)) == "undecided"
    assert str(ratio("", never, fast, 1.2)).startswith("at least 2.06 (0.98 or more, 3 seeds)")
    assert str(ratio("", fast, never, 1.2)).startswith("at most 0.48 (1.02 or less, 3 seeds)")
    ends = {seed: CostToTarget(cost.cost, False) for seed, cost in fast.items()}
    neither = ratio("", never, ends, 1.2)
    assert (neither.values, str(neither)) == ((), "target not reached")
    assert str(ratio("x", {}, fast, 1.2)) == "x: runs missing"
    partly = ratio("", {**slow, 4: never[1]}, {**fast, 4: ends[1]}, 1.2)
    assert (outcome_of(partly), partly.unknown) == ("undecided", 1)
    assert str(partly).endswith("3 seeds, 1 without a value)")


def test_bounds_limit_the_mean_on_one_side():
    """The mean of the true values lies on the far side of the interval of the bounds' mean."""
    late, soon = costs(16.0, 17.0, 15.0), costs(4.0, 4.0, 4.0)
    never, ends = costs(16.0, 17.0, 15.0, reached=False), costs(4.0, 4.0, 4.0, reached=False)
    mixed = late | {0: never[0]}
    mean = ratio("", late, soon, 1.2).mean
    half = stats.t.ppf(0.975, 2) * 0.3 / math.sqrt(3)
    for more in (never, mixed):
        assert ratio("", more, soon, 1.2).interval == (pytest.approx(mean - half), math.inf)
        assert ratio("", soon, more, 1.2).interval == (-math.inf, pytest.approx(half - mean))
        assert outcome_of(ratio("", more, soon, 1.2)) == "agrees"
        assert outcome_of(ratio("", more, soon, 4.1)) == "undecided"  # it may be more than 4.1
        assert outcome_of(ratio("", soon, more, 1.2)) == "opposite"
    assert outcome_of(ratio("", late, ends, 1.2)) == "undecided"  # it may be less than 1.2
    both = ratio("", mixed, soon | {1: ends[1]}, 1.2)
    assert (outcome_of(both), both.interval) == ("undecided", (-math.inf, math.inf))
    assert str(both) == "about 3.99 (3 seeds)"
    odd = soon | {2: CostToTarget(15.0, True)}
    assert outcome_of(ratio("", never, odd, 1.2)) == "undecided"  # the values differ too much


def test_lower_limits_of_bounds_hold_for_the_mean():
    """Costs that end at a cap: the lower limit exceeds the true mean in at most 2.5 %."""
    logs = np.random.default_rng(2).normal(1.0, 0.4, (2000, 4))
    base = costs(1.0, 1.0, 1.0, 1.0)
    for cap in (2.0, 3.0, 5.0):
        above = 0
        for row in logs:
            ends = {
                s: CostToTarget(min(math.exp(v), cap), v <= math.log(cap))
                for s, v in enumerate(row)
            }
            above += ratio("", ends, base, 1.2).interval[0] > 1.0
        assert above / len(logs) < 0.025 + 4 * math.sqrt(0.025 * 0.975 / len(logs))


def test_equal_costs_have_the_interval_of_their_rounding():
    """Tests every second round, and costs of 14 and 16 rounds: no interval of zero width."""
    more = {seed: CostToTarget(16.0, True, 14.0) for seed in range(3)}
    less = {seed: CostToTarget(14.0, True, 12.0) for seed in range(3)}
    effect = ratio("", more, less, 1.05)
    deviation = math.hypot(math.log(16 / 14), math.log(14 / 12)) / math.sqrt(12)
    half = stats.t.ppf(0.975, 2) * deviation / math.sqrt(3)
    assert effect.interval == pytest.approx((effect.mean - half, effect.mean + half))
    assert outcome_of(effect) == "undecided"
    assert outcome_of(ratio("", costs(*[16.0] * 3), costs(*[14.0] * 3), 1.05)) == "agrees"
    assert CostToTarget(2.0, True, 0.0).rounding == CostToTarget(2.0, True, 1.0).rounding > 0
    assert CostToTarget(2.0, False, 1.0).rounding == CostToTarget(2.0, True).rounding == 0


def costs(*values, reached=True):
    return {seed: CostToTarget(value, reached) for seed, value in enumerate(values)}


def test_equal_costs_need_reached_targets():
    """Bounds cannot show that costs are equal; they can show that they differ."""
    base, near = costs(4.0, 4.1, 4.2), costs(4.1, 4.1, 4.1)
    assert outcome_of(ratio("", base, near, 1.1, equal=True)) == "agrees"
    late = costs(4.1, 4.1, 4.1, reached=False)
    assert outcome_of(ratio("", late, base, 1.1, equal=True)) == "undecided"
    never = costs(16.0, 16.1, 16.2, reached=False)
    assert outcome_of(ratio("", never, base, 1.1, equal=True)) == "opposite"
    assert outcome_of(ratio("", base, never, 1.1, equal=True)) == "opposite"


def test_the_best_competitor_is_chosen_by_common_seeds():
    """B has the lowest mean over seeds 1 and 2; A's cheap seed 3 does not count."""
    others = {
        "A": {1: CostToTarget(30, True), 2: CostToTarget(40, True), 3: CostToTarget(1, True)},
        "B": {1: CostToTarget(20, True), 2: CostToTarget(50, True)},
    }
    ours = {seed: CostToTarget(10, True) for seed in (1, 2, 3)}
    effect = over_best("rounds", others, ours, 1.1)
    assert effect.name == "rounds, B"
    assert effect.values == pytest.approx((math.log(2), math.log(5)))
    assert effect.among == 2
    none = over_best("rounds", {**others, "C": {}}, ours, 1.1)
    assert (none.values, none.among, str(none)) == ((), 3, "rounds: runs missing")


def test_contrasts_compare_ratios_of_two_settings():
    """The value is the quotient of the ratios; an unreached target makes it a bound."""
    slow, fast = costs(8.0, 9.0, 8.0), costs(2.0, 2.0, 2.0)
    other, same = costs(4.0, 4.1, 3.9), costs(4.0, 4.0, 4.0)
    effect = contrast("", (slow, fast), (other, same), 1.5)
    wanted = [4 / 1, 4.5 / (4.1 / 4), 4 / (3.9 / 4)]
    assert effect.values == pytest.approx([math.log(value) for value in wanted])
    assert outcome_of(effect) == "agrees"
    assert outcome_of(contrast("", (other, same), (slow, fast), 1.5)) == "opposite"
    never = costs(8.0, 9.0, 8.0, reached=False)
    assert contrast("", (never, fast), (other, same), 1.5).at_least
    assert contrast("", (slow, fast), (never, same), 1.5).at_most
    assert contrast("", (never, never), (other, same), 1.5).empty == "target not reached"


def test_costs_and_finals_are_read_from_rows():
    rows = [{"accuracy": a, "uplink_mib": 2.0 * i} for i, a in enumerate((0.1, 0.5, 0.9, 0.8))]
    run = StoredRun({}, rows, {}, {}, 0.0)
    assert cost_to(run.rows, 0.85).of("uplink_mib") == CostToTarget(4.0, True, 2.0)
    assert cost_to(rows, 0.7, tests=2).of("uplink_mib") == CostToTarget(4.0, True, 2.0)
    assert cost_to(rows, 0.8, tests=2).of("uplink_mib") == CostToTarget(6.0, True, 4.0)
    assert cost_to(run.rows, 0.95).of("uplink_mib") == CostToTarget(6.0, False)
    assert final(run) == pytest.approx(100 * (0.5 + 0.9 + 0.8) / 3)  # without the initial
    held_out = [{"accuracy": 0.1, "validation_accuracy": 0.9, "round": 3}]
    assert cost_to(held_out, 0.5).of("round") == CostToTarget(3.0, True)


def test_diverged_models_reach_nothing_and_have_no_accuracy():
    found = [(0.1, 1.0), (0.5, 1.0), (0.95, None), (0.95, None)]
    rows = [{"accuracy": a, "loss": x, "round": i} for i, (a, x) in enumerate(found)]
    assert cost_to(rows, 0.5).of("round") == CostToTarget(1.0, True, 0.0)
    assert cost_to(rows, 0.6).of("round") == CostToTarget(3.0, False)
    assert cost_to(rows, 0.2, tests=2).of("round") == CostToTarget(1.0, True, 0.0)
    assert cost_to(rows, 0.4, tests=2).of("round") == CostToTarget(3.0, False)
    assert math.isnan(final(StoredRun({}, rows, {}, {}, 0.0)))
    assert best_accuracy(rows) == 0.5
    sound = [row | {"loss": 1.0} for row in rows]
    assert final(StoredRun({}, sound, {}, {}, 0.0)) == pytest.approx(80)
    assert accuracies([rows], [1, 2, 9]) == "50.0 / diverged / -"
    assert accuracies([rows, sound], [2]) == "95.0 (1 of 2 seeds diverged)"
    assert rank_of([80, 90]) == 85 > rank_of([99, math.nan])
