"""The mask-size problem: reads and validates the arguments, and explains infeasibility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels.validation import shown, whole_number
from solvers.arrays import first, numbers
from solvers.mask_sizes.cell_steps import CellSteps, Floats

# Within these limits no sum or product overflows or underflows, and integers stay exact.
_MIN_SECONDS, _MAX_SECONDS, _MAX_UNITS = 1e-100, 1e100, 2**50


@dataclass(frozen=True, eq=False)
class MaskSizeProblem:
    """Problems with the same total and granularity.

    >>> import solvers
    >>> from solvers.mask_sizes import Exact, MaskSizeProblem
    >>> class Shown(Exact):
    ...     # Prints the problem that it gets
    ...     def solve(self, problem: MaskSizeProblem):
    ...         print(problem.total, problem.quota, problem.cells.high.tolist())
    ...         return super().solve(problem)
    >>> _ = solvers.optimize_mask_sizes([1.0, 3.0], 8, granularity=2, backend=Shown())
    8 4 [[4.0, 4.0]]

    Args:
        shape: shape of the batch, () for a single problem; below, ``batch`` is its size.
        cells: latencies, and bounds in steps.
        lower, cap: bounds in units before rounding, [batch, cells].
        total: number of units to allocate.
    """

    shape: tuple[int, ...]
    cells: CellSteps
    lower: Floats
    cap: Floats
    total: int

    @property
    def quota(self) -> int:
        """Total number of steps."""
        return self.total // self.cells.step

    def feasible(self) -> NDArray[np.bool_]:
        """Whether each problem has a solution, [batch]."""
        low, high = self.cells.low, self.cells.high
        fits: NDArray[np.bool_] = (low.sum(-1) <= self.quota) & (self.quota <= high.sum(-1))
        fits &= (low <= high).all(-1) & (self.total % self.cells.step == 0)
        return fits

    def rows(self, rows: NDArray[np.bool_]) -> MaskSizeProblem:
        """The problems selected by ``rows`` [batch], as a batch with one axis."""
        cells = self.cells.rows(rows)
        return MaskSizeProblem(
            cells.low.shape[:1], cells, self.lower[rows], self.cap[rows], self.total
        )

    def explain(self, row: int) -> str:
        """Name the constraint that infeasible problem ``row`` violates, and by how many units."""
        step, total = self.cells.step, self.total
        over = total % step
        if over:
            return (
                f"total {total} is not a multiple of granularity {step}: "
                f"{_units(over)} too many, or {_units(step - over)} too few"
            )
        lower, cap = self.lower[row], self.cap[row]
        low, high = step * self.cells.low[row], step * self.cells.high[row]
        rounding = f"; rounding to multiples of {step} causes this"
        if (low > high).any():
            cell = int((low > high).argmax())
            rounded = lower[cell] <= cap[cell]
            min_units, max_units = (low, high) if rounded else (lower, cap)
            text = (
                f"cell {cell} must train at least {_units(min_units[cell])} and at most "
                f"{_units(max_units[cell])}: {_units(min_units[cell] - max_units[cell])} short"
            )
        elif low.sum() > total:
            rounded = lower.sum() <= total
            text = f"lower bounds add up to {_units(low.sum())}, {_units(low.sum() - total)} more "
            text += f"than total {total}"
        else:
            rounded = cap.sum() >= total
            text = f"caps add up to {_units(high.sum())}, {_units(total - high.sum())} short "
            text += f"of total {total}"
        return text + rounding if rounded else text


def read_problem(
    seconds_per_unit: Any,
    total: Any,
    offset_seconds: Any,
    cap: Any,
    lower: Any,
    granularity: Any,
) -> MaskSizeProblem:
    """Read and validate the problem; arguments and errors are those of ``optimize_mask_sizes``."""
    total = _whole("total", total, 0)
    step = _whole("granularity", granularity, 1)
    seconds = numbers("seconds_per_unit", seconds_per_unit)
    if seconds.ndim == 0 or seconds.shape[-1] == 0:
        raise ValueError(
            f"seconds_per_unit has shape {seconds.shape}: give [..., cells] with at least one cell."
        )
    usable = (seconds >= _MIN_SECONDS) & (seconds <= _MAX_SECONDS)
    if not usable.all():
        _reject_latency(seconds, usable)
    shape = seconds.shape
    offset = _per_cell("offset_seconds", offset_seconds, shape, _MAX_SECONDS)
    lower = _per_cell("lower", lower, shape, _MAX_UNITS)
    cap = _per_cell("cap", np.inf if cap is None else cap, shape, np.inf)
    # No cell gets more than total. Bounds are rounded to units first, then to steps.
    cap = np.minimum(cap, total)
    low, high = np.ceil(np.ceil(lower) / step), np.floor(np.floor(cap) / step)
    rows = (-1, shape[-1])
    seconds, offset, low, high = (x.reshape(rows) for x in (seconds, offset, low, high))
    cells = CellSteps(seconds, offset, low, high, step)
    return MaskSizeProblem(shape[:-1], cells, lower.reshape(rows), cap.reshape(rows), total)


def _whole(name: str, value: Any, min_value: int) -> int:
    try:
        whole = whole_number(name, value)
    except TypeError:
        whole = -1
    if isinstance(value, bool) or not min_value <= whole <= _MAX_UNITS:
        raise ValueError(
            f"{name} is {shown(value)}: give a whole number from {min_value} to 2^50, "
            "as an integer."
        )
    return whole


def _per_cell(name: str, values: Any, shape: tuple[int, ...], max_value: float) -> Floats:
    """``values`` broadcast to one per cell; raises unless all are from 0 to ``max_value``."""
    array = numbers(name, values)
    good = (array >= 0) & (array <= max_value)
    if not good.all():
        index, value = first(good, array)
        limits = ">= 0" if max_value == np.inf else f"from 0 to {max_value:g}"
        raise ValueError(f"{name}{index} is {value}: give a number {limits}.")
    if array.ndim == 0:
        return np.full(shape, array)
    try:
        return np.broadcast_to(array, shape).copy()
    except ValueError:
        raise ValueError(
            f"{name} has shape {array.shape}: give one number, or values that broadcast to "
            f"{shape}, one per cell."
        ) from None


def _reject_latency(seconds: Floats, usable: NDArray[np.bool_]) -> None:
    index, value = first(usable, seconds)
    if value > 0 and value < np.inf:
        remedy = (
            f"give seconds from {_MIN_SECONDS:g} to {_MAX_SECONDS:g}, or change the unit of time."
        )
    elif value == 0:
        remedy = "a cell needs a positive latency per unit. Is its data rate infinite?"
    elif value == np.inf:
        remedy = "a cell needs a finite latency per unit. If its data rate is zero, leave it out."
    else:
        remedy = "a cell needs a finite, positive latency per unit."
    raise ValueError(f"seconds_per_unit{index} is {value}: {remedy}")


def _units(number: float) -> str:
    return f"{number:.12g} unit" + ("" if number == 1 else "s")
