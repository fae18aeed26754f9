"""Final accuracies and costs until a target over seeds, as numbers and texts of tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from wirelessfl.base.figures.marks import AtLeast, mean_or_bound, missed
from wirelessfl.base.rows import as_mean_value, has_diverged
from wirelessfl.runs.targets import cost_to

MISSING = "not reached"
EDGE = "edge of the grid"
"""Mark of a best value without tried values on both sides: a better one may lie beyond."""


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


LAST = 5
"""Number of tests averaged for a final accuracy, because single tests vary by points."""


def final_accuracy(rows: Sequence[dict[str, Any]], count: int = LAST) -> float:
    """Mean test accuracy of the last ``count`` tests in percent, without the initial model's.

    A model that diverged in one of them has no final accuracy: nan.
    """
    return 100 * statistics.mean(map(as_mean_value, rows[1:][-count:]))


def best_accuracy(rows: Iterable[dict[str, Any]]) -> float:
    """The highest accuracy of a test in [0, 1], of a model that has not diverged."""
    return max(float(row["accuracy"]) for row in rows if not has_diverged(row))


def rank_of(finals: Sequence[float]) -> float:
    """Mean over the seeds, by which settings are chosen; minus infinity if a seed diverged."""
    mean = statistics.mean(finals)
    return -math.inf if math.isnan(mean) else mean


def reached(
    seeds: Sequence[list[dict[str, Any]]],
    accuracy: float,
    quantity: str,
    form: str = ".1f",
    tests: int = 1,
) -> str:
    """``quantity`` when ``accuracy`` is first reached: mean, and range or number of successes.

    If only some seeds reach it, the mean is a bound: the others count with their whole cost.
    ``tests`` is the number of tests that are averaged, see ``cost_to``.
    """
    ends = [cost_to(rows, accuracy, tests) for rows in seeds]
    costs = [end.row[quantity] if end.reached else AtLeast(end.row[quantity]) for end in ends]
    return cost_text(costs, form)


def cost_text(costs: Sequence[float | None], form: str = ".1f") -> str:
    """Mean and range of the seeds' costs until a target; a bound and how many reach it, if not all.

    >>> cost_text([1.0, 3.0]), cost_text([1.0, AtLeast(9.0)]), cost_text([1.0, None])
    ('2.0 (1.0 to 3.0)', 'at least 5.0 (1 of 2 seeds)', 'at least 1.0 (1 of 2 seeds)')

    Args:
        costs: by seed; ``AtLeast`` or None for one that misses the target, see ``mean_or_bound``.
        form: format of a cost.
    """
    mean = mean_or_bound(costs)
    if mean is None:
        return MISSING
    shown = format(mean, form if form != "d" else ".0f")
    hits = [cost for cost in costs if cost is not None and not missed(cost)]
    if len(hits) < len(costs):
        return f"at least {shown} ({len(hits)} of {len(costs)} seeds)"
    return shown if len(hits) == 1 else f"{shown} ({min(hits):{form}} to {max(hits):{form}})"


def at_edge(best: Any, tried: Iterable[Any]) -> bool:
    """Whether the best of several numbers is the smallest or the largest that was tried.

    >>> at_edge(0.1, [0.01, 0.1, 0.03]), at_edge(0.03, [0.01, 0.1, 0.03]), at_edge(0.1, [0.1])
    (True, False, False)

    Args:
        best: the best value of a setting.
        tried: all values that were tried, in any order; without several numbers, there is no grid.
    """
    values = {
        value for value in tried if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return len(values) > 1 and best in (min(values), max(values))


def with_edge(text: str, best: Any, tried: Iterable[Any]) -> str:
    """The text of a best value, marked if it is at the edge of what was tried; see ``at_edge``."""
    return f"{text} ({EDGE})" if at_edge(best, tried) else text


def accuracies(seeds: Sequence[list[dict[str, Any]]], marks: Sequence[int]) -> str:
    """Mean accuracy in percent after each of these rounds, see ``spread``."""
    shown = []
    for mark in marks:
        rows = [row for seed in seeds for row in seed if row["round"] == mark]
        finite = [as_mean_value(row) for row in rows if not has_diverged(row)]
        mean = f"{100 * statistics.mean(finite):.1f}" if finite else "-" if not rows else ""
        shown.append(_counted(mean, len(rows) - len(finite), len(rows)))
    return " / ".join(shown)


def spread(values: Sequence[float], places: int = 1) -> str:
    """Format mean and, for several values, sample standard deviation; a dash for no values.

    Values of diverged seeds (nan) are counted instead.

    >>> spread([80.0, 82.0]), spread([80.0, 82.0, math.nan]), spread([math.nan])
    ('81.0 ± 1.4', '81.0 ± 1.4 (1 of 3 seeds diverged)', 'diverged')
    """
    finite = [value for value in values if not math.isnan(value)]
    text = f"{statistics.mean(finite):.{places}f}" if finite else "-" if not values else ""
    if len(finite) > 1:
        text += f" ± {statistics.stdev(finite):.{places}f}"
    return _counted(text, len(values) - len(finite), len(values))


def _counted(mean: str, diverged: int, seeds: int) -> str:
    """A mean with the number of diverged seeds, which it leaves out."""
    if not diverged:
        return mean
    return f"{mean} ({diverged} of {seeds} seeds diverged)" if mean else "diverged"
