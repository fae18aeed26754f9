"""What rows say about a run: its final accuracy, and where it reaches a target."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wirelessfl.divergence import as_mean_value
from wirelessfl.runs.monitor import Monitor

LAST = 5
"""Number of tests averaged for a final accuracy, because single tests vary by points."""


def monitored(row: Mapping[str, Any]) -> float:
    """The score of a row: its accuracy, on validation samples if there are any; else its loss."""
    return Monitor.of(None, row).score(row)


def final_accuracy(rows: Sequence[dict[str, Any]], count: int = LAST) -> float:
    """Mean test accuracy of the last ``count`` tests in percent, without the initial model's.

    Tests of a diverged model count as 0.
    """
    return 100 * statistics.mean(map(as_mean_value, rows[1:][-count:]))


def place_reaching(
    rows: Sequence[dict[str, Any]],
    target: float,
    tests: int = 1,
    score: Callable[[Mapping[str, Any]], float] = monitored,
) -> int | None:
    """Where the mean score of the last tests is first at least ``target``.

    Args:
        rows: rows of a run or of one of its tasks.
        target: the target, e.g. an accuracy in [0, 1].
        tests: number of tests that are averaged, because a single one may reach the target by
            chance.
        score: the score of a row; by default its accuracy, on validation samples if there are any.

    Returns:
        Index of the row of the last of these tests; None if there is none.
    """
    if tests == 1:
        return next((i for i, row in enumerate(rows) if score(row) >= target), None)
    found: list[float] = []
    for place, row in enumerate(rows):
        found.append(score(row))
        if place + 1 >= tests and math.fsum(found[-tests:]) / tests >= target:
            return place
    return None


def first_reaching(
    rows: Sequence[dict[str, Any]], accuracy: float, tests: int = 1
) -> dict[str, Any] | None:
    """The row at ``place_reaching``; None if there is none."""
    place = place_reaching(rows, accuracy, tests)
    return None if place is None else rows[place]
