"""Constant step sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from wirelessfl.rounds.step_sizes.step_sizes import StepSizes, unchanged


@dataclass(frozen=True)
class Constant(StepSizes):
    """The same step size in every round."""

    constant: ClassVar[bool] = True

    def shares(self, rounds: int) -> Callable[[int], float]:
        """Return the factor 1 for every round."""
        return unchanged
