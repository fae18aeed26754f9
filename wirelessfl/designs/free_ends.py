"""Designs within a limit on mean seconds, whose rounds end when it suits their channels.

With a price lambda >= 0 on the seconds of the training, the least cost + lambda (seconds - limit)
of all designs is a bound on the cost of those within the limit (Lagrange's dual), whether their
rounds have a common deadline or not. It holds for each pair of local steps and edge rounds alone,
and each pair may have a price of its own: the bound is the least of their best ones. Prices with
which the mean seconds just meet the limit give both the best bound of a pair and a design.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from channels.arrays import FloatArray, IntArray
from solvers import Solution, TrainingRounds

GAP = 5e-5
"""Relative gap at which the search ends."""
_SHORT = 2e-6
"""Relative distance from the limit at which designs are looked for."""
_SOLVES = 6
"""Prices with which the whole grid is solved."""
_PAIRS = 12
"""Largest number of pairs of local steps and edge rounds that get a price of their own."""
_WIDER = 10.0
"""Factor between prices of the whole grid and those of a pair."""

Place = tuple[int, int]
Solve = Callable[..., Solution[TrainingRounds]]
"""Solves with a cost of a second, all pairs, or one ``at`` a place, with given ``sizes``."""


@dataclass(eq=False)
class FreeEnds:
    """The best design found and the bounds.

    Args:
        solve: the problem without a limit.
        weights: costs of a second and of a joule of all clients.
        limit: on the mean seconds of the training.
        least: cost of a known design within the limit; inf without one.
        bounds: of each pair, [local steps, edge rounds].
        plan: the best design; None if none is better than ``least``.
        per_second: cost of a second with which it is the best.
    """

    solve: Solve
    weights: tuple[float, float]
    limit: float
    least: float
    bounds: FloatArray
    plan: TrainingRounds | None = None
    per_second: float = math.nan
    _late: list[TrainingRounds] = field(default_factory=list, repr=False)

    @property
    def bound(self) -> float:
        """No design within the limit costs less."""
        return min(float(self.bounds.min()), self.least)

    @property
    def open(self) -> bool:
        """Whether a pair may have a design that is better by more than the gap."""
        return self.bound < self.least * (1 - GAP)

    def excess(
        self, log_price: float, at: Place | None = None, sizes: IntArray | None = None
    ) -> float:
        """ln(seconds / limit) of the best design with a price; keeps what it says.

        Raises:
            ArithmeticError: the solver has no answer.
        """
        price = math.exp(log_price)
        second, joule = self.weights
        solution = self.solve(second + price, at=at, sizes=sizes)
        plan = solution.value
        if plan is None:
            raise ArithmeticError(solution.message)
        if sizes is None and at is None:
            self.bounds = np.maximum(self.bounds, plan.bounds - price * self.limit)
        elif at is not None and sizes is None:
            self.bounds[at] = max(self.bounds[at], solution.bound - price * self.limit)
        seconds = plan.total_seconds
        if seconds <= self.limit:
            cost = second * seconds + joule * plan.total_joules
            if cost < self.least:
                self.least, self.plan, self.per_second = cost, plan, second + price
        else:
            self._late.append(plan)
        return math.log(seconds / (self.limit * (1 - _SHORT)))

    def search(self, price: float) -> None:
        """Look for prices, from a guess of that of the best design."""
        low, high, guess = -math.inf, math.inf, math.log(price)
        for _ in range(_SOLVES):
            if self.excess(guess) > 0:
                low = guess
            else:
                high = guess
            ends = math.isfinite(low), math.isfinite(high)
            guess = (low + high) / 2 if all(ends) else guess + (1.4 if ends[0] else -1.4)
        if not math.isfinite(high) or not math.isfinite(low):
            return
        searched: set[Place] = set()
        wide = math.log(_WIDER)
        while self.open and len(searched) < _PAIRS:
            h, e = np.unravel_index(int(self.bounds.argmin()), self.bounds.shape)
            place = int(h), int(e)
            if place in searched:
                break
            searched.add(place)
            self._late.clear()
            end = self._root(low - wide, high + wide, at=place)
            if self.open and self._late:  # sizes may change where the limit is met
                self._root(end, end + wide, at=place, sizes=self._late[-1].sizes)

    def _root(self, low: float, high: float, **where: Any) -> float:
        """The price between two with which the seconds meet the limit, or the nearer one."""
        from scipy.optimize import brentq  # SciPy loads slowly

        excesses: dict[float, float] = {}

        def excess(price: float) -> float:
            if price not in excesses:
                excesses[price] = self.excess(price, **where)
            return excesses[price]

        if excess(low) <= 0 or excess(high) >= 0:
            return low if excess(low) <= 0 else high
        return float(brentq(excess, low, high, xtol=_SHORT / 4, maxiter=20, disp=False))
