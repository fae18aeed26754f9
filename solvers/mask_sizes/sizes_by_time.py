"""Mask sizes for any law of time that is nondecreasing in the size, from few of its values.

Steps are allocated in order of their seconds, as by the exact method. The seconds of a few sizes
bracket those of all sizes between them, and so the T* of the last step: steps that surely end
earlier or later need no evaluation. The others do, a fixed number per cell and call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.validation import number_of, shown
from solvers.arrays import numbers
from solvers.mask_sizes.mask_size_problem import MaskSizeProblem, read_problem
from solvers.solution import Solution, Status

_NOISE = 1e-9
"""Relative decrease of the seconds that rounding errors of a solver explain."""


@checked()
def optimize_sizes_by_time(
    seconds: Callable[[IntArray], ArrayLike],
    total: int,
    *,
    cells: int,
    cap: ArrayLike | None = None,
    lower: ArrayLike = 0,
    granularity: int = 1,
    candidates: int = 32,
) -> Solution[IntArray]:
    """Find the submodel sizes that minimise the slowest cell's seconds, for any law of time.

    Solves  min_p max_j T_j(p_j)  over integers p_j in [lower_j, cap_j], multiples of
    ``granularity``, with sum_j p_j = total, where T_j is nondecreasing. ``optimize_mask_sizes``
    solves the linear case without calls, and agrees: steps with equal seconds go to the cells with
    the smallest index.

    T_j can be the least seconds over whatever else a cell decides. With those of
    ``OptimalBands.serve``, the sizes are the joint optimum of sizes and bands. Where bits and
    cycles are affine in the size and each cell has one block of channels,
    ``optimize_masks_and_bands`` finds the same, is cheaper from about 1000 clients on, and takes
    batches. This function also takes sums over blocks, submodels of any shape and other accesses.

    >>> import numpy as np
    >>> import solvers
    >>> pace = np.array([1.0, 3.0])  # seconds per unit, growing with the square of the size
    >>> solvers.optimize_sizes_by_time(lambda sizes: pace * sizes**2, 10, cells=2).value.tolist()
    [6, 4]

    Args:
        seconds: maps candidate sizes [candidates, cells], in units, to each cell's seconds
            [candidates, cells], >= 0; inf for a size that never ends. A cell's seconds depend on
            its own size only. It is called about twice for 200 units, and seven times for 10^6.
        total: number of units to allocate.
        cells: number of cells, >= 1.
        cap, lower, granularity: bounds of the sizes, as for ``optimize_mask_sizes``.
        candidates: largest number of candidate sizes per call, >= 2.

    Returns:
        Sizes [cells], int64. Objective and bound, in seconds, are equal; the sizes are optimal
        for the seconds that ``seconds`` returned. Infeasible problems have no value, and the
        message names the constraint and the shortfall in units.

    Raises:
        ValueError: an argument is out of range, or ``seconds`` returns numbers that decrease with
            the size, are negative or NaN, or have the wrong shape.
        TypeError: ``seconds`` is not a function, or another argument has the wrong type.
    """
    start = time.perf_counter()
    if not callable(seconds):
        raise TypeError(f"seconds is {shown(seconds)}: give a function of sizes.")
    count, rows = number_of("cells", cells), number_of("candidates", candidates, 2)
    problem = read_problem(np.ones(count), total, 0.0, cap, lower, granularity)
    if not problem.feasible()[0]:
        return _infeasible(problem.explain(0), start)
    search = _Search(seconds, problem, rows)
    steps, objective = search.run()
    if objective == np.inf:
        return _infeasible(search.explain(), start)
    wall = time.perf_counter() - start
    sizes = problem.cells.step * steps
    return Solution(sizes, objective, objective, 0.0, Status.OPTIMAL, "search", wall)


def _infeasible(message: str, start: float) -> Solution[Any]:
    wall = time.perf_counter() - start
    return Solution(None, np.inf, np.inf, 0.0, Status.INFEASIBLE, "search", wall, message)


@dataclass(frozen=True, eq=False)
class _Known:
    """Evaluated steps, in order of cell and step; each stands for the gap that it closes.

    Args:
        cell, step: [known]; the first step of a cell is its lower bound.
        after: seconds of the step.
        before: seconds of the cell's previous known step; -inf for its first.
        width: steps since the previous known one, 0 for the first.
    """

    cell: IntArray
    step: IntArray
    after: FloatArray
    before: FloatArray
    width: IntArray

    def open(self, first: float, last: float) -> BoolArray:
        """Gaps with unknown seconds that may lie in the interval from ``first`` to ``last``."""
        unknown = (self.width > 1) & (self.before < self.after)
        return np.asarray(unknown & (self.before <= last) & (self.after >= first))


class _Search:
    """Finds T*, the seconds of the last step, and the steps that end by then."""

    def __init__(
        self, seconds: Callable[[IntArray], ArrayLike], problem: MaskSizeProblem, rows: int
    ) -> None:
        bounds = problem.cells
        self._seconds, self._unit, self._rows = seconds, bounds.step, rows
        self._low = bounds.low[0].astype(np.int64)
        self._missing = problem.quota - int(self._low.sum())
        self._high = np.minimum(bounds.high[0].astype(np.int64), self._low + self._missing)
        self._problem = problem
        none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
        self._known = _Known(none, none, nothing, nothing, none)

    def run(self) -> tuple[IntArray, float]:
        """Steps [cells] and the seconds of the slowest cell."""
        share = np.linspace(0, 1, min(self._rows, int((self._high - self._low).max()) + 1))
        self._evaluate(np.rint(self._low + share[:, None] * (self._high - self._low)))
        if not self._missing:
            return self._low, self._slowest(self._low)
        while True:
            first, last = self._bracket()
            gaps = self._known
            before, ties = self._steps(gaps.after < last), self._steps(gaps.after == last)
            open_ = gaps.open(first, last)
            if not open_.any():
                break
            # If exactly the missing steps end by T*, it does not matter which of them tie.
            more = (gaps.after[open_] > last).any()
            if first == last < np.inf and not more and (before + ties).sum() == self._missing:
                break
            self._evaluate(self._between(np.flatnonzero(open_)))
        left = self._missing - before.sum() - (ties.cumsum() - ties)
        steps = np.asarray(self._low + before + np.clip(left, 0, ties))
        return steps, self._slowest(steps)

    def explain(self) -> str:
        """Say which cell never ends, and how many units are missing because of it."""
        gaps, unit = self._known, self._unit
        never = np.isinf(gaps.after)
        cell = int(gaps.cell[never][0])
        size = unit * int(gaps.step[never][0])
        text = f"cell {cell} never ends with {size} units"
        finite = unit * int((self._low + self._steps(~never)).sum())
        if (never & (gaps.width == 0)).any():
            return f"{text}, its lower bound"
        return (
            f"total is {self._problem.total}, but the cells end with at most {finite} units: {text}"
        )

    def _steps(self, which: BoolArray) -> IntArray:
        """Number of steps [cells] above the lower bounds that some of the known steps stand for."""
        gaps = self._known
        steps = np.zeros(len(self._low), dtype=np.int64)
        np.add.at(steps, gaps.cell[which], gaps.width[which])
        return steps

    def _slowest(self, steps: IntArray) -> float:
        """Seconds of the slowest cell; steps that are not known have those of the one before."""
        gaps = self._known
        return float(gaps.after[gaps.step <= steps[gaps.cell]].max())

    def _bracket(self) -> tuple[float, float]:
        """Bounds of T*: unknown seconds are at least those before and at most those after."""
        gaps = self._known
        least = np.concatenate([gaps.before, gaps.after])
        widths = np.concatenate([np.maximum(gaps.width - 1, 0), np.minimum(gaps.width, 1)])
        return (
            _ordered(least, widths, self._missing),
            _ordered(gaps.after, gaps.width, self._missing),
        )

    def _between(self, gaps: IntArray) -> IntArray:
        """Steps to evaluate [candidates, cells], evenly spaced among those inside ``gaps``."""
        bounds = self._known
        chosen = np.tile(self._low, (self._rows, 1))  # known, where a cell needs fewer
        used = 0
        for cell in np.unique(bounds.cell[gaps]):
            mine = gaps[bounds.cell[gaps] == cell]
            inside = bounds.width[mine] - 1
            ends = inside.cumsum()
            count = min(self._rows, int(ends[-1]))
            rank = ((np.arange(count) + 0.5) * (ends[-1] / count)).astype(np.int64)
            gap = np.searchsorted(ends, rank, side="right")
            chosen[:count, cell] = bounds.step[mine][gap] + rank - ends[gap]
            used = max(used, count)
        return chosen[:used]

    def _evaluate(self, steps: FloatArray | IntArray) -> None:
        """Add the seconds of steps [candidates, cells] to what is known."""
        steps = steps.astype(np.int64)
        seconds = numbers("seconds", self._seconds(self._unit * steps))
        if seconds.shape != steps.shape:
            raise ValueError(
                f"seconds returned shape {seconds.shape} for sizes of shape {steps.shape}: return "
                "[candidates, cells]."
            )
        if not (seconds >= 0).all():
            value = shown(float(seconds[~(seconds >= 0)][0]))
            raise ValueError(f"seconds returned {value}: return seconds >= 0.")
        gaps = self._known
        cell = np.concatenate([gaps.cell, np.tile(np.arange(steps.shape[1]), len(steps))])
        step = np.concatenate([gaps.step, steps.ravel()])
        after = np.concatenate([gaps.after, seconds.ravel()])
        order = np.lexsort((step, cell))
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(cell[order]) > 0) | (np.diff(step[order]) > 0)
        cell, step, after = (column[order[new]] for column in (cell, step, after))
        start = np.ones(len(cell), dtype=bool)
        start[1:] = np.diff(cell) > 0
        after = self._rising(cell, step, after, start)
        before = np.where(start, -np.inf, np.roll(after, 1))
        width = np.where(start, 0, step - np.roll(step, 1))
        self._known = _Known(cell, step, after, before, width)

    def _rising(
        self, cell: IntArray, step: IntArray, after: FloatArray, start: BoolArray
    ) -> FloatArray:
        """``after`` without decreases that rounding errors explain."""
        less = ~start & (after < np.roll(after, 1))
        wrong = less & (after < np.roll(after, 1) * (1 - _NOISE))
        if wrong.any():
            i = int(wrong.argmax())
            raise ValueError(
                f"seconds decreases: cell {cell[i]} takes {after[i - 1]:.6g} s with "
                f"{self._unit * step[i - 1]} units and {after[i]:.6g} s with "
                f"{self._unit * step[i]}. Return seconds that are nondecreasing in the size."
            )
        for number in np.unique(cell[less]):
            mine = cell == number
            after[mine] = np.maximum.accumulate(after[mine])
        return after


def _ordered(values: FloatArray, widths: IntArray, number: int) -> float:
    """The ``number``-th smallest of ``values``, each of which counts ``widths`` times."""
    order = values.argsort()
    return float(values[order][np.searchsorted(widths[order].cumsum(), number)])
