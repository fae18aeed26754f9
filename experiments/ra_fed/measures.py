"""Measures from rows: final accuracy, coverage, and the duration of rounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from experiments.evidence import final_by_seed
from experiments.ra_fed.methods import METHODS, OTHERS, REFERENCE, share
from experiments.studies import Case, Results
from wirelessfl.base.rows import has_diverged
from wirelessfl.results.costs import best_accuracy, final_accuracy, rank_of

Rows = Sequence[dict[str, Any]]
SAME = ("dataset", "split", "alpha", "shards", "model")
"""Settings shared by the cases of a panel."""


def best(results: Results, case: Case) -> float:
    """Best accuracy of any test in percent, mean over the seeds."""
    return 100 * statistics.mean(map(best_accuracy, results.rows(case)))


DAGGER = "†"
"""Mark of a run that diverged, see ``diverged``."""
DROP = 15.0
"""Points below its best test from which the end of a run counts as diverged."""


def diverged(results: Results, case: Case) -> int:
    """Number of seeds that diverged, or whose final accuracy is far below their best."""
    return sum(
        any(map(has_diverged, rows)) or final_accuracy(rows) <= 100 * best_accuracy(rows) - DROP
        for rows in results.rows(case)
    )


def coverage(rows: Rows) -> tuple[int, float] | None:
    """Gamma* and the mean fraction of uncovered coordinates, over the rounds that have a row.

    None if clients train the full model.
    """
    covered = [row for row in rows if "coverage" in row]
    if not covered:
        return None
    min_coverage = min(int(row["coverage"]) for row in covered)
    return min_coverage, statistics.mean(float(row["uncovered"]) for row in covered)


def coverage_of(results: Results, case: Case) -> tuple[int, float] | None:
    """Gamma* over all seeds, and the mean share of uncovered coordinates in percent.

    None if clients train the full model.
    """
    values = [one for rows in results.rows(case) if (one := coverage(rows)) is not None]
    if not values:
        return None
    return min(least for least, _ in values), 100 * statistics.mean(part for _, part in values)


def round_seconds(rows: Rows, limit: float | None = None) -> float:
    """Mean seconds per round; a row written at the time limit, during a round, is ignored."""
    whole = [row for row in rows if row["round"] and (limit is None or row["sim_seconds"] < limit)]
    return float(whole[-1]["sim_seconds"] / whole[-1]["round"])


def panels(results: Results) -> dict[tuple[Any, ...], list[Case]]:
    """Cases by data set, split and model."""
    by_setting: dict[tuple[Any, ...], list[Case]] = {}
    for case in results.where():
        by_setting.setdefault(tuple(case[key] for key in SAME), []).append(case)
    return by_setting


def gains(
    results: Results, method: str, others: Sequence[str] = OTHERS
) -> list[tuple[Case, float]]:
    """Final accuracy of a method minus the best of the others, in points; see ``gains_by_seed``.

    Diverged seeds are left out. Where all of them diverged, it is minus infinity, for medians and
    signs.
    """
    by_seed = gains_by_seed(results, method, others)
    finite = [(case, [s for s in seeds if not math.isnan(s)]) for case, seeds in by_seed]
    return [(case, statistics.mean(seeds) if seeds else -math.inf) for case, seeds in finite]


def gains_by_seed(
    results: Results, method: str, others: Sequence[str] = OTHERS
) -> list[tuple[Case, list[float]]]:
    """Final accuracy of a method minus that of the best other one, for each setting and seed.

    A setting is a panel and a capacity for which all methods have runs; only common seeds count.
    The best other method has the highest mean over these seeds, and has not diverged. Full
    submodels are omitted, because all methods then train the same model.
    """
    rows = []
    for cases in panels(results).values():
        of = {(case["algorithm"], share(case)): case for case in cases}
        for affordable in dict.fromkeys(share(case) for case in cases):
            group = [of.get((name, affordable)) for name in (method, *others)]
            present = [case for case in group if case is not None]
            if affordable == "1" or len(present) < len(group):
                continue
            mine, *theirs = (final_by_seed(results, case) for case in present)
            seeds = [seed for seed in mine if all(seed in one for one in theirs)]
            if not seeds:
                continue
            best = max(theirs, key=lambda one: rank_of([one[seed] for seed in seeds]))
            rows.append((present[0], [mine[seed] - best[seed] for seed in seeds]))
    return rows


def in_order(cases: Sequence[Case]) -> list[Case]:
    """Sort by method, FedAvg first."""
    places = (REFERENCE, *METHODS)
    return sorted(cases, key=lambda case: places.index(case["algorithm"]))
