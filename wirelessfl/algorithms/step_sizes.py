"""Step-size rules of the clients: interface and built-in rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from wirelessfl.base.guard import (
    UnfitError,
    calling,
    described,
    number,
    returns,
    title_of,
    wrong_result,
)
from wirelessfl.base.needs import Suits
from wirelessfl.base.registry import Choice, Kind
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
            raise wrong_result(
                "step sizes", step_sizes, where, unfit.result, unfit.expected
            ) from None

    return share


@dataclass(frozen=True)
class StepSizes(Choice, ABC):
    """Base class of all step-size rules."""

    name = "step-sizes"

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


@dataclass(frozen=True)
class Decay:
    """Step-size factor (1 - ratio) (1 - t / T)^power + ratio of round t.

    Args:
        rounds: T; the decay restarts at round T.
        ratio: ratio of the final to the initial step size, lr_min / lr_0.
        power: exponent of the polynomial.
    """

    rounds: int
    ratio: float
    power: float

    def __call__(self, number: int) -> float:
        """The factor in round ``number``."""
        left = 1 - number % self.rounds / self.rounds
        return float((1 - self.ratio) * left**self.power + self.ratio)


@dataclass(frozen=True)
class Poly(StepSizes):
    """Polynomial decay within a session of T rounds: lr ((1 - ratio) (1 - t/T)^power + ratio)."""

    name = "poly"

    lr_ratio: Annotated[
        float, Field(ge=0, le=1, description="final step size as a fraction of --lr")
    ] = 0.0
    lr_power: Annotated[float, Field(gt=0, description="exponent of the polynomial decay")] = 0.9

    def shares(self, rounds: int) -> Callable[[int], float]:
        """Return the polynomial decay over ``rounds`` rounds."""
        return Decay(rounds, self.lr_ratio, self.lr_power)


def _equal_steps(run: Any, _: Any) -> bool:
    """Whether all updates of a merge have been computed with one step size."""
    settings, stale = run.settings, run.regime.of_tasks and run.schedule.work == "requests"
    return settings.lr_schedule.constant or not stale


EQUAL_STEPS = Suits(
    _equal_steps,
    "lr_schedule={run.settings.lr_schedule.title!r} conflicts with algorithm "
    '"{run.title}", which divides by the clients\' step size: '
    'it differs within a merge under schedule "{run.schedule.title}". Choose lr_schedule '
    '"constant", or schedule "rounds"',
)
"""What a setting of an algorithm needs whose ``merge`` divides by the clients' step size."""
STEP_SIZES: Kind[StepSizes] = Kind(
    "lr_schedule",
    __name__,
    StepSizes,
    default="constant",
    text="step size over the rounds",
)
"""All step-size rules of the clients."""


@dataclass(frozen=True)
class Constant(StepSizes):
    """The same step size in every round."""

    name = "constant"

    constant: ClassVar[bool] = True

    def shares(self, rounds: int) -> Callable[[int], float]:
        """Return the factor 1 for every round."""
        return unchanged


__all__ = ["STEP_SIZES", "Decay", "StepSizes", "unchanged", "with_step_size"]
