"""Cells of mask-size problems in whole steps, and how many steps end by a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Cells:
    """Problems of one size; arrays [batch, cells] float64, whole numbers in low and high.

    Args:
        seconds: c, seconds a unit.
        offset: b, seconds.
        low, high: bounds on a cell's steps.
        step: g, units a step.
    """

    seconds: Floats
    offset: Floats
    low: Floats
    high: Floats
    step: int

    def latency(self, steps: Floats) -> Floats:
        """Seconds [..., batch, cells] that cells need for so many steps."""
        return self.seconds * (self.step * steps) + self.offset

    def rows(self, rows: Rows) -> Cells:
        """The problems that ``rows`` [batch] selects."""
        arrays = (self.seconds, self.offset, self.low, self.high)
        seconds, offset, low, high = (array[rows] for array in arrays)
        return Cells(seconds, offset, low, high, self.step)

    def ended(self, level: Floats) -> Floats:
        """Most steps within bounds that end by ``level`` [..., batch, 1]; low where none do."""
        steps = np.floor((level - self.offset) / (self.seconds * self.step))
        steps = np.minimum(np.maximum(steps, self.low), self.high)
        wrong = (self.latency(steps) > level) & (steps > self.low)
        wrong |= (self.latency(steps + 1) <= level) & (steps < self.high)
        if wrong.any():
            self._correct(steps, level, wrong)
        return steps

    def _correct(self, steps: Floats, level: Floats, wrong: Rows) -> None:
        """Corrects ``steps`` in place where rounding misled the division: bisection near by."""
        arrays = np.broadcast_arrays(self.seconds, self.offset, self.low, self.high, steps, level)
        seconds, offset, low, high, near, level = (array[wrong] for array in arrays)
        # Between division and truth lie fewer than 8 roundings of terms up to level + offset.
        error = 8 * _EPS * (np.abs(level) + offset) / (seconds * self.step)
        reach = 2 + np.floor(error)
        low, high = np.maximum(low, near - reach), np.minimum(high, near + reach)
        while (low < high).any():
            middle = low + np.ceil((high - low) / 2)
            ends = seconds * (self.step * middle) + offset <= level
            low, high = np.where(ends, middle, low), np.where(ends, high, middle - 1)
        steps[wrong] = low
