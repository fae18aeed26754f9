"""Which pilots to train: few settings that determine the learning curve well.

The curve is fitted as R = a0/(H E) + a1 + a2 H + a3 E (+ a4/K + a5 sigma^2 + a6 m) to relative
errors of the rounds R, so a pilot is a row of these terms over their sum. Terms are scaled to equal
contributions at the geometric centre of the grid, since their coefficients are unknown. Pilots are
chosen one after the other, each the one that raises det(X'X) most (D-optimality). Without
replication this is within a few per cent of the best set, and its beginnings do not depend on the
number of pilots: further pilots, participants, masks or SNR add to those that exist already.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray

LOCAL_STEPS = (2, 40, 6)
EDGE_ROUNDS = (1, 10, 5)
"""First and last value of the default range, and number of values."""
RIDGE = 1e-3
"""Added to X'X, so that the first pilots have a determinant, too."""
PER_FACTOR = 2
"""Fewest pilots that differ from the others in participants, masks or SNR."""


class Point(NamedTuple):
    """Settings of a pilot.

    Args:
        local_steps: H.
        edge_rounds: E.
        clients: K, participants of a round; None for the configured number.
        shares: share of the neurons of each cell; None for uniform submodels.
        snr_db: SNR of an upload over the air; None for an error-free uplink.
    """

    local_steps: int
    edge_rounds: int
    clients: int | None = None
    shares: tuple[float, ...] | None = None
    snr_db: float | None = None

    @property
    def largest(self) -> float:
        """m, the largest submodel relative to equal ones."""
        return 1.0 if self.shares is None else max(self.shares) * len(self.shares)

    @property
    def label(self) -> str:
        """For example "H 7, E 2, 30 clients"."""
        words = f"H {self.local_steps}, E {self.edge_rounds}"
        words += f", {self.clients} clients" if self.clients else ""
        words += f", largest mask {self.largest:.3g}" if self.shares else ""
        return words + (f", {self.snr_db:g} dB" if self.snr_db is not None else "")

    @property
    def noise(self) -> float:
        """1/SNR; 0 for an error-free uplink."""
        return 0.0 if self.snr_db is None else float(10 ** (-self.snr_db / 10))


class PilotChoices(NamedTuple):
    """Values of the settings of pilots.

    Args:
        local_steps: H.
        edge_rounds: E.
        clients: K. The largest is that of all pilots that do not vary it; empty for the configured
            number.
        shares: unequal shares of the cells.
        snr_db: SNR over the air.
    """

    local_steps: tuple[int, ...]
    edge_rounds: tuple[int, ...]
    clients: tuple[int, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()
    snr_db: tuple[float, ...] = ()


def levels(first: int, last: int, count: int) -> tuple[int, ...]:
    """At most ``count`` whole numbers from ``first`` to ``last`` in equal ratios."""
    return tuple(sorted({round(float(value)) for value in np.geomspace(first, last, count)}))


def ramp(cells: int, largest: float) -> tuple[float, ...]:
    """Shares of the cells that fall linearly from ``largest`` to 2 - ``largest``, over N."""
    return tuple(float(share) for share in np.linspace(largest, 2 - largest, cells) / cells)


def chosen_points(choices: PilotChoices, count: int) -> list[Point]:
    """The settings of the pilots.

    ``count`` pilots differ in H and E only. Each further factor adds one pilot per value, and at
    least ``PER_FACTOR``.

    Args:
        choices: values to choose from.
        count: number of pilots without further factors; of a smaller grid, all settings.
    """
    numbers = sorted({*choices.clients}, reverse=True)
    base = numbers[0] if numbers else None
    pairs = itertools.product(choices.local_steps, choices.edge_rounds)
    grid = [Point(*pair) for pair in pairs]
    terms = _Terms(_centre(choices.local_steps), _centre(choices.edge_rounds), base or 1)
    first = [point._replace(clients=base) for point in _added([], grid, count, terms)]
    points = list(first)
    of_base = [point._replace(clients=base) for point in grid]
    factors: dict[str, list[list[Point]]] = {
        "clients": [[p._replace(clients=k) for p in of_base] for k in numbers[1:]],
        "shares": [
            [p._replace(shares=shares) for p in of_base] for shares in dict.fromkeys(choices.shares)
        ],
        "snr_db": [
            [p._replace(snr_db=snr) for p in of_base]
            for snr in sorted({*choices.snr_db}, reverse=True)
        ],
    }
    for name, grids in factors.items():
        per_grid = math.ceil(PER_FACTOR / len(grids)) if grids else 0
        of_factor = list(first)
        for candidates in grids:
            of_factor = _added(of_factor, candidates, per_grid, replace(terms, factor=name))
        points += of_factor[len(first) :]
    return points


@dataclass(frozen=True)
class _Terms:
    """Terms of the curve: those of H and E, and that of one further factor.

    Args:
        h: H at which terms are 1.
        e: E at which they are 1.
        k: K at which they are 1.
        factor: the further factor; None for none.
    """

    h: float
    e: float
    k: float
    factor: str | None = None

    def rows(self, points: Sequence[Point]) -> FloatArray:
        """Relative contributions of the terms, [points, terms]."""
        rows = np.array([self._row(point) for point in points])
        return np.asarray(rows / rows.sum(1, keepdims=True))

    def _row(self, point: Point) -> list[float]:
        h, e = point.local_steps / self.h, point.edge_rounds / self.e
        row = [1 / (h * e), 1.0, h, e]
        if self.factor == "clients":
            row.append(self.k / (point.clients or self.k))
        if self.factor == "shares":
            row.append(point.largest)
        if self.factor == "snr_db":
            row.append(point.noise)
        return row


def _centre(values: Sequence[int]) -> float:
    return math.sqrt(min(values) * max(values))


def _added(
    chosen: Sequence[Point], candidates: Sequence[Point], count: int, terms: _Terms
) -> list[Point]:
    """The chosen points and ``count`` more, each with the largest increase of det(X'X)."""
    points = list(chosen)
    for _ in range(count):
        rest = [point for point in candidates if point not in points]
        if not rest:
            break
        others = terms.rows(rest)
        information = RIDGE * np.eye(others.shape[1])
        if points:
            rows = terms.rows(points)
            information += rows.T @ rows
        # det(A + x x') = det(A) (1 + x' A^-1 x)
        gains = np.einsum("ij,ij->i", others, np.linalg.solve(information, others.T).T)
        # Rounded, so that the choice does not depend on the order of sums.
        points.append(rest[int(np.argmax(np.round(gains, 9)))])
    return points
