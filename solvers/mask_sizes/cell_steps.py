"""Cells of mask-size problems: their latencies, and the steps that fit into a given time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class CellSteps:
    """Cells of a batch of problems; arrays [batch, cells] float64.

    Args:
        seconds: c, seconds per unit.
        offset: b, seconds.
        low, high: bounds on a cell's number of steps; integers.
        step: g, units per step.
    """

    seconds: Floats
    offset: Floats
    low: Floats
    high: Floats
    step: int

    def latency(self, steps: Floats) -> Floats:
        """Latency [..., batch, cells] of the cells in seconds for given numbers of steps."""
        return self.seconds * (self.step * steps) + self.offset

    def rows(self, rows: Rows) -> CellSteps:
        """The problems selected by ``rows`` [batch]."""
        arrays = (self.seconds, self.offset, self.low, self.high)
        seconds, offset, low, high = (array[rows] for array in arrays)
        return CellSteps(seconds, offset, low, high, self.step)

    def ended(self, level: Floats) -> Floats:
        """Maximum number of steps within the bounds whose latency is at most ``level``.

        If even ``low`` steps take longer, the result is ``low``. ``level`` is [..., batch, 1].
        """
        steps = np.floor((level - self.offset) / (self.seconds * self.step))
        steps = np.minimum(np.maximum(steps, self.low), self.high)
        wrong = (self.latency(steps) > level) & (steps > self.low)
        wrong |= (self.latency(steps + 1) <= level) & (steps < self.high)
        if wrong.any():
            self._correct(steps, level, wrong)
        return steps

    def _correct(self, steps: Floats, level: Floats, wrong: Rows) -> None:
        """Correct the ``wrong`` entries of ``steps`` in place, by bisection."""
        arrays = np.broadcast_arrays(self.seconds, self.offset, self.low, self.high, steps, level)
        seconds, offset, low, high, near, level = (array[wrong] for array in arrays)
        # The division's error is less than 8 roundings of terms up to level + offset.
        error = 8 * _EPS * (np.abs(level) + offset) / (seconds * self.step)
        reach = 2 + np.floor(error)
        low, high = np.maximum(low, near - reach), np.minimum(high, near + reach)
        while (low < high).any():
            middle = low + np.ceil((high - low) / 2)
            ends = seconds * (self.step * middle) + offset <= level
            low, high = np.where(ends, middle, low), np.where(ends, high, middle - 1)
        steps[wrong] = low
