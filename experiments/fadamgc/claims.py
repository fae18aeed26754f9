"""What the runs say about the FAdamGC paper's claims; ``claims.toml`` states the criteria.

Costs are rounds or simulated seconds until a run first reaches the target of its data set; effects
are ratios of the costs of runs with equal seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from experiments.evidence import Evidence, by_seed, final
from experiments.fadamgc.costs import COMMUNICATION, TESTS, costs, grouped
from experiments.fadamgc.methods import METHODS, SELECTIVE
from experiments.fadamgc.seconds import TEXT, missing_transfers, quotients
from experiments.fadamgc.tables import (
    PUBLISHED_ROUNDS,
    PUBLISHED_WITHOUT_MEMORY,
    fastest,
)
from experiments.studies import Case, Results
from wirelessfl.results.costs import EDGE, at_edge
from wirelessfl.results.intervals import (
    Costs,
    CostToTarget,
    Effect,
    contrast,
    difference,
    over_best,
    ratio,
)
from wirelessfl.results.selection import DATA, NAMES


def fewest(
    evidence: Evidence, *, dataset: str, steps: int, least: float, study: str = "table2"
) -> list[Effect]:
    """Every other method over FAdamGC: rounds (Table 2), for a data set and K local steps."""
    results = evidence.study(study)
    cases = _cases(results, dataset, steps)
    ours = costs(results, cases, algorithm="fadamgc")
    return [
        ratio(NAMES[method], costs(results, cases, algorithm=method), ours, least)
        for method in METHODS
        if method != "fadamgc"
    ]


def fewest_at_rate(
    evidence: Evidence, *, methods: Sequence[str], lr: float, every: int, least: float
) -> list[Effect]:
    """Some methods of Table 2 over FAdamGC with another step size, of study ``memory``.

    Of the latter, every second round counts as an evaluation, as in the former.
    """
    table, memory = evidence.study("table2"), evidence.study("memory")
    cases = _cases(table, "fashion-mnist", 20)
    ours = costs(memory, memory.study.cases, every=every, algorithm="fadamgc", beta2=0.99, lr=lr)
    return [
        ratio(NAMES[method], costs(table, cases, algorithm=method), ours, least)
        for method in methods
    ]


def over(
    evidence: Evidence,
    *,
    method: str,
    of: Sequence[tuple[str, int]],
    least: float,
    quantity: str = COMMUNICATION,
) -> list[Effect]:
    """Another method over FAdamGC: seconds (Table 2).

    ``of`` lists data sets and numbers of local steps.
    """
    results, effects = evidence.study("table2"), []
    for dataset, steps in of:
        theirs, ours = (
            costs(results, _cases(results, dataset, steps), quantity, algorithm=name)
            for name in (method, "fadamgc")
        )
        effects.append(ratio(_named(dataset, steps) if len(of) > 1 else "", theirs, ours, least))
    return effects


def _named(dataset: str, steps: int) -> str:
    return f"{DATA[dataset]}, K = {steps}"


def _cases(results: Results, dataset: str, steps: int) -> list[Case]:
    """The cases of a study with a data set and a number of local steps.

    One case per method, that with its fastest step sizes.
    """
    cases = [
        case
        for case in results.study.cases
        if (case["dataset"], case["local_steps"]) == (dataset, steps)
    ]
    return fastest(results, cases)


def published_rates(
    evidence: Evidence,
    *,
    study: str,
    eps: dict[str, float],
    lr: float,
    server_lr: float,
    least: float,
    size: float,
) -> list[Effect]:
    """Methods with the published step sizes over FAdamGC on images: rounds (Table 2).

    Args:
        evidence: the runs.
        study: name of the study.
        eps: by method.
        lr: step size of the clients.
        server_lr: step size of the server.
        least: the least ratio of rounds that counts.
        size: the least ratio of the claimed size.
    """
    results = evidence.study(study)
    cases = results.study.cases
    ours = costs(results, cases, algorithm="fadamgc")
    return [
        ratio(
            NAMES[method],
            costs(results, cases, algorithm=method, eps=one, lr=lr, server_lr=server_lr),
            ours,
            least,
            size=size,
        )
        for method, one in eps.items()
    ]


def round_durations(evidence: Evidence, *, datasets: Sequence[str], within: float) -> list[Effect]:
    """Minutes / rounds of Table 2 against the run-time model, in transmitted models.

    One effect per data set, for the method that differs most.
    """
    effects = []
    for dataset in datasets:
        missing = missing_transfers(dataset)
        most = max(missing, key=lambda method: abs(missing[method]))
        name = f"{DATA[dataset]}, {NAMES[most]}"
        effects.append(Effect(name, (missing[most],), within, equal=True, exact=True))
    return effects


def shares(
    evidence: Evidence, *, task: str, datasets: Sequence[str], within: float
) -> list[Effect]:
    """Quotients of communication and local training in Table 2 over the nearest of the text's.

    Args:
        evidence: the runs, none of which is used.
        task: ``images`` or ``language``.
        datasets: the data sets.
        within: the largest ratio that does not count.
    """
    effects, (lowest, highest) = [], TEXT[task]
    for dataset in datasets:
        low, high = quotients(dataset)
        value = math.log(max(low / highest, 1)) + math.log(min(high / lowest, 1))
        limit = math.log(within)
        effects.append(Effect(DATA[dataset], (value,), limit, "ratio", equal=True, exact=True))
    return effects


def heterogeneity(evidence: Evidence, *, closing: float) -> list[Effect]:
    """LocalAdam's rounds over FAdamGC's (Figure 3), at the smallest over the largest alpha."""
    uneven, even = _by_alpha(evidence)
    return [contrast("", uneven, even, closing)]


def homogeneity(evidence: Evidence, *, within: float) -> list[Effect]:
    """LocalAdam's rounds over FAdamGC's (Figure 3), at the largest alpha."""
    _, even = _by_alpha(evidence)
    return [ratio("", *even, least=within, equal=True)]


def _by_alpha(evidence: Evidence) -> list[tuple[Costs, Costs]]:
    """Rounds of LocalAdam and FAdamGC at the smallest and at the largest alpha."""
    results = evidence.study("fig3")
    by_alpha = sorted(grouped(results.study.cases, "alpha").items())
    return [
        (costs(results, cases, algorithm="local-adam"), costs(results, cases, algorithm="fadamgc"))
        for _, cases in (by_alpha[0], by_alpha[-1])
    ]


def tracked_rounds(
    evidence: Evidence, *, method: str, few: int, targets: Sequence[float], least: float
) -> list[Effect]:
    """Rounds to the target (Figures 4 and 9) with few trackers over those with all.

    They do not increase by more than ``least``.
    """
    results = evidence.study("trackers")
    effects = []
    for target in targets:
        fewer, full = _tracked(results, method, few, "round", target)
        effects.append(
            replace(ratio(f"{100 * target:g} %", fewer, full, least, equal=True), one_sided=True)
        )
    return effects


def tracked_seconds(
    evidence: Evidence,
    *,
    method: str,
    few: int,
    targets: Sequence[float],
    least: float,
    quantity: str = COMMUNICATION,
) -> list[Effect]:
    """Seconds to the target (Figures 4 and 9) with all trackers over those with few."""
    results = evidence.study("trackers")
    effects = []
    for target in targets:
        fewer, full = _tracked(results, method, few, quantity, target)
        effects.append(ratio(f"{100 * target:g} %", full, fewer, least))
    return effects


def _tracked(
    results: Results, method: str, few: int, quantity: str, target: float
) -> list[dict[int, CostToTarget]]:
    """A cost until the mean of five evaluations is the target, with few and with all trackers."""
    cases = [case for case in results.study.cases if case["algorithm"] == method]
    return [
        costs(results, cases, quantity, TESTS, target, tracking_clients=count)
        for count in (few, max(case["tracking_clients"] for case in cases))
    ]


def more_clients(evidence: Evidence, *, study: str, least: float) -> list[Effect]:
    """FAdamGC's rounds with the fewest over those with the most clients (Figures 5 and 7)."""
    few, many = ends(evidence.study(study), "fadamgc")
    return [ratio("", few, many, least)]


def sampling(evidence: Evidence, *, study: str, least: float) -> list[Effect]:
    """The next best method's rounds over FAdamGC's, by clients per round (Figures 5 and 7)."""
    results = evidence.study(study)
    sizes = grouped(results.study.cases, "clients_per_round")
    return [over_next_best(f"S = {size}", results, cases, least) for size, cases in sizes.items()]


def at_rate(
    evidence: Evidence, *, study: str, clients: int, better: str, worse: str, least: float
) -> list[Effect]:
    """Final accuracy of a method minus another's, with some clients per round (Figures 6, 8)."""
    ends = (
        by_seed(evidence.study(study), final, algorithm=method, clients_per_round=clients)
        for method in (better, worse)
    )
    return [difference("", *ends, least)]


def without_memory(
    evidence: Evidence, *, method: str, vhat: Sequence[str], least: float, published: str = ""
) -> list[Effect]:
    """Rounds with beta_2 = 0 over those with 0.99 (Table 3), each with its fastest step size.

    Effects whose fastest step size is at the edge of those that were tried say so.

    Args:
        evidence: the runs.
        method: name of the algorithm.
        vhat: with beta_2 = 0, whether each round starts with a new maximum of the squared
            gradients (``reset``), or with that of the client's last one (``carried``).
        least: the least ratio that counts.
        published: a data set, whose published quotient ours equals within ``least``; empty for
            more rounds than with 0.99.
    """
    results, effects = evidence.study("memory"), []
    base, base_edge = _at_fastest_step(results, algorithm=method, beta2=0.99)
    for start in vhat:
        rounds, edge = _at_fastest_step(results, algorithm=method, beta2=0.0, vhat=start)
        parts = [f"maximum {start}" * (len(vhat) > 1), edge or base_edge]
        name = ", ".join(filter(None, parts))
        effect = ratio(name, rounds, base, least, equal=bool(published))
        if published:
            place = SELECTIVE.index(method)
            quotient = (
                PUBLISHED_WITHOUT_MEMORY[published][place]
                / PUBLISHED_ROUNDS[published][METHODS.index(method)]
            )
            values = tuple(value - math.log(quotient) for value in effect.values)
            effect = replace(effect, values=values)
        effects.append(effect)
    return effects


def _at_fastest_step(results: Results, **settings: Any) -> tuple[Costs, str]:
    """Rounds at a method's fastest step size, and ``EDGE`` if it is at the edge of the grid."""
    tried = results.where(**settings)
    winners = fastest(results, tried, tests=TESTS)
    if not winners:
        return {}, ""
    (best,) = winners
    edge = EDGE if at_edge(best["lr"], [case["lr"] for case in tried]) else ""
    return costs(results, [best], tests=TESTS), edge


def over_next_best(name: str, results: Results, cases: list[Case], least: float) -> Effect:
    """Rounds of the method with the fewest, except FAdamGC, against FAdamGC's.

    Only seeds with which all methods of these cases have run are used.
    """
    by_method = {NAMES[case["algorithm"]]: costs(results, [case]) for case in cases}
    ours = by_method.pop(NAMES["fadamgc"])
    return over_best(name, by_method, ours, least)


def ends(results: Results, method: str) -> list[dict[int, CostToTarget]]:
    """A method's rounds with the fewest and with the most clients per round."""
    by_size = sorted(grouped(results.study.cases, "clients_per_round").items())
    return [costs(results, cases, algorithm=method) for _, cases in (by_size[0], by_size[-1])]
