"""Effects that test the claims of the RA-Fed paper, see ``claims.toml``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from experiments.evidence import Evidence, by_seed, differences, final, mean_by_seed
from experiments.ra_fed.measures import SAME, gains
from experiments.ra_fed.methods import DATA, MIXED, OURS, REFERENCE, dealt, share
from experiments.studies import Case, Results
from wirelessfl.results.costs import rank_of
from wirelessfl.results.intervals import Effect, difference
from wirelessfl.results.outcomes import Signs
from wirelessfl.results.selection import NAMES


def settings_ahead(evidence: Evidence, *, method: str, others: Sequence[str]) -> list[Signs]:
    """In how many settings a method is more accurate (abstract) than the best of ``others``.

    Settings are those of the study of widths in which all have runs; a sign test over them.
    """
    pairs = gains(evidence.study("widths"), method, others)
    return [Signs("", tuple(gain for _, gain in pairs))]


def average_gain(
    evidence: Evidence, *, study: str, method: str, others: Sequence[str], least: float
) -> list[Effect]:
    """Final accuracy (abstract): a method - the best of ``others``, mean over the widths.

    The best one of a width has the highest mean over the seeds.
    """
    results, pairs = evidence.study(study), []
    for case in results.study.cases:
        if case["algorithm"] == method and case["budget"] is None:
            mine, *theirs = (
                by_seed(results, final, algorithm=name, capacities=case["capacities"], budget=None)
                for name in (method, *others)
            )
            some = all(theirs)
            best = max(theirs, key=lambda one: rank_of([*one.values()])) if some else {}
            pairs.append(differences(mine, best))
    return [_mean(f"mean of {len(pairs)} widths", pairs, least)]


def half_of_parameters(
    evidence: Evidence, *, model: str, margin: float, study: str = "widths"
) -> list[Effect]:
    """Final accuracy (abstract): RAM-Fed with half of the parameters - FedAvg's full model."""
    results, effects = evidence.study(study), []
    for case in results.study.cases:
        chosen = case["algorithm"], case["budget"], case["model"]
        if chosen == ("ram-fed", "bytes", model):
            setting = {key: case[key] for key in SAME}
            half = by_seed(results, final, algorithm="ram-fed", budget="bytes", **setting)
            full = by_seed(results, final, algorithm=REFERENCE, **setting)
            name = f"{DATA[case['dataset']]}, {dealt(case)}"
            effects.append(difference(name, half, full, margin, equal=True))
    return effects


def more_coverage(evidence: Evidence, *, varied: str, fixed: str, least: float) -> list[Effect]:
    """Final accuracy (abstract) with the highest minus the lowest guaranteed Gamma*, by method.

    Gamma* follows from ``varied``, the clients per round or their capacities; ``fixed`` is the
    other of both.
    """
    results, effects = evidence.study("coverage"), []
    for method in OURS:
        for lowest, highest in _groups(_covered(results, method), fixed, varied):
            high, low = (_finals(results, case) for case in (highest, lowest))
            name = f"{NAMES[method]}, {_where(highest)} - {_where(lowest)}"
            effects.append(difference(name, high, low, least))
    return effects


def covered_masks(evidence: Evidence, *, least: float) -> list[Effect]:
    """Final accuracy (abstract) with covered minus random masks, mean over widths and clients."""
    results, effects = evidence.study("coverage"), []
    for method in OURS:
        pairs = [
            differences(_finals(results, case), _finals(results, case, masks="random"))
            for case in _covered(results, method)
            if max(case["capacities"]) < 1
        ]
        effects.append(_mean(NAMES[method], pairs, least))
    return effects


def _covered(results: Results, method: str) -> list[Case]:
    """The cases of a method with masks that guarantee Gamma*."""
    cases = results.study.cases
    return [case for case in cases if (case["algorithm"], case["masks"]) == (method, "covered")]


def _mean(name: str, pairs: Sequence[dict[int, float]], least: float) -> Effect:
    """The mean over several differences, for the seeds that all of them have."""
    return Effect(name, tuple(mean_by_seed(pairs).values()), least, "points")


def memory(
    evidence: Evidence, *, masks: str, alphas: Sequence[float], least: float
) -> list[Effect]:
    """Final accuracy (abstract): RAM-Fed - RA-Fed with heterogeneous data and masks.

    ``masks`` are ``static``, fixed per client, or ``random`` ones of mixed widths.
    """
    results = evidence.study("masks")
    settings: dict[str, Any] = {"masks": masks}
    if masks == "random":
        mixed = (c["capacities"] for c in results.study.cases if share(c) == MIXED)
        settings["capacities"] = next(mixed)
    return [
        difference(
            f"Dir({alpha:g})",
            by_seed(results, final, algorithm="ram-fed", alpha=alpha, **settings),
            by_seed(results, final, algorithm="ra-fed", alpha=alpha, **settings),
            least,
        )
        for alpha in alphas
    ]


def _finals(results: Results, case: Case, **other: Any) -> dict[int, float]:
    """Final accuracy by seed of a case of the study of coverage, with ``other`` settings."""
    keys = ("algorithm", "masks", "capacities", "clients_per_round")
    return by_seed(results, final, **{key: case[key] for key in keys} | other)


def _groups(cases: Iterable[Case], fixed: str, varied: str) -> list[tuple[Case, Case]]:
    """First and last case by ``varied`` of cases with one ``fixed``, where there are several."""
    ordered = sorted(cases, key=lambda case: (case[fixed], case[varied]))
    groups = [list(group) for _, group in groupby(ordered, key=lambda case: case[fixed])]
    return [(group[0], group[-1]) for group in groups if len(group) > 1]


def _where(case: Case) -> str:
    return f"S = {case['clients_per_round']}, β = {share(case)}"
