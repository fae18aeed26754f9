"""Measures of stored runs: costs to a target accuracy, accuracies, oscillations."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from experiments.evidence import by_seed
from experiments.hist.air import longest, simulated_seconds
from experiments.hist.figures import TARGET
from experiments.studies import Case, Results
from wirelessfl.base.rows import as_mean_value
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import final_accuracy
from wirelessfl.results.intervals import CostToTarget
from wirelessfl.runs.targets import cost_to

T = TypeVar("T")
SWAY = 10
"""Number of rounds over which oscillations are measured."""


def costs(
    results: Results, quantity: str, target: float = TARGET, **settings: Any
) -> dict[int, CostToTarget]:
    """``quantity`` to the target accuracy by seed, for the only case with these settings."""
    return by_seed(results, lambda run: cost_to(run.rows, target).of(quantity), **settings)


def over_oma(results: Results, algorithm: str, snr: float) -> dict[int, CostToTarget]:
    """Seconds to 80 % over OMA by seed, at an SNR; training does not depend on it."""

    def seconds(case: Case, run: StoredRun) -> CostToTarget:
        rounds = cost_to(run.rows, TARGET).of("round")
        return CostToTarget(
            simulated_seconds(case, run.seed, snr, int(rounds.cost)), rounds.reached
        )

    merged = longest(results)
    cases = merged.where(algorithm=algorithm, uplink="tdma")
    return {run.seed: seconds(case, run) for case in cases for run in merged.of(case)}


def throughout(run: StoredRun) -> float:
    """Mean accuracy of all rounds, in percent."""
    return final_accuracy(run.rows, len(run.rows))


def sway(run: StoredRun) -> float:
    """Standard deviation of the accuracy over the last rounds, in points."""
    return statistics.stdev(100 * as_mean_value(row) for row in run.rows[1:][-SWAY:])


def by_cap(
    results: Results, slowdown: int, caps: Sequence[float], of: Callable[[StoredRun], T]
) -> tuple[dict[int, T], dict[float, dict[int, T]]]:
    """A value by seed with uniform masks, and with optimized ones by cap."""
    uniform = by_seed(results, of, mask_sizes="uniform", slowdown=slowdown)
    optimized = {
        cap: by_seed(results, of, mask_sizes="optimized", slowdown=slowdown, size_cap=cap)
        for cap in caps
    }
    return uniform, optimized
