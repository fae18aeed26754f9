"""Costs and final accuracies of a study's cases by seed, from which claims are judged."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from experiments.fedast.measures import fastest, final
from experiments.fedast.tasks import Goal, kinds, names, shares, target
from experiments.studies import Case, Results
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.intervals import Costs
from wirelessfl.runs.targets import CostToTarget, cost_to


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


def stored(results: Results, case: Case | None) -> list[StoredRun]:
    """The finished runs of a case; none for None."""
    return [] if case is None else results.of(case)


def all_of(cases: Iterable[Case], **settings: Any) -> list[Case]:
    """The cases with these settings."""
    return [case for case in cases if case.matches(settings)]


def first_of(cases: Iterable[Case], **settings: Any) -> Case | None:
    """The first case with these settings; None if there is none."""
    return next(iter(all_of(cases, **settings)), None)
