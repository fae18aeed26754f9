"""Costs of stored runs to a target, by seed, which claims compare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments.fadamgc.tables import TARGETS
from experiments.studies import Case, Results
from wirelessfl.results.archive import StoredRun
from wirelessfl.runs.targets import CostToTarget, cost_to

COMMUNICATION = "communication"
"""Simulated seconds without local steps, which take a tenth of them or less in the paper, and as
much or more with the small models of our runs."""
TESTS = 5
"""Evaluations that are averaged in studies that evaluate every round."""


def costs(
    results: Results,
    cases: Iterable[Case],
    quantity: str = "round",
    tests: int = 1,
    target: float | None = None,
    every: int = 1,
    **settings: Any,
) -> dict[int, CostToTarget]:
    """By seed, a cost until the target, for the only one of these cases with these settings.

    ``quantity`` is a field of rows, or ``COMMUNICATION``; ``tests`` is the number of evaluations
    that are averaged, see ``cost_to``. Without ``target``, it is that of the data set.
    Only rows of rounds that ``every`` divides count.
    """
    same = [case for case in cases if case.matches(settings)]
    if len(same) > 1:
        raise ValueError(f"{len(same)} cases of {results.study.name} have {settings}: give more.")
    return {
        run.seed: cost_to(
            [row for row in _timed(run, case) if row["round"] % every == 0],
            target or TARGETS[case["dataset"]],
            tests,
        ).of(quantity)
        for case in same
        for run in results.of(case)
    }


def _timed(run: StoredRun, case: Case) -> list[dict[str, Any]]:
    """The rows of a run, with the seconds of communication so far."""
    computing = case["local_steps"] * case["step_seconds"]
    return [
        row | {COMMUNICATION: row["sim_seconds"] - row["round"] * computing} for row in run.rows
    ]


def grouped(cases: Iterable[Case], *settings: str) -> dict[Any, list[Case]]:
    """Cases by the value of a setting, or by those of several."""
    groups: dict[Any, list[Case]] = {}
    for case in cases:
        values = tuple(case[name] for name in settings)
        groups.setdefault(values if len(values) > 1 else values[0], []).append(case)
    return groups
