"""What effects say about a claim: the one place that defines all outcomes.

Let ``d`` be the least effect that counts, and ``s`` that of the claimed size: ``d``, unless the
claim states a size. The interval of an effect, oriented as the claim, then decides:

====================  ==========================================================================
agrees                it lies at or above ``s``
smaller               it lies above 0, and below ``s``
no difference         it lies within -``d`` and ``d``, and is not above 0
opposite              it lies at or below -``d``
undecided             none of these, or a seed has no value because no target was reached
not tested            fewer than three seeds, or runs are missing
====================  ==========================================================================

Seeds of runs that diverged have no accuracy. If the others decide for the method that diverged, or
for no difference, or are fewer than three, the claim is undecided.

If the claim is that there is no difference, an interval within -``d`` and ``d`` agrees, and one
beyond is opposite; if it is that a cost does not increase, only the upper side counts. Criteria
are symmetric otherwise: each outcome needs the whole interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import bdtr, betaincinv

from wirelessfl.results.intervals import LEVEL, Effect

Outcome = Literal["agrees", "smaller", "no difference", "opposite", "undecided", "not tested"]
DECIDED: tuple[Outcome, ...] = ("agrees", "smaller", "no difference", "opposite")
MIN_SEEDS = 3
"""Seeds that an outcome needs; with fewer, the interval of a mean says little."""


@dataclass(frozen=True)
class Signs:
    """In how many settings an effect is positive: a sign test, whose replicates are settings.

    Args:
        name: what is compared.
        values: the effect of each setting; zeros do not count.
        empty: why there are no values.
    """

    name: str
    values: tuple[float, ...]
    empty: str = "runs missing"

    criterion = "more than half of the settings"

    @property
    def positive(self) -> int:
        """Number of settings with a positive effect."""
        return sum(value > 0 for value in self.values)

    @property
    def settings(self) -> int:
        """Number of settings that count."""
        return sum(value != 0 for value in self.values)

    @property
    def p_value(self) -> float:
        """Two-sided p value of the exact binomial test."""
        fewer = min(self.positive, self.settings - self.positive)
        return min(1.0, 2 * float(bdtr(fewer, self.settings, 0.5)))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share of settings (Clopper and Pearson)."""
        k, n, tail = self.positive, self.settings, (1 - LEVEL) / 2
        low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
        return low, float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0

    @property
    def mean(self) -> float:
        """The share of settings with a positive effect."""
        return self.positive / self.settings

    @property
    def value(self) -> str:
        """The number of settings, as in ``1 of 18``."""
        return f"{self.positive} of {self.settings}" if self.settings else self.empty

    @property
    def bounds(self) -> str:
        """The median effect, and the p value."""
        if not self.settings:
            return ""
        return f"median {statistics.median(self.values):+.1f}, p = {self.p_value:.2g}"

    @property
    def count(self) -> str:
        """The test."""
        return "sign test over settings"


def outcome_of(effect: Effect | Signs) -> Outcome:
    """What one effect says, see above.

    The best of several competitors is chosen by the same seeds, so its interval has the level
    1 - 0.05 / n (Bonferroni).
    """
    if isinstance(effect, Signs):
        if not effect.settings:
            return "not tested"
        low, high = effect.interval
        return "agrees" if low > 0.5 else "opposite" if high < 0.5 else "undecided"
    least_seeds, lost = 1 if effect.exact else MIN_SEEDS, sum(effect.diverged)
    if len(effect.values) + effect.unknown + lost < least_seeds:
        return "not tested"
    if effect.unknown or not effect.values or len(effect.values) < least_seeds:
        return "undecided"
    decided = _decided(effect)
    more, less = effect.diverged
    towards = {"agrees": more, "smaller": more, "opposite": less}.get(decided, lost)
    return "undecided" if towards or (lost and effect.equal) else decided


def _decided(effect: Effect) -> Outcome:
    """What the values of an effect say."""
    low, high = effect.interval_of(1 - (1 - LEVEL) / effect.among)
    least = effect.least
    size = least if effect.size is None else effect.size
    if effect.equal:
        lowest = -math.inf if effect.one_sided else -least
        if lowest <= low and high <= least:
            return "agrees"
        return "opposite" if low > least or high < lowest else "undecided"
    if low >= size:
        return "agrees"
    if low > 0 and high < size:
        return "smaller"
    if -least <= low and high <= least:
        return "no difference"
    return "opposite" if high <= -least else "undecided"


def excluded(effect: Effect | Signs) -> str:
    """What the interval of an undecided effect still shows; empty for nothing."""
    if isinstance(effect, Signs) or effect.equal or effect.unknown or any(effect.diverged):
        return ""
    if not effect.values:
        return ""
    low, high = effect.interval_of(1 - (1 - LEVEL) / effect.among)
    if low > 0:
        return "same direction"
    if high < 0:
        return "other direction"
    return "not as large" if high < (effect.least if effect.size is None else effect.size) else ""


def outcome(effects: Sequence[Effect | Signs]) -> Outcome:
    """What several effects say together: that on which all agree, else ``undecided``.

    Not tested if one of them is not tested. All effects must show an outcome, so their number needs
    no correction.
    """
    outcomes = [outcome_of(effect) for effect in effects]
    if not outcomes or "not tested" in outcomes:
        return "not tested"
    return outcomes[0] if len(set(outcomes)) == 1 else "undecided"
