"""Texts of tables: Markdown, means over seeds, costs until a target, best values of a setting."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from wirelessfl.divergence import counted
from wirelessfl.results.seeds import first_reaching

MISSING = "not reached"
EDGE = "edge of the grid"
"""Mark of a best value without tried values on both sides: a better one may lie beyond."""


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def reached(
    seeds: Sequence[list[dict[str, Any]]],
    accuracy: float,
    quantity: str,
    form: str = ".1f",
    tests: int = 1,
) -> str:
    """``quantity`` when ``accuracy`` is first reached: mean, and range or number of successes.

    If only some seeds reach it, the mean is a bound: the others count with their whole cost.
    ``tests`` is the number of tests that are averaged, see ``place_reaching``.
    """
    hits = [first_reaching(rows, accuracy, tests) for rows in seeds]
    values = [hit[quantity] for hit in hits if hit is not None]
    if not values:
        return MISSING
    ends = [rows[-1] if hit is None else hit for rows, hit in zip(seeds, hits, strict=True)]
    mean = statistics.mean(end[quantity] for end in ends)
    shown = format(mean, form if form != "d" else ".0f")
    if len(values) < len(seeds):
        return f"at least {shown} ({len(values)} of {len(seeds)} seeds)"
    if len(values) == 1:
        return shown
    return f"{shown} ({min(values):{form}} to {max(values):{form}})"


def at_edge(best: Any, tried: Iterable[Any]) -> bool:
    """Whether the best of several numbers is the smallest or the largest that was tried.

    >>> at_edge(0.1, [0.01, 0.1, 0.03]), at_edge(0.03, [0.01, 0.1, 0.03]), at_edge(0.1, [0.1])
    (True, False, False)

    Args:
        best: the best value of a setting.
        tried: all values that were tried, in any order; without several numbers, there is no grid.
    """
    values = {one for one in tried if isinstance(one, int | float) and not isinstance(one, bool)}
    return len(values) > 1 and best in (min(values), max(values))


def with_edge(text: str, best: Any, tried: Iterable[Any]) -> str:
    """The text of a best value, marked if it is at the edge of what was tried; see ``at_edge``."""
    return f"{text} ({EDGE})" if at_edge(best, tried) else text


def accuracies(seeds: Sequence[list[dict[str, Any]]], marks: Sequence[int]) -> str:
    """Mean accuracy in percent after each of these rounds."""
    shown = []
    for mark in marks:
        values = [counted(row) for rows in seeds for row in rows if row["round"] == mark]
        shown.append(f"{100 * statistics.mean(values):.1f}" if values else "-")
    return " / ".join(shown)


def spread(values: Sequence[float], places: int = 1) -> str:
    """Format mean and, for several values, sample standard deviation; a dash for no values."""
    if not values:
        return "-"
    mean = f"{statistics.mean(values):.{places}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{places}f}"
