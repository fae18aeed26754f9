"""Measures from rows of several tasks: costs to targets, staleness, final values, curves."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from experiments.comparison import most_finished
from experiments.fedast.tasks import Goal, kinds, names, shares, target
from experiments.studies import Case, Results
from wirelessfl.base.figures.marks import AtLeast, missed
from wirelessfl.base.rows import as_mean_value
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import LAST
from wirelessfl.results.intervals import Costs
from wirelessfl.runs.targets import CostToTarget, cost_to

Rows = list[dict[str, Any]]


def costs(
    results: Results,
    case: Case | None,
    tasks: Sequence[str] | None = None,
    *,
    quantity: str = "sim_seconds",
    goal: Goal = None,
    over: Callable[[Iterable[float]], float] = max,
    tests: int = 1,
) -> dict[int, CostToTarget]:
    """By seed, ``quantity`` until tasks reach their targets.

    Args:
        results: results of the study.
        case: the case; None for no runs.
        tasks: names of tasks; None for all.
        quantity: field of rows.
        goal: the targets.
        over: combines the tasks.
        tests: number of tests that are averaged, see ``cost_to``.
    """
    by_seed = {}
    for run in stored(results, case):
        assert case is not None
        ends = [
            cost_to(run.rows_of(name), target(case, name, goal), tests).of(quantity)
            for name in tasks or names(case)
        ]
        cost = float(over([end.cost for end in ends]))
        before = float(over([end.cost if end.before is None else end.before for end in ends]))
        by_seed[run.seed] = CostToTarget(cost, all(end.reached for end in ends), before)
    return by_seed


def to_target(
    results: Results,
    case: Case,
    name: str,
    quantity: str = "sim_seconds",
    goal: Goal = None,
    tests: int = 1,
) -> list[float | None]:
    """``costs`` of one task to be drawn: for each seed, or as a bound (``AtLeast``)."""
    return _drawn(costs(results, case, [name], quantity=quantity, goal=goal, tests=tests))


def to_end(results: Results, case: Case) -> list[float | None]:
    """For each seed, the time when the last task reaches its target; see ``to_target``."""
    return _drawn(costs(results, case))


def to_mean(results: Results, case: Case, goal: Goal = None, tests: int = 1) -> list[float | None]:
    """For each seed, the mean over the tasks of the times when they reach their targets.

    If a task does not reach its target, the mean is a bound.
    """
    return _drawn(costs(results, case, over=statistics.mean, goal=goal, tests=tests))


def _drawn(by_seed: dict[int, CostToTarget]) -> list[float | None]:
    return [one.cost if one.reached else AtLeast(one.cost) for one in by_seed.values()]


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

    def seconds(case: Case) -> float:
        end = mean(to_end(results, case))
        return float("inf") if end is None else end

    return min(most_finished(results, cases), key=seconds)


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


def finals(
    results: Results, case: Case | None, tasks: Sequence[str] | None = None
) -> dict[int, float]:
    """By seed, the final accuracy in percent, mean over these or all tasks."""
    runs = stored(results, case)
    if not runs:
        return {}
    assert case is not None
    values = final(results, case, of=tasks)
    return {run.seed: 100 * value for run, value in zip(runs, values, strict=True)}


def method(
    results: Results, name: str, option: str = "S", *, mitigated: bool = True
) -> Case | None:
    """The case of a method that divides clients evenly; None if the study has none."""
    cases = [
        case
        for case in results.study.cases
        if shares(case) is None and (case["option"] or "S") == option
    ]
    return next((c for c in all_of(cases, algorithm=name) if (c["first"] != 0) == mitigated), None)


def identical(
    results: Results, kind: str, count: int, goal: Goal = None, tests: int = 1
) -> tuple[Costs, Costs]:
    """Mean seconds over ``count`` tasks of a data set, Sync-ST and FedAST; see ``costs``."""
    of = [c for c in results.study.cases if kinds(c) == (kind,) and len(names(c)) == count]
    cases = (first_of(of, algorithm=name) for name in ("sync-st", "fedast"))
    slow, fast = (
        costs(results, case, over=statistics.mean, goal=goal, tests=tests) for case in cases
    )
    return slow, fast


def dynamic_and_sync(results: Results) -> tuple[Costs, Costs]:
    """Seconds to all targets of the fastest Sync-ST with mitigation, and of FedAST (D)."""
    cases = [c for c in all_of(results.study.cases, algorithm="sync-st") if c["first"] != 0]
    sync = fastest(results, cases) if cases else None
    return costs(results, sync), costs(results, method(results, "fedast", "D"))


def stored(results: Results, case: Case | None) -> list[StoredRun]:
    """The finished runs of a case; none for None."""
    return [] if case is None else results.of(case)


def all_of(cases: Iterable[Case], **settings: Any) -> list[Case]:
    """The cases with these settings."""
    return [case for case in cases if case.matches(settings)]


def first_of(cases: Iterable[Case], **settings: Any) -> Case | None:
    """The first case with these settings; None if there is none."""
    return next(iter(all_of(cases, **settings)), None)


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
