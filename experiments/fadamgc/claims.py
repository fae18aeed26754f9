"""What the runs say about the FAdamGC paper's claims; ``claims.toml`` states the criteria.

Costs are rounds or simulated seconds until a run first reaches the target of its data set; effects
are ratios of the costs of runs with equal seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from experiments.comparison import cheapness, most_finished
from experiments.evidence import Evidence
from experiments.fadamgc.methods import METHODS, SELECTIVE
from experiments.fadamgc.seconds import (
    CLASSES,
    GPU_STEP_SECONDS,
    LANGUAGE,
    SAMPLED,
    STEPS,
    lora_parameters,
    published_seconds,
    round_seconds,
)
from experiments.fadamgc.tables import (
    PUBLISHED_ROUNDS,
    PUBLISHED_WITHOUT_MEMORY,
    TARGETS,
    fastest,
)
from experiments.studies import Case, Results
from wirelessfl.models import ResNet18
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.intervals import Effect, Reached, contrast, over_best, ratio
from wirelessfl.results.names import DATA, MODELS, NAMES
from wirelessfl.submodels import ParamSpec

COMMUNICATION = "communication"
"""Simulated seconds without local steps, which take a tenth of them or less in the paper, and as
much or more with the small models of our runs."""
IMAGES = {"cifar10": (32, 10), "cifar100": (32, 100), "tinyimagenet": (64, 200)}
"""Width of the images and number of classes."""


def fewest(evidence: Evidence, *, language: bool, least: float) -> list[Effect]:
    """FAdamGC against the next best of all methods: rounds (Table 2)."""
    results = evidence.study("table2")
    return [
        over_next_best(name, results, cases, least)
        for name, cases in data_sets(results, language).items()
    ]


def over(evidence: Evidence, *, methods: list[str], least: float) -> list[Effect]:
    """FAdamGC against some methods on images: seconds of communication (Table 2)."""
    results = evidence.study("table2")
    return [
        ratio(
            f"{name}, {NAMES[method]}",
            costs(results, cases, COMMUNICATION, algorithm=method),
            costs(results, cases, COMMUNICATION, algorithm="fadamgc"),
            least,
        )
        for name, cases in data_sets(results, False).items()
        for method in methods
    ]


def published_rates(
    evidence: Evidence,
    *,
    studies: dict[str, dict[str, list[float]]],
    lr: float,
    server_lr: float,
    least: float,
) -> list[Effect]:
    """FAdamGC against methods with the published step sizes on images: rounds (Table 2).

    Args:
        evidence: the runs.
        studies: by study and method, values of eps.
        lr: step size of the clients.
        server_lr: step size of the server.
        least: the least ratio of rounds that counts.
    """
    effects = []
    for study, methods in studies.items():
        results = evidence.study(study)
        cases = results.study.cases
        ours = costs(results, cases, algorithm="fadamgc")
        rates = {"lr": lr, "server_lr": server_lr}
        for method, values in methods.items():
            for eps in values:
                theirs = costs(results, cases, algorithm=method, eps=eps, **rates)
                name = f"{MODELS[cases[0]['model']]}, {NAMES[method]}, ε = {eps:g}"
                effects.append(ratio(name, theirs, ours, least))
    return effects


def round_durations(evidence: Evidence, *, within: float) -> list[Effect]:
    """Minutes / rounds of Table 2 against the run-time model, in transmitted models.

    One effect per data set, for the method that differs most.
    """
    effects = []
    for dataset in PUBLISHED_ROUNDS:
        missing = missing_transfers(dataset)
        most = max(missing, key=lambda method: abs(missing[method]))
        name = f"{DATA[dataset]}, {NAMES[most]}"
        effects.append(Effect(name, (missing[most],), within, equal=True, exact=True))
    return effects


def heterogeneity(evidence: Evidence, *, closing: float, within: float) -> list[Effect]:
    """LocalAdam's rounds against FAdamGC's (Figure 3).

    Their ratio is larger at the smallest than at the largest alpha, where both need equally many.
    """
    results = evidence.study("fig3")
    (first, low), *_, (last, high) = sorted(grouped(results.study.cases, "alpha").items())
    uneven, even = (
        (costs(results, cases, algorithm="local-adam"), costs(results, cases, algorithm="fadamgc"))
        for cases in (low, high)
    )
    return [
        contrast(f"alpha = {first:g} against {last:g}", uneven, even, closing),
        ratio(f"alpha = {last:g}", *even, least=within, equal=True),
    ]


def trackers(
    evidence: Evidence,
    *,
    studies: list[str],
    share: float,
    within: float,
    least: float,
    tests: int = 1,
) -> list[Effect]:
    """A share of the sampled clients tracks instead of all: cost to the target (Figures 4 and 9).

    The rounds are equal, and the seconds of communication fewer. ``tests`` is the number of tests
    that are averaged, see ``place_reaching``.
    """
    effects = []
    for results in map(evidence.study, studies):
        for method in SELECTIVE:
            cases = [case for case in results.study.cases if case["algorithm"] == method]
            if not cases:
                continue
            sampled = cases[0]["clients_per_round"]
            counts = max(round(share * sampled), 1), sampled
            name = f"{NAMES[method]}, {counts[0]} of {sampled}, "
            rounds, (fewer, full) = (
                [
                    costs(results, cases, quantity, tests=tests, tracking_clients=count)
                    for count in counts
                ]
                for quantity in ("round", COMMUNICATION)
            )
            effects.append(ratio(name + "rounds", *rounds, least=within, equal=True))
            effects.append(ratio(name + "seconds", full, fewer, least))
    return effects


def sampling(evidence: Evidence, *, studies: list[str], least: float) -> list[Effect]:
    """FAdamGC's rounds with more clients per round (Figures 5 and 7).

    Fewer than those of the next best method, and fewer than with the fewest clients.
    """
    effects = []
    for results in map(evidence.study, studies):
        sizes = grouped(results.study.cases, "clients_per_round")
        name = results.study.name
        effects += [
            over_next_best(f"{name}, S = {size}", results, cases, least)
            for size, cases in sizes.items()
        ]
        if sizes:
            effects.append(ratio(f"{name}, fewer clients", *ends(results, "fadamgc"), least=least))
    return effects


def naive(evidence: Evidence, *, studies: list[str], least: float) -> list[Effect]:
    """FA-NT against FAdamGC with K = 10: rounds (Figures 6 and 8).

    FA-NT needs fewer with the fewest clients per round, and FAdamGC with the most.
    """
    effects = []
    for results in map(evidence.study, studies):
        if not results.study.cases:
            continue
        (plain_few, plain_many), (few, many) = (
            ends(results, method) for method in ("fa-nt", "fadamgc")
        )
        name = f"{results.study.name}, "
        effects.append(ratio(name + "fewest clients", few, plain_few, least))
        effects.append(ratio(name + "most clients", plain_many, many, least))
    return effects


def without_memory(
    evidence: Evidence, *, study: str, least: float, published: str, within: float, tests: int = 1
) -> list[Effect]:
    """Rounds with beta_2 = 0 against those with 0.99 (Table 3), each with its best step size.

    Both methods need more; for FAdamGC, the quotient equals that published for a data set. Both
    start each round with a new maximum of the squared gradients (``vhat = "reset"``). ``tests`` is
    the number of tests that are averaged, see ``place_reaching``.
    """
    results, effects = evidence.study(study), []
    rounds = PUBLISHED_WITHOUT_MEMORY[published][-1] / PUBLISHED_ROUNDS[published][-1]
    both = {
        method: [
            quickest(results, tests, algorithm=method, beta2=0.0, vhat="reset"),
            quickest(results, tests, algorithm=method, beta2=0.99),
        ]
        for method in SELECTIVE
    }
    for method, pair in both.items():
        effects.append(ratio(NAMES[method], *pair, least=least))
    size = ratio("of published", *both["fadamgc"], least=within, equal=True)
    values = tuple(value - math.log(rounds) for value in size.values)
    return [*effects, replace(size, values=values)]


def quickest(results: Results, tests: int, **wanted: Any) -> dict[int, Reached]:
    """By seed, the rounds of the case with these settings that needs the fewest.

    Only cases with the most finished seeds are compared.
    """
    tried = most_finished(results, results.where(**wanted))
    if not tried:
        return {}
    target = TARGETS[tried[0]["dataset"]]
    best = min(tried, key=lambda case: cheapness(results, case, "round", target, tests))
    return costs(results, [best], tests=tests)


def data_sets(results: Results, language: bool) -> dict[str, list[Case]]:
    """The cases of each data set of images or language, and number of local steps.

    One case per method, that with its fastest step sizes.
    """
    found = grouped(results.study.cases, "dataset", "local_steps").items()
    return {
        f"{DATA[dataset]}, K = {steps}": fastest(results, cases)
        for (dataset, steps), cases in found
        if (dataset in LANGUAGE) == language
    }


def over_next_best(name: str, results: Results, cases: list[Case], least: float) -> Effect:
    """Rounds of the method with the fewest, except FAdamGC, against FAdamGC's.

    Only seeds with which all methods of these cases have run are used.
    """
    by_method = {NAMES[case["algorithm"]]: costs(results, [case]) for case in cases}
    ours = by_method.pop(NAMES["fadamgc"])
    return over_best(name, by_method, ours, least)


def ends(results: Results, method: str) -> list[dict[int, Reached]]:
    """A method's rounds with the fewest and with the most clients per round."""
    by_size = sorted(grouped(results.study.cases, "clients_per_round").items())
    return [costs(results, cases, algorithm=method) for _, cases in (by_size[0], by_size[-1])]


def costs(
    results: Results,
    cases: Iterable[Case],
    quantity: str = "round",
    tests: int = 1,
    **wanted: Any,
) -> dict[int, Reached]:
    """By seed, a cost until the target, for the only one of these cases with these settings.

    ``quantity`` is a field of rows, or ``COMMUNICATION``; ``tests`` is the number of tests that are
    averaged, see ``place_reaching``.
    """
    found = [case for case in cases if all(case[k] == v for k, v in wanted.items())]
    if len(found) > 1:
        raise ValueError(f"{len(found)} cases of {results.study.name} have {wanted}: give more.")
    return {
        run.seed: Reached.of(_timed(run, case), TARGETS[case["dataset"]], quantity, tests)
        for case in found
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
    found: dict[Any, list[Case]] = {}
    for case in cases:
        values = tuple(case[name] for name in settings)
        found.setdefault(values if len(values) > 1 else values[0], []).append(case)
    return found


def missing_transfers(dataset: str) -> dict[str, float]:
    """Published seconds per round minus those of the run-time model, in transmitted models.

    Half of the sampled clients track. For language, LocalAdam's row determines the local epoch.
    """
    published = published_seconds(dataset)
    if dataset in IMAGES:
        width, classes = IMAGES[dataset]
        parameters = ParamSpec.of(ResNet18((3, width, width), classes)).size
        step, steps = GPU_STEP_SECONDS, STEPS
    else:
        parameters, steps = lora_parameters(CLASSES[dataset]), 1
        step = published["local-adam"] - round_seconds("local-adam", parameters, 0, 1e-9, 1)
    model = {m: round_seconds(m, parameters, SAMPLED // 2, step, steps) for m in METHODS}
    transfer = (model["local-adam"] - step * steps) / 2
    return {method: (published[method] - model[method]) / transfer for method in METHODS}
