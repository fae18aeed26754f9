"""The interface of a step-size rule: the factor of the clients' step size in each round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from wirelessfl.guard import UnfitError, calling, described, returns, title_of, wrong_result
from wirelessfl.registry import Choice
from wirelessfl.returned import number
from wirelessfl.training.rules import ClientRule

Rule = TypeVar("Rule", bound=ClientRule)


def _factors(value: Any, step_sizes: StepSizes, rounds: int) -> Callable[[int], float]:
    """Check for a function whose results are factors > 0."""
    if not callable(value):
        raise UnfitError(described(value), "a function of the round number")
    check = number(above=True)

    def share(number: int) -> float:
        where = f"the function of shares, for round {number},"
        with calling(f"step sizes {title_of(step_sizes)!r}, {where}"):
            factor = value(number)
        try:
            return float(check(factor))
        except UnfitError as unfit:
            raise wrong_result("step sizes", step_sizes, where, unfit.found, unfit.wanted) from None

    return share


@dataclass(frozen=True)
class StepSizes(Choice, ABC):
    """Base class of all step-size rules."""

    constant: ClassVar[bool] = False
    """Whether the step size is the same in every round."""

    @returns(_factors)
    @abstractmethod
    def shares(self, rounds: int) -> Callable[[int], float]:
        """Return a function that maps a round number, from 0, to the factor of the step size.

        Args:
            rounds: T, number of rounds of a session, or of a run without sessions.
        """


def unchanged(number: int) -> float:
    """Return the factor 1 of a constant step size."""
    return 1.0


def with_step_size(rule: Rule, share: float) -> Rule:
    """Return the rule with its clients' step size multiplied by ``share``."""
    return rule if share == 1.0 else replace(rule, lr=share * rule.lr)
