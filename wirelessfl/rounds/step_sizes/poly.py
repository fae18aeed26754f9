"""Polynomially decaying step sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.rounds.step_sizes.step_sizes import StepSizes


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
    """Polynomial decay within a session of T rounds: lr ((1 - ratio) (1 - t/T)^power + ratio).

    Args:
        lr_ratio: ratio of the final to the initial step size.
        lr_power: exponent of the polynomial.
    """

    lr_ratio: Annotated[
        float, Field(ge=0, le=1, description="final step size as a fraction of --lr")
    ] = 0.0
    lr_power: Annotated[float, Field(gt=0, description="exponent of the polynomial decay")] = 0.9

    def shares(self, rounds: int) -> Callable[[int], float]:
        """Return the polynomial decay over ``rounds`` rounds."""
        return Decay(rounds, self.lr_ratio, self.lr_power)
