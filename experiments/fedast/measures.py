"""Measures from rows of several tasks: times to targets, staleness, final values, curves."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments.fedast.tasks import Goal, names, target
from experiments.studies import Case, Results
from wirelessfl.base.figures.marks import AtLeast, missed
from wirelessfl.base.rows import as_mean_value
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import LAST
from wirelessfl.runs.targets import cost_to

Rows = list[dict[str, Any]]


def to_target(
    results: Results,
    case: Case,
    name: str,
    quantity: str = "sim_seconds",
    goal: Goal = None,
    tests: int = 1,
) -> list[float | None]:
    """For each seed, ``quantity`` when a task first reaches its target.

    A run that does not reach it has its end as a bound (``AtLeast``). ``goal`` gives the targets,
    and ``tests`` the number of tests that are averaged, see ``cost_to``.
    """
    accuracy = target(case, name, goal)
    costs = [cost_to(run.rows_of(name), accuracy, tests).of(quantity) for run in results.of(case)]
    return [until.cost if until.reached else AtLeast(until.cost) for until in costs]


def to_end(results: Results, case: Case) -> list[float | None]:
    """For each seed, the time when the last task reaches its target; see ``to_target``."""
    return _over_tasks([to_target(results, case, name) for name in names(case)], max)


def to_mean(results: Results, case: Case, goal: Goal = None, tests: int = 1) -> list[float | None]:
    """For each seed, the mean over the tasks of the times when they reach their targets.

    If a task does not reach its target, the mean is a bound.
    """
    by_task = [to_target(results, case, name, goal=goal, tests=tests) for name in names(case)]
    return _over_tasks(by_task, statistics.mean)


def _over_tasks(
    by_task: list[list[float | None]], how: Callable[[list[float]], float]
) -> list[float | None]:
    costs: list[float | None] = []
    for values in zip(*by_task, strict=True):
        together = how([value for value in values if value is not None])
        costs.append(AtLeast(together) if any(map(missed, values)) else together)
    return costs


def mean(values: Sequence[float | None]) -> float | None:
    """The mean; None if a seed misses the target or there are no values."""
    reached = [value for value in values if value is not None and not missed(value)]
    return statistics.mean(reached) if reached and len(reached) == len(values) else None


def gain(base: Sequence[float | None], seconds: Sequence[float | None]) -> float | None:
    """(T_base - T) / T_base for means T over the seeds; None if a seed did not reach the target."""
    slow, fast = mean(base), mean(seconds)
    return None if slow is None or fast is None or slow == 0 else (slow - fast) / slow


def fastest(results: Results, cases: Sequence[Case]) -> Case:
    """The case with the shortest mean time to all targets; the first case if none reaches them.

    Cases with fewer seeds than the others, such as those of a search, are left out.
    """
    most = max(len(results.of(case)) for case in cases)

    def seconds(case: Case) -> float:
        end = mean(to_end(results, case))
        return float("inf") if end is None else end

    return min((case for case in cases if len(results.of(case)) == most), key=seconds)


def compared(results: Results, against: str) -> list[Case]:
    """FedAST (D), and the ``sync-st`` with the best division of clients or the ``static`` option.

    Args:
        results: results of the study.
        against: ``sync-st`` or ``static``.
    """
    cases = results.where()
    ours = [case for case in cases if case["option"] == "D"]
    if against == "static":
        return [*ours, *(case for case in cases if case["option"] == "S")]
    divided = [case for case in cases if case["algorithm"] == "sync-st" and case["first"] != 0]
    return [*ours, *([fastest(results, divided)] if divided else [])]


def final(
    results: Results, case: Case, quantity: str = "accuracy", of: Sequence[str] | None = None
) -> list[float]:
    """For each seed, the mean of ``quantity`` over the last rows of all tasks, or of some.

    It is nan if one of these tasks has diverged.
    """
    accuracies = []
    for run in results.of(case):
        rows = [row for name in of or names(case) for row in run.rows_of(name)[-LAST:]]
        accuracies.append(statistics.mean(as_mean_value(row, quantity) for row in rows))
    return accuracies


def staleness(results: Results, case: Case) -> tuple[float, int] | None:
    """Mean and maximum staleness over all merged updates; None if nothing was merged."""
    total, count, max_staleness = 0.0, 0, 0
    for run in results.of(case):
        for name in names(case):
            before = 0
            for row in run.rows_of(name):
                # A row covers the merges since the previous row; each merges a buffer of updates.
                merged = (row["version"] - before) * row["buffer"]
                before = row["version"]
                total, count = total + row["staleness_mean"] * merged, count + merged
                max_staleness = max(max_staleness, row["staleness_max"])
    return (total / count, max_staleness) if count else None


def curves(results: Results, case: Case, of: Sequence[str] | None = None) -> list[Rows]:
    """For each seed, accuracy and loss against simulated time: means over the tasks.

    A finished task keeps its last value until all tasks of its run have finished.

    Args:
        results: results of the study.
        case: the case.
        of: names of tasks; None for all.
    """
    return [_held(run, list(of or names(case))) for run in results.of(case)]


def _held(run: StoredRun, tasks: list[str]) -> Rows:
    times = np.unique([row["sim_seconds"] for row in run.rows if row["task"] in tasks])
    held = [{"sim_seconds": float(time)} for time in times]
    for field in ("accuracy", "loss"):
        values = []
        for task in tasks:
            rows = run.rows_of(task)
            at = np.searchsorted([row["sim_seconds"] for row in rows], times, "right") - 1
            values.append(np.array([as_mean_value(row, field) for row in rows])[at])
        for row, mean in zip(held, np.mean(values, axis=0), strict=True):
            row[field] = float(mean)
    return held
