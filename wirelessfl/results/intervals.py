"""Paired effects over seeds and their 95 % intervals; ``outcomes`` says what they decide.

A claim is tested by one or several effects. An effect is oriented so that positive values support
the claim, and is compared with the least effect that counts.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from scipy.special import stdtrit

from wirelessfl.runs.targets import CostToTarget

LEVEL = 0.95
HIDDEN = 0.3
"""Smallest standard deviation of the logarithm of a ratio if values are bounds, because runs that
end at the same cap hide how much seeds differ. Costs differ by 0.1 to 0.3 between seeds."""


@cache
def quantile(freedom: int, level: float = LEVEL) -> float:
    """The quantile of Student's t distribution that bounds an interval of this level."""
    return float(stdtrit(freedom, (1 + level) / 2))


@dataclass(frozen=True)
class Effect:
    """A paired difference, or the logarithm of a paired ratio, of each seed.

    Args:
        name: what is compared, e.g. ``N = 4``; empty if a claim has one effect.
        values: one per seed; positive values support the claim.
        least: the least effect that counts, as a difference or as a logarithm; for ``equal``, the
            largest difference that does not count.
        shown: how values are shown: ``points`` and ``number`` as they are, ``ratio`` as powers of
            e.
        equal: whether the claim is that there is no difference that counts.
        exact: whether the value follows from a computation without randomness.
        at_least: whether values of some seeds are lower bounds of their effects, because a
            compared run did not reach its target.
        at_most: the same for upper bounds.
        unknown: number of seeds without a value, because no compared run reached its target.
        diverged: numbers of seeds that are left out because the run diverged which the claim says
            has the larger, and the smaller value.
        rounding: standard deviation of a value that the intervals between tests cause.
        among: number of competitors, of which the best with these same seeds is compared.
        empty: why there are no values.
        size: the least effect of the claimed size, if the claim states one; None for ``least``.
        one_sided: whether, with ``equal``, only a value above counts as a difference.
    """

    name: str
    values: tuple[float, ...]
    least: float
    shown: Literal["number", "points", "ratio"] = "number"
    equal: bool = False
    exact: bool = False
    at_least: bool = False
    at_most: bool = False
    unknown: int = 0
    diverged: tuple[int, int] = (0, 0)
    rounding: float = 0.0
    among: int = 1
    empty: str = "runs missing"
    size: float | None = None
    one_sided: bool = False

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return statistics.mean(self.values)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval, see ``interval_of``."""
        return self.interval_of(LEVEL)

    def interval_of(self, level: float) -> tuple[float, float]:
        """The interval of the mean by Student's t; unbounded with one seed.

        The deviation is at least ``rounding``, so that equal values do not give an interval of one
        point. If values are bounds, it is at least ``HIDDEN``, and the side on which the mean of
        the true values lies is unbounded.
        """
        count = len(self.values)
        if self.exact:
            return self.mean, self.mean
        if count < 2:
            return -math.inf, math.inf
        hidden = HIDDEN if self.at_least or self.at_most else 0.0
        deviation = max(statistics.stdev(self.values), self.rounding, hidden)
        half = quantile(count - 1, level) * deviation / math.sqrt(count)
        return (
            -math.inf if self.at_most else self.mean - half,
            math.inf if self.at_least else self.mean + half,
        )

    @property
    def criterion(self) -> str:
        """The effect that agrees with the claim: ``at least 1.05``, ``within 1.0 points``."""
        size = self.least if self.size is None else self.size
        least = self._shown(size).removeprefix("+") + " points" * (self.shown == "points")
        if not self.equal:
            return f"at least {least}"
        if self.one_sided:
            return f"at most {least}"
        return (
            f"{self._shown(-self.least)} to {least}" if self.shown == "ratio" else f"within {least}"
        )

    @property
    def count(self) -> str:
        """Number of seeds, or that the value is computed."""
        if self.exact:
            return "computed"
        seeds = f"{len(self.values)} seed{'' if len(self.values) == 1 else 's'}"
        seeds += f", {self.unknown} without a value" * bool(self.unknown)
        return seeds + f", {sum(self.diverged)} diverged" * any(self.diverged)

    @property
    def value(self) -> str:
        """The mean, marked if it is a bound; why there is none."""
        if not self.values:
            return self.empty
        bounds = "at least " * self.at_least + "at most " * self.at_most
        return ("about " if self.at_least and self.at_most else bounds) + self._shown(self.mean)

    @property
    def bounds(self) -> str:
        """The interval as ``0.95 to 1.05``, ``1.2 or more``; empty if it has no bounds."""
        if self.exact or not self.values:
            return ""
        low, high = self.interval
        sides = [self._shown(low)] * (low > -math.inf) + [self._shown(high)] * (high < math.inf)
        if len(sides) == 1:
            sides[0] += " or more" if low > -math.inf else " or less"
        return " to ".join(sides)

    def __str__(self) -> str:
        """Value, interval and number of seeds."""
        text = (f"{self.name}: " if self.name else "") + self.value
        if not self.values:
            return text
        return f"{text} ({', '.join([self.bounds] * bool(self.bounds) + [self.count])})"

    def _shown(self, value: float) -> str:
        if self.shown == "ratio":
            return f"{math.exp(value):.2f}"
        if self.shown == "points":
            return f"{value:+.{2 if 0 < self.least < 1 else 1}f}"
        return f"{value:.3g}"


def difference(
    name: str,
    more: Mapping[int, float],
    less: Mapping[int, float],
    least: float,
    *,
    equal: bool = False,
    shown: Literal["number", "points"] = "points",
) -> Effect:
    """The effect ``more`` - ``less``, paired by seed; seeds that one of them lacks are left out.

    Args:
        name: see ``Effect``.
        more: a value by seed, which the claim says is larger; nan for a run that diverged, which is
            left out and counted.
        less: a value by seed.
        least: the least difference that counts.
        equal: whether the claim is that both are equal.
        shown: see ``Effect``.
    """
    pairs = [(more[seed], less[seed]) for seed in more if seed in less]
    values = tuple(high - low for high, low in pairs if not math.isnan(high - low))
    lost = sum(math.isnan(high) for high, _ in pairs), sum(math.isnan(low) for _, low in pairs)
    empty = "diverged" if any(lost) else Effect.empty
    return Effect(name, values, least, shown, equal, diverged=lost, empty=empty)


def ratio(
    name: str,
    more: Mapping[int, CostToTarget],
    less: Mapping[int, CostToTarget],
    least: float,
    *,
    equal: bool = False,
    size: float | None = None,
) -> Effect:
    """The effect log(``more`` / ``less``) of costs until a target, paired by seed.

    If one of both did not reach the target, its cost at the end of the run gives a bound of the
    effect. Seeds of which neither reached it have no value. Costs are known up to the interval
    between tests: their logarithms are uniform within it.

    Args:
        name: see ``Effect``.
        more: costs by seed, which the claim says are larger.
        less: costs by seed.
        least: the least ratio that counts, e.g. 1.1.
        equal: whether the claim is that both are equal.
        size: the least ratio of the claimed size, if the claim states one.
    """
    effect = _product(name, [(more, less)], least, equal=equal)
    return effect if size is None else replace(effect, size=math.log(size))


def over_best(name: str, others: Mapping[str, Costs], ours: Costs, least: float) -> Effect:
    """The effect log(best other / ours) of costs, for the seeds that all have; see ``ratio``.

    The best has the lowest geometric mean of costs over these seeds. A choice by the same seeds
    favours it, so it counts as many effects, see ``Effect.among``.

    Args:
        name: see ``Effect``; the best one's name is appended.
        others: costs by seed, by name.
        ours: costs by seed, which the claim says are lower than all others.
        least: the least ratio that counts, e.g. 1.1.
    """
    common = sorted(set(ours).intersection(*others.values()))
    if not common:
        return replace(ratio(name, {}, {}, least), among=len(others))

    def typical(name: str) -> float:
        return statistics.mean(math.log(others[name][seed].cost) for seed in common)

    best = min(others, key=typical)
    theirs = {seed: others[best][seed] for seed in common}
    return replace(ratio(f"{name}, {best}", theirs, ours, least), among=len(others))


def contrast(
    name: str, high: tuple[Costs, Costs], low: tuple[Costs, Costs], least: float
) -> Effect:
    """How much larger the ratio of costs is in one setting than in another, paired by seed.

    Args:
        name: see ``Effect``.
        high: the two costs, as for ``ratio``, in the setting where their ratio is larger.
        low: the same in the other setting.
        least: the least quotient of both ratios that counts, e.g. 1.1.
    """
    return _product(name, [high, low[::-1]], least)


def _product(
    name: str, pairs: Sequence[tuple[Costs, Costs]], least: float, *, equal: bool = False
) -> Effect:
    """The logarithm of the product of ratios of costs, paired by seed."""
    values, at_least, at_most, unknown, rounding = [], False, False, 0, [0.0]
    costs_of_pairs = [costs for pair in pairs for costs in pair]
    seeds = [seed for seed in costs_of_pairs[0] if all(seed in costs for costs in costs_of_pairs)]
    for seed in seeds:
        ratios = [(more[seed], less[seed]) for more, less in pairs]
        if not all(more.reached or less.reached for more, less in ratios):
            unknown += 1
            continue
        values.append(sum(math.log(more.cost / less.cost) for more, less in ratios))
        at_least |= not all(more.reached for more, _ in ratios)
        at_most |= not all(less.reached for _, less in ratios)
        rounding.append(sum(cost.rounding**2 for pair in ratios for cost in pair))
    return Effect(
        name,
        tuple(values),
        math.log(least),
        "ratio",
        equal,
        at_least=at_least,
        at_most=at_most,
        unknown=unknown,
        rounding=math.sqrt(max(rounding)),
        empty="target not reached" if seeds else "runs missing",
    )


Costs = Mapping[int, CostToTarget]
