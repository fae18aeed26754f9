"""The interface of a step-size rule: the factor of the clients' step size in each round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from wirelessfl.registry import Choice
from wirelessfl.training.rules import ClientRule

Rule = TypeVar("Rule", bound=ClientRule)


@dataclass(frozen=True)
class StepSizes(Choice, ABC):
    """Base class of all step-size rules."""

    constant: ClassVar[bool] = False
    """Whether the step size is the same in every round."""

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
