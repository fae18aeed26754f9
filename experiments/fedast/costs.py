"""Costs and final accuracies of a study's cases by seed, from which claims are judged."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from experiments.evidence import Costs, Reached
from experiments.fedast.measures import Rows, final, sustaining
from experiments.fedast.tables import fastest
from experiments.fedast.tasks import kinds, names, shares, target
from experiments.stored import StoredRun
from experiments.studies import Case, Results, first_reaching


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
    results: Results, kind: str, count: int, sustained: bool = False
) -> tuple[Costs, Costs]:
    """Mean seconds over ``count`` tasks of a data set, Sync-ST and FedAST."""
    of = [c for c in results.study.cases if kinds(c) == (kind,) and len(names(c)) == count]
    cases = (first_of(of, algorithm=name) for name in ("sync-st", "fedast"))
    slow, fast = (costs(results, case, over=statistics.mean, sustained=sustained) for case in cases)
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
    level: str | None = None,
    over: Callable[[Iterable[float]], float] = max,
    sustained: bool = False,
) -> dict[int, Reached]:
    """By seed, ``quantity`` until tasks reach their targets.

    Args:
        results: results of the study.
        case: the case; None for no runs.
        tasks: names of tasks; None for all.
        quantity: field of rows.
        level: level of the targets; None for that of the runs.
        over: combines the tasks.
        sustained: whether the mean accuracy of several tests in a row must be the target, see
            ``measures.sustaining``.
    """
    found = {}
    for run in stored(results, case):
        assert case is not None
        find = sustaining if sustained else first_reaching
        ends = [_cost(run, case, name, quantity, level, find) for name in tasks or names(case)]
        cost = over([end.cost for end in ends])
        found[run.seed] = Reached(float(cost), all(end.reached for end in ends))
    return found


def _cost(
    run: StoredRun,
    case: Case,
    name: str,
    quantity: str,
    level: str | None,
    find: Callable[[Rows, float], dict[str, Any] | None],
) -> Reached:
    rows = run.rows_of(name)
    hit = find(rows, target(case, name, level))
    return Reached(float((hit or rows[-1])[quantity]), hit is not None)


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


def all_of(cases: Iterable[Case], **wanted: Any) -> list[Case]:
    """The cases with these settings."""
    return [case for case in cases if all(case[k] == v for k, v in wanted.items())]


def first_of(cases: Iterable[Case], **wanted: Any) -> Case | None:
    """The first case with these settings; None if there is none."""
    return next(iter(all_of(cases, **wanted)), None)
