"""Effects behind the claims of the dynamic-clients paper, see ``claims.toml``.

A row of a table is a setting, an algorithm and a transition. Accuracies are means over the first
ten rounds after the transition, in percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from experiments.dynamic_clients import published
from experiments.dynamic_clients.measures import SAME, after_by_seed, gain, last
from experiments.dynamic_clients.methods import SHOWN
from experiments.dynamic_clients.tables import paper_of
from experiments.evidence import Evidence, mean_by_seed
from experiments.studies import Case, Results
from wirelessfl.results.intervals import Effect, difference
from wirelessfl.results.selection import NAMES
from wirelessfl.theory.dynamic_clients import (
    RoundConstants,
    gradient_norm_bound,
    largest_step_size,
)


def published_rows(
    evidence: Evidence,
    *,
    table: int,
    over: Sequence[str],
    least: float,
    equal: bool = False,
    algorithms: Sequence[str] = (),
    study: str = "",
) -> list[Effect]:
    """Mean gain of Proposed over each baseline, on the paper's rows that a study plans.

    Args:
        evidence: the runs.
        table: number of the table. A data set that it lacks takes the place of its first one.
        over: the baselines.
        least: the least gain that counts.
        equal: whether the claim is that there is none.
        algorithms: one effect for each; empty for means over all.
        study: name of the study; empty for that of the table.
    """
    results = evidence.study(study or f"table{table}")
    effects = []
    for one in over:
        for algorithm in algorithms or (None,):
            parts = [SHOWN[one]] * (len(over) > 1)
            parts += [NAMES[str(algorithm)]] if len(algorithms) > 1 else []
            gains = _gains(results, one, table, algorithm=algorithm)
            effects.append(_mean(", ".join(parts), gains, least, equal=equal))
    return effects


def reproduced(
    evidence: Evidence, *, table: int, start: str, algorithm: str, within: float
) -> list[Effect]:
    """Accuracy of a warm start minus that printed, mean over the paper's rows that are planned."""
    results, rows = evidence.study(f"table{table}"), []
    for case in results.study.cases:
        if (case["algorithm"], case["warm_start"]) != (algorithm, start):
            continue
        for number in _transitions(table, case):
            printed = paper_of(table, case, number)
            if printed is not None:
                accuracies = after_by_seed(results, case, number)
                rows.append({seed: value - printed.mean for seed, value in accuracies.items()})
    return [_mean("", rows, within, equal=True)]


def all_rows(
    evidence: Evidence,
    *,
    study: str,
    over: Sequence[str],
    transitions: Sequence[int],
    least: float,
) -> list[Effect]:
    """Mean gain of Proposed over each of ``over``, on all rows of a study with stand-in data."""
    results = evidence.study(study)
    return [
        _mean(
            SHOWN[one] if len(over) > 1 else "",
            _gains(results, one, numbers=transitions),
            least,
        )
        for one in over
    ]


def flat_in_scale(
    evidence: Evidence, *, low: float, high: float, transitions: Sequence[int], least: float
) -> list[Effect]:
    """Accuracy with R = ``high`` minus that with ``low``, mean over the transitions (Table 13)."""
    results = evidence.study("table13")
    effects = []
    for algorithm in dict.fromkeys(case["algorithm"] for case in results.study.cases):
        ends = []
        for scale in (high, low):
            rows = [
                after_by_seed(results, case, number)
                for case in results.where(algorithm=algorithm, similarity_scale=scale)
                for number in transitions
            ]
            ends.append(mean_by_seed(rows))
        effects.append(difference(NAMES[algorithm], ends[0], ends[1], least, equal=True))
    return effects


def theorem(evidence: Evidence, *, drift_share: float) -> list[Effect]:
    """The bound of Theorem 1 over the squared gradient norm, for clients with 1 and 2 local steps.

    Two clients have one sample each, -1 and 1, and the loss (w - d)^2 / 2. The step size is just
    below its limit, and w is where a round ends at the model at which it started.
    """
    del evidence
    samples, steps = np.array([1, 1]), np.array([1, 2])
    eta = 0.999 * (
        largest_step_size(
            samples=samples, steps=steps, smoothness=1.0, zeta_1=1.0, drift_share=drift_share
        ).value
    )
    w = (1 - eta) / (3 - eta)
    first = w - eta * (w + 1)
    second = w - eta * (w - 1)
    second -= eta * (second - 1)
    merged = (first + second) / 2
    bound = gradient_norm_bound(
        [
            RoundConstants(
                samples=samples,
                batch=samples,
                steps=steps,
                deviation=np.zeros(2),
                step_size=eta,
                smoothness=1.0,
                variability=1.0,
                zeta_1=1.0,
                zeta_2=1.0,
                drift_share=drift_share,
                decrease=(w**2 - merged**2) / 2,
            )
        ]
    )
    values = (math.log(bound.total / w**2),) if bound.holds else ()
    return [Effect("", values, 0.0, "ratio", exact=True)]


def _gains(
    results: Results,
    over: str,
    table: int | None = None,
    numbers: Sequence[int] | None = None,
    algorithm: str | None = None,
) -> list[dict[int, float]]:
    """Gains over a baseline in points by seed, for each planned row."""
    cases = {
        (*(case[key] for key in SAME), case["warm_start"]): case for case in results.study.cases
    }
    rows = []
    for key, case in cases.items():
        base = cases.get((*key[:-1], over))
        skipped = algorithm is not None and case["algorithm"] != algorithm
        if case["warm_start"] != "proposed" or base is None or skipped:
            continue
        for number in numbers or _transitions(table, case):
            if table is None or paper_of(table, case, number) is not None:
                rows.append(gain(results, (case, base), number))
    return rows


def _transitions(table: int | None, case: Case) -> list[int]:
    """The transitions of a table; the case's last one if the table does not number them."""
    numbers = {one.transition for one in published.read(table)} if table is not None else set()
    return sorted(number for number in numbers if number is not None) or [last(case)]


def _mean(
    name: str, rows: Sequence[dict[int, float]], least: float, *, equal: bool = False
) -> Effect:
    """The mean over the rows; seeds that lack one are left out."""
    return Effect(name, tuple(mean_by_seed(rows).values()), least, "points", equal)
