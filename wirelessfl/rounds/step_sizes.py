"""Schedules of the clients' step sizes over the rounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from wirelessfl.training.rules import ClientRule

Rule = TypeVar("Rule", bound=ClientRule)


def constant(number: int) -> float:
    """Step sizes stay as they are."""
    return 1.0


@dataclass(frozen=True)
class Decay:
    """Step sizes that fall within T rounds: (1 - ratio) (1 - t / T)^power + ratio of the first.

    Args:
        rounds: T; with the next round they begin again.
        ratio: what the last ones would fall to, lr_min / lr_0.
        power: of the polynomial.
    """

    rounds: int
    ratio: float
    power: float

    def __call__(self, number: int) -> float:
        """The share in round ``number``."""
        left = 1 - number % self.rounds / self.rounds
        return float((1 - self.ratio) * left**self.power + self.ratio)


def with_step_size(rule: Rule, share: float) -> Rule:
    """The rule whose clients take steps of ``share`` of its size."""
    return rule if share == 1.0 else replace(rule, lr=share * rule.lr)
