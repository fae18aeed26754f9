"""The energy of cells against the time they take, for any size of their submodels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray
from solvers.bands.least_time import least_time
from solvers.energy.least_energy import least_energy
from solvers.joint.sized_energy_cells import SizedEnergyCells

_MAX_DOUBLINGS = 200
_STEEP = 1e200
"""In place of an unknown slope."""


class Tangents(NamedTuple):
    """Lower bounds a q + s T on the joules of cells with q units that end at T.

    Args:
        per_unit: a, [points, cells].
        per_second: s, [points, cells].
    """

    per_unit: FloatArray
    per_second: FloatArray


class Fronts:
    """The least energy v(tau) of one unit of each cell within tau seconds; v is convex.

    With the bands of one unit, q units cost q v(T / q) within T.

    Args:
        cells: cells; only what grows with the size counts.
    """

    def __init__(self, cells: SizedEnergyCells) -> None:
        number, none = len(cells.band), np.zeros(cells.bits.shape)
        unit = cells._replace(more_bits=none, more_cycles=none)
        able = ~unit.unable(np.ones(number))[:, None]
        unit = unit._replace(
            bits=np.where(able, unit.bits, 0.0), cycles=np.where(able, unit.cycles, 0.0)
        )
        self._units = unit.rounds(np.ones(number), 1.0)
        self.soonest = np.zeros(number), np.zeros(number)
        """Bracket of the least tau, [cells] each."""
        self._best: dict[tuple[bytes, float], tuple[float, float]] = {}
        busy = np.flatnonzero((self._units.bits + self._units.cycles > 0).any(-1))
        bracket = least_time(self._units.cells(busy))
        for every, some in zip(self.soonest, bracket, strict=True):
            every[busy] = some

    def tangents(self, tau: FloatArray) -> Tangents:
        """Bounds that are tight at T = ``tau`` q, [points, cells].

        A tau below the least is raised to it; the bound is 0 where no better one was found.
        """
        tau = np.maximum(tau, self.soonest[1])
        _, bound, slope = self._solve(tau)
        slope = np.where(np.isfinite(bound) & np.isfinite(slope), slope, 0.0)
        return Tangents(np.where(slope < 0, bound - slope * tau, 0.0), slope)

    def energy(self, sizes: FloatArray, seconds: float) -> float:
        """Joules of all cells with q = ``sizes`` [cells], each within ``seconds`` or as it can."""
        joules = self._solve(self.tau(sizes, seconds)[None])[0][0]
        total = float((sizes * joules)[sizes > 0].sum())
        return total if np.isfinite(total) else np.inf

    def tau(self, sizes: FloatArray, seconds: float) -> FloatArray:
        """Seconds per unit [cells] for an end at ``seconds``, raised to those needed."""
        quotients = np.divide(seconds, sizes, np.full(len(sizes), seconds), where=sizes > 0)
        return np.asarray(np.maximum(quotients, self.soonest[1]))

    def best_seconds(self, sizes: FloatArray, second: float) -> tuple[float, float]:
        """The T that minimises ``second`` x T + joules for given sizes, and this cost.

        The cost is convex in T. Its slope may be unknown next to the least T, where it is taken as
        very negative: the root of the slope is then compared with the least T. Answers are kept,
        since successive programs often have the same sizes.
        """
        key = sizes.tobytes(), second
        if key not in self._best:
            self._best[key] = self._best_seconds(sizes, second)
        return self._best[key]

    def _best_seconds(self, sizes: FloatArray, second: float) -> tuple[float, float]:
        """As ``best_seconds``, by a search."""
        from scipy.optimize import brentq  # SciPy loads slowly

        begin = float((sizes * self.soonest[1]).max())

        @cache  # the search asks again for its ends
        def slope(log_seconds: float) -> float:
            slopes = self._solve(self.tau(sizes, np.exp(log_seconds))[None])[2][0]
            total = second + float(slopes[sizes > 0].sum())
            return total if np.isfinite(total) else -_STEEP

        def cost(seconds: float) -> float:
            return second * seconds + self.energy(sizes, seconds)

        if begin == 0:
            return 0.0, self.energy(sizes, 1.0)
        low = np.log(begin)
        if slope(low) >= 0:
            return begin, cost(begin)
        high = low
        for _ in range(_MAX_DOUBLINGS):
            low, high = high, high + np.log(2)
            if slope(high) >= 0:
                break
        root = max(float(np.exp(brentq(slope, low, high, xtol=1e-12))), begin)
        least, seconds = min((cost(end), end) for end in (begin, root))
        return seconds, least

    def _solve(self, tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Energy, bound and slope of one unit of each cell, [points, cells] each."""
        rows = np.tile(np.arange(tau.shape[1]), len(tau))
        problem = replace(self._units.rows(rows), deadline=tau.ravel())
        plan = least_energy(problem, problem.feasible()[1])
        shape = tau.shape
        return plan.energy.reshape(shape), plan.bound.reshape(shape), plan.slope.reshape(shape)
