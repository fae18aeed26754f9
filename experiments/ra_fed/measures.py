"""What the rows say: final accuracy, coverage, and what a target costs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from experiments.ra_fed.methods import METHODS, OTHERS, share
from experiments.studies import Case, Results

Rows = Sequence[dict[str, Any]]
LAST = 5
"""Tests whose mean is the final accuracy: with unlike clients single ones swing by points."""
SAME = ("dataset", "split", "alpha", "shards", "model")
"""What cases of one panel have in common."""


def final(rows: Rows) -> float:
    """Mean accuracy of the last tests, in percent; the model that a run begins with is none."""
    return 100 * statistics.mean(row["accuracy"] for row in rows[1:][-LAST:])


def finals(results: Results, case: Case) -> list[float]:
    """Final accuracy of each seed, in percent."""
    return [final(rows) for rows in results.rows(case)]


def best(results: Results, case: Case) -> float:
    """Best accuracy of any test, in percent, mean over the seeds."""
    seeds = results.rows(case)
    return 100 * statistics.mean(max(row["accuracy"] for row in rows) for rows in seeds)


def coverage(rows: Rows) -> tuple[int, float] | None:
    """Gamma* and the mean share of uncovered coordinates, of the rounds that have a row.

    None where clients train the full model.
    """
    covered = [row for row in rows if "coverage" in row]
    if not covered:
        return None
    min_coverage = min(int(row["coverage"]) for row in covered)
    return min_coverage, statistics.mean(float(row["uncovered"]) for row in covered)


def round_seconds(rows: Rows, limit: float | None = None) -> float:
    """Mean seconds of a round; a row at the limit is in the middle of one."""
    whole = [row for row in rows if row["round"] and (limit is None or row["sim_seconds"] < limit)]
    return float(whole[-1]["sim_seconds"] / whole[-1]["round"])


def panels(results: Results) -> dict[tuple[Any, ...], list[Case]]:
    """Cases by data set, split and model."""
    found: dict[tuple[Any, ...], list[Case]] = {}
    for case in results.where():
        found.setdefault(tuple(case[key] for key in SAME), []).append(case)
    return found


def gains(
    results: Results, method: str, others: Sequence[str] = OTHERS
) -> list[tuple[Case, float]]:
    """Final accuracy of a method over the best of others, in points, of each setting with all.

    A setting is a panel and what clients can afford; of the seeds, those count that all have. Full
    submodels are left out: there is nothing to choose.
    """
    found = []
    for cases in panels(results).values():
        of = {(case["algorithm"], share(case)): case for case in cases}
        for affordable in dict.fromkeys(share(case) for case in cases):
            group = [of.get((name, affordable)) for name in (method, *others)]
            known = [case for case in group if case is not None]
            if affordable == "1" or len(known) < len(group):
                continue
            seeds = list(zip(*(finals(results, case) for case in known), strict=False))
            mine, *theirs = (statistics.mean(values) for values in zip(*seeds, strict=True))
            found.append((known[0], mine - max(theirs)))
    return found


def in_order(cases: Sequence[Case]) -> list[Case]:
    """By method, FedAvg first."""
    places = ("fedavg", *METHODS)
    return sorted(cases, key=lambda case: places.index(case["algorithm"]))
