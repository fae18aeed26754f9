"""Effects that test the claims of the RA-Fed paper, see ``claims.toml``."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from experiments.evidence import Evidence, by_seed, final
from experiments.ra_fed.measures import SAME, gains
from experiments.ra_fed.methods import MIXED, OURS, REFERENCE, setting_of, share
from experiments.studies import Case, Results
from wirelessfl.results.intervals import Effect, difference
from wirelessfl.results.names import NAMES


def average_gain(evidence: Evidence, *, others: Sequence[str], least: float) -> list[Effect]:
    """Final accuracy (abstract): RA-Fed and RAM-Fed - the best of ``others`` of each seed.

    Mean and median over all settings of the study of widths with a finished run of each method;
    seeds that lack some of them are left out.
    """
    results, found = evidence.study("widths"), []
    for method in OURS:
        by_setting = {
            seed: {
                (setting_of(case), share(case)): gain
                for case, gain in gains(_only(results, seed), method, others)
            }
            for seed in _seeds(results)
        }
        settings = set().union(*by_setting.values())
        complete = [one for one in by_setting.values() if one and set(one) == settings]
        for name, average in (("mean", statistics.mean), ("median", statistics.median)):
            values = tuple(average(list(one.values())) for one in complete)
            text = f"{NAMES[method]}, {name}" + f" of {len(settings)} settings" * bool(settings)
            found.append(Effect(text, values, least, "points"))
    return found


def half_of_parameters(evidence: Evidence, *, margin: float) -> list[Effect]:
    """Final accuracy (abstract): RAM-Fed with half of the parameters - FedAvg's full model."""
    results, found = evidence.study("widths"), []
    for case in results.study.cases:
        if case["algorithm"] == "ram-fed" and case["budget"] == "bytes":
            setting = {key: case[key] for key in SAME}
            half = by_seed(results, final, algorithm="ram-fed", budget="bytes", **setting)
            full = by_seed(results, final, algorithm=REFERENCE, **setting)
            found.append(difference(setting_of(case), half, full, margin, equal=True))
    return found


def min_coverage(evidence: Evidence, *, least: float) -> list[Effect]:
    """Final accuracy (abstract): highest - lowest guaranteed Gamma*, by width or by clients.

    Then ``covered`` - random masks of equal widths and clients per round, mean over both.
    """
    results, found = evidence.study("coverage"), []
    for method in OURS:
        covered = [
            c for c in results.study.cases if (c["algorithm"], c["masks"]) == (method, "covered")
        ]
        sweeps = [
            *_groups(covered, "clients_per_round", "capacities"),
            *_groups(covered, "capacities", "clients_per_round"),
        ]
        for lowest, highest in sweeps:
            name = f"{NAMES[method]}, {_where(highest)} - {_where(lowest)}"
            high, low = (_finals(results, case) for case in (highest, lowest))
            found.append(difference(name, high, low, least))
        pairs = [
            _differences(_finals(results, case), _finals(results, case, masks="random"))
            for case in covered
            if max(case["capacities"]) < 1
        ]
        found.append(_mean(f"{NAMES[method]}, covered - random masks", pairs, least))
    return found


def _mean(name: str, pairs: Sequence[dict[int, float]], least: float) -> Effect:
    """The mean over several differences, for the seeds that all of them have."""
    seeds = sorted(set.intersection(*map(set, pairs))) if pairs else []
    values = tuple(statistics.mean(pair[seed] for pair in pairs) for seed in seeds)
    return Effect(name, values, least, "points")


def memory(
    evidence: Evidence, *, static: Sequence[float], mixed: Sequence[float], least: float
) -> list[Effect]:
    """Final accuracy (abstract): RAM-Fed - RA-Fed with heterogeneous data and masks.

    ``static`` and ``mixed`` list Dirichlet parameters: of runs with a fixed mask per client, and
    with random masks of mixed widths.
    """
    results = evidence.study("masks")
    mixture = next(c["capacities"] for c in results.study.cases if share(c) == MIXED)
    cases: list[tuple[str, dict[str, Any]]] = [
        *((f"static masks, Dir({a:g})", {"masks": "static", "alpha": a}) for a in static),
        *(
            (
                f"random masks of mixed widths, Dir({a:g})",
                {"masks": "random", "capacities": mixture, "alpha": a},
            )
            for a in mixed
        ),
    ]
    return [
        difference(
            name,
            by_seed(results, final, algorithm="ram-fed", **wanted),
            by_seed(results, final, algorithm="ra-fed", **wanted),
            least,
        )
        for name, wanted in cases
    ]


def _finals(results: Results, case: Case, **other: Any) -> dict[int, float]:
    """Final accuracy by seed of a case of the study of coverage, with ``other`` settings."""
    keys = ("algorithm", "masks", "capacities", "clients_per_round")
    return by_seed(results, final, **{key: case[key] for key in keys} | other)


def _differences(more: dict[int, float], less: dict[int, float]) -> dict[int, float]:
    return {seed: more[seed] - less[seed] for seed in more if seed in less}


def _groups(cases: Iterable[Case], fixed: str, varied: str) -> list[tuple[Case, Case]]:
    """First and last case by ``varied`` of cases with one ``fixed``, where there are several."""
    ordered = sorted(cases, key=lambda case: (case[fixed], case[varied]))
    groups = [list(group) for _, group in groupby(ordered, key=lambda case: case[fixed])]
    return [(group[0], group[-1]) for group in groups if len(group) > 1]


def _where(case: Case) -> str:
    return f"S = {case['clients_per_round']}, β = {share(case)}"


def _seeds(results: Results) -> list[int]:
    """All seeds with a finished run."""
    return sorted({run.seed for runs in results.runs.values() for run in runs})


def _only(results: Results, seed: int) -> Results:
    """The runs with this seed."""
    runs = {i: [run for run in runs if run.seed == seed] for i, runs in results.runs.items()}
    return Results(results.study, runs)
