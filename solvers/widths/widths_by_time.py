"""Submodel widths within a deadline where a client's seconds depend on the others' widths."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.validation import checked_rows, number_of, shown
from solvers.arrays import numbers
from solvers.solution import Solution, Status
from solvers.widths.width_problem import check_deadline, missed, read_neurons


@checked()
def optimize_widths_by_time(
    seconds: Callable[[IntArray], ArrayLike],
    neurons: ArrayLike,
    deadline: float,
    *,
    cell_of: ArrayLike,
    candidates: int = 32,
) -> Solution[IntArray]:
    """Find widths that no client can exceed by one level within the deadline, for any access.

    Clients of a cell may wait for each other or share its band, so that a client's seconds do not
    decrease if any client of its cell takes a larger level. In general there is then no single
    vector of largest levels. This function raises levels in turns: every client of a cell to level
    1, then to 2, and so on, in order of their indices; a client that would make its cell late stays
    where it is. This guarantees that

    - every client of every cell ends by the deadline;
    - no client can take one level more, unless another takes less;
    - no choice within the deadline has a larger smallest level in a cell;
    - if the clients' seconds do not depend on each other, each client has the largest level that it
      finishes: the levels are those of ``widths_by_deadline``, which needs one table of seconds.

    The sum of the widths need not be the largest. With optimal bands, and bits and cycles
    proportional to widths of any size, ``optimize_widths_and_bands`` maximises it.

    >>> import numpy as np
    >>> import solvers
    >>> table = np.array([[1.0, 2.0], [2.0, 4.0]])  # seconds of each client at each level
    >>> solution = solvers.optimize_widths_by_time(
    ...     lambda levels: table[[0, 1], levels], [5, 10], deadline=3.0, cell_of=[0, 0]
    ... )
    >>> solution.value.tolist()
    [1, 0]

    Args:
        seconds: maps candidate levels [candidates, clients] to the clients' seconds
            [candidates, clients], >= 0; inf for a client that never ends. Clients of other cells
            must not matter. Each call raises or excludes at least one client of a cell.
        neurons: [levels] or [layers, levels], as for ``fastest_widths``.
        deadline: maximum duration in seconds, finite and > 0.
        cell_of: [clients], the cell of each client.
        candidates: number of candidates per call, >= 1, besides one for each client of a cell.

    Returns:
        Level of each client, [clients] int64. The objective is the mean coverage in masks per
        neuron of the layer with the lowest one, as for ``widths_by_deadline``. If no client could
        take a larger level even if all others took level 0, the levels are optimal and the bound
        equals the objective; otherwise the bound is NaN and the status FEASIBLE. If a client misses
        the deadline although all take level 0, there is no value, the objective is -inf, and the
        message names the slowest client and the time it needs.

    Raises:
        ValueError: an argument is out of range, or ``seconds`` returns the wrong shape or numbers
            that are negative or NaN.
        TypeError: ``seconds`` is not a function, or another argument has the wrong type.
    """
    start = time.perf_counter()
    if not callable(seconds):
        raise TypeError(f"seconds is {shown(seconds)}: give a function of levels.")
    widths, limit = read_neurons(neurons), check_deadline(deadline)
    cells, rows = checked_rows("cell_of", cell_of), number_of("candidates", candidates)
    search = _Search(seconds, limit, cells, widths.shape[1] - 1, rows)
    smallest = search.times(np.zeros((1, len(cells)), dtype=np.int64))[0]
    if (smallest > limit).any():
        wall = time.perf_counter() - start
        message = missed(smallest, limit)
        return Solution(None, -np.inf, -np.inf, 0.0, Status.INFEASIBLE, "turns", wall, message)
    levels = search.run()
    kept = widths[:, levels].sum(-1)
    coverage = float((kept / widths[:, -1]).min())
    proven = search.each_is_largest(levels)
    bound, gap = (coverage, 0.0) if proven else (np.nan, np.nan)
    wall = time.perf_counter() - start
    return Solution(levels, coverage, bound, gap, Status.of_gap(gap), "turns", wall)


class _Search:
    """Raises levels in turns, in all cells at once."""

    def __init__(
        self,
        seconds: Callable[[IntArray], ArrayLike],
        limit: float,
        cell_of: IntArray,
        top: int,
        rows: int,
    ) -> None:
        self._seconds, self._limit, self._top, self._rows = seconds, limit, top, rows
        self._cells = [np.flatnonzero(cell_of == cell) for cell in np.unique(cell_of)]
        self._clients = len(cell_of)

    def times(self, levels: IntArray) -> FloatArray:
        """The clients' seconds [candidates, clients]."""
        times = numbers("seconds", self._seconds(levels))
        if times.shape != levels.shape:
            raise ValueError(
                f"seconds returned shape {times.shape} for levels of shape {levels.shape}: return "
                "[candidates, clients]."
            )
        if not (times >= 0).all():
            raise ValueError("seconds returned negative numbers or NaN: return seconds >= 0.")
        return times

    def run(self) -> IntArray:
        """The levels [clients] that cannot be raised, from 0."""
        levels = np.zeros(self._clients, dtype=np.int64)
        free = np.full(self._clients, self._top > 0)
        while free.any():
            # First each client alone, which shows who cannot be raised any more; then turns.
            plans = [self._turns(levels[mine], free[mine]) for mine in self._cells]
            tried = self._fit(levels, plans)
            for mine, plan, fits in zip(self._cells, plans, tried, strict=True):
                alone = np.flatnonzero(free[mine])
                free[mine[alone[~fits[: len(alone)]]]] = False
                turns = plan[len(alone) :][fits[len(alone) :]]
                if len(turns):
                    levels[mine] = turns[-1]
            free &= levels < self._top
        return levels

    def each_is_largest(self, levels: IntArray) -> bool:
        """Whether no client could take a larger level even if all others took level 0."""
        plans = []
        for mine in self._cells:
            more = levels[mine] + 1
            plans.append(np.diag(more)[more <= self._top])
        tried = self._fit(np.zeros_like(levels), plans)
        return not any(fits.any() for fits in tried)

    def _turns(self, levels: IntArray, free: BoolArray) -> IntArray:
        """Levels [candidates, clients] of a cell that raise each free client by 1, or several."""
        who = np.flatnonzero(free)
        if not who.size:
            return np.empty((0, len(levels)), dtype=np.int64)
        alone = levels + np.eye(len(levels), dtype=np.int64)[who]
        rises = self._top - levels[who]
        client = np.repeat(who, rises)
        level = np.arange(len(client)) - np.repeat(rises.cumsum() - rises - levels[who], rises)
        chain = client[np.lexsort((client, level))]
        lengths = np.unique(np.geomspace(1, len(chain), self._rows).round().astype(np.int64))
        raised = np.zeros((len(lengths), len(levels)), dtype=np.int64)
        for row, length in enumerate(lengths):
            raised[row] = np.bincount(chain[:length], minlength=len(levels))
        return np.concatenate([alone, levels + raised])

    def _fit(self, levels: IntArray, plans: list[IntArray]) -> list[BoolArray]:
        """Whether each plan [candidates, clients] of a cell ends all its clients in time."""
        count = max(map(len, plans))
        if not count:
            return [np.empty(0, dtype=bool) for _ in plans]
        tried = np.tile(levels, (count, 1))
        for mine, plan in zip(self._cells, plans, strict=True):
            tried[: len(plan), mine] = plan
        timely = self.times(tried) <= self._limit
        return [
            np.asarray(timely[: len(plan), mine].all(-1))
            for mine, plan in zip(self._cells, plans, strict=True)
        ]
