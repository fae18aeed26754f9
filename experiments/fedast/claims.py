"""What the runs say about the FedAST paper's claims; ``claims.toml`` states the criteria.

Costs are simulated seconds until tasks first reach their targets, as in the paper. A published gain
is (T_base - T) / T_base; effects are the ratios T_base / T of runs with equal seeds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

from experiments.evidence import Evidence
from experiments.fedast.measures import (
    costs,
    dynamic_and_sync,
    finals,
    first_of,
    identical,
    method,
    stored,
)
from experiments.fedast.tables import PUBLISHED_GAINS
from experiments.fedast.tasks import SHOWN, SYNCHRONOUS, Goal, is_central, kinds, names
from wirelessfl.base.rows import as_mean_value
from wirelessfl.results.intervals import Effect, contrast, difference, ratio
from wirelessfl.results.selection import NAMES

MAX_RATIO = 37
"""Largest R / b that works well (Appendix C.5)."""


def fastest_method(
    evidence: Evidence, *, study: str, over: Sequence[str], least: float
) -> list[Effect]:
    """FedAST against synchronous methods: seconds to all targets (Figure 2)."""
    results = evidence.study(study)
    fedast = costs(results, method(results, "fedast"))
    return [
        ratio(NAMES[other], costs(results, method(results, other)), fedast, least) for other in over
    ]


def synchronous(evidence: Evidence, *, study: str, within: float) -> list[Effect]:
    """Sync-Bayes-ST and Sync-UCB-ST against Sync-ST: seconds to all targets (Figure 2)."""
    results = evidence.study(study)
    sync = costs(results, method(results, "sync-st"))
    return [
        ratio(NAMES[other], costs(results, method(results, other)), sync, within, equal=True)
        for other in SYNCHRONOUS
        if other != "sync-st"
    ]


def unmitigated(
    evidence: Evidence, *, study: str, task: str, least: float, size: float
) -> list[Effect]:
    """Sync-ST without over with mitigation: seconds to the target of a task (Figure 2)."""
    results = evidence.study(study)
    seconds, base = (
        costs(results, method(results, "sync-st", mitigated=mitigated), [task])
        for mitigated in (False, True)
    )
    return [ratio("", seconds, base, least, size=size)]


def active(
    evidence: Evidence, *, study: str, most: bool, least: float, equal: bool = False
) -> list[Effect]:
    """Final accuracy with minus without the buffer (Figure 3).

    With the most active clients, or the fewest.
    """
    results, effects = evidence.study(study), []
    federated = [case for case in results.study.cases if not is_central(case)]
    for kind in dict.fromkeys(kinds(case)[0] for case in federated):
        cases = [case for case in federated if kinds(case) == (kind,)]
        requests = sorted({int(case["requests"]) for case in cases})
        count = requests[-1 if most else 0]
        buffered, without = (
            finals(results, first_of(cases, algorithm=name, requests=count))
            for name in ("fedast", "fedast-nobuffer")
        )
        name = f"{SHOWN[kind]}, R = {count}"
        effects.append(difference(name, buffered, without, least, equal=equal))
    return effects


def unsteady(evidence: Evidence, *, study: str, task: str, of: str, least: float) -> list[Effect]:
    """Curves with and without the buffer (Figure 4): mean ``accuracy``, or ``change`` of it.

    The former is larger with the buffer; the latter, between evaluations, without it.

    Compared in the second half of the time in which both runs of a seed train the task.
    """
    results = evidence.study(study)
    without, buffered = (
        {run.seed: run.rows_of(task) for run in stored(results, method(results, name))}
        for name in ("fedast-nobuffer", "fedast")
    )
    changes: tuple[dict[int, float], ...] = ({}, {})
    means: tuple[dict[int, float], ...] = ({}, {})
    for seed in without.keys() & buffered.keys():
        both = without[seed], buffered[seed]
        end = min(rows[-1]["sim_seconds"] for rows in both)
        for place, rows in enumerate(both):
            late = (row for row in rows if end / 2 <= row["sim_seconds"] <= end)
            curve = [100 * as_mean_value(row) for row in late]
            changes[place][seed] = statistics.mean(abs(b - a) for a, b in pairwise(curve))
            means[place][seed] = statistics.mean(curve)
    more, less = changes if of == "change" else means[::-1]
    return [difference("", more, less, least)]


def faster(
    evidence: Evidence,
    *,
    study: str,
    count: int,
    least: float,
    targets: Goal = None,
    tests: int = 1,
) -> list[Effect]:
    """FedAST against Sync-ST on ``count`` identical tasks: mean seconds to the targets (Figure 5).

    ``tests`` is the number of evaluations that are averaged, see ``cost_to``.
    """
    results = evidence.study(study)
    models = dict.fromkeys(kinds(c)[0] for c in results.study.cases if len(names(c)) == count)
    return [
        ratio(SHOWN[kind], *identical(results, kind, count, targets, tests), least=least)
        for kind in models
    ]


def growing(
    evidence: Evidence, *, study: str, least: float, targets: Goal = None, tests: int = 1
) -> list[Effect]:
    """The gain of ``faster`` with the most tasks against that with the fewest (Figure 5)."""
    results, effects = evidence.study(study), []
    for kind in dict.fromkeys(kinds(case)[0] for case in results.study.cases):
        cases = [case for case in results.study.cases if kinds(case) == (kind,)]
        counts = sorted({len(names(case)) for case in cases})
        high, low = (
            identical(results, kind, count, targets, tests) for count in (counts[-1], counts[0])
        )
        name = f"{SHOWN[kind]}, {counts[-1]} against {counts[0]} tasks"
        effects.append(contrast(name, high, low, least))
    return effects


def heterogeneous(evidence: Evidence, *, tasks: int, least: float, part: float) -> list[Effect]:
    """FedAST (D) against the fastest Sync-ST: a part of the published gain (Figure 7).

    Studies with fewer than ``tasks`` do not count.
    """
    results = evidence.study("heterogeneous")
    size = 1 / (1 - part * PUBLISHED_GAINS["heterogeneous"] / 100)
    most = max((len(names(case)) for case in results.study.cases), default=0)
    if most < tasks:
        return [
            Effect(
                "",
                (),
                math.log(least),
                "ratio",
                size=math.log(size),
                empty=f"no runs with {tasks} tasks",
            )
        ]
    return [ratio("", *dynamic_and_sync(results), least=least, size=size)]


def dynamic(evidence: Evidence, *, studies: list[str], least: float) -> list[Effect]:
    """FedAST (D) against FedAST (S): seconds to all targets (Figures 22, 24 and 26)."""
    effects = []
    for study in studies:
        results = evidence.study(study)
        even, ours = (costs(results, method(results, "fedast", option)) for option in "SD")
        effects.append(ratio(study if len(studies) > 1 else "", even, ours, least))
    return effects


def buffers(
    evidence: Evidence, *, study: str, over: str, of: str, least: float, targets: Goal
) -> list[Effect]:
    """The smallest b with R / b up to 37 against another one (Figures 8 and 9), for each task.

    Args:
        evidence: the runs.
        study: name of the study.
        over: the ``smallest`` or ``largest`` b, or that ``below``, whose R / b is above 37.
        of: ``accuracy`` at the end, or ``seconds`` to the target.
        least: the least effect that counts.
        targets: the targets.
    """
    results = evidence.study(study)
    cases = sorted(results.study.cases, key=lambda case: int(case["buffer"]))
    place = next((i for i, c in enumerate(cases) if c["requests"] / c["buffer"] <= MAX_RATIO), None)
    if place is None:
        return []
    chosen = cases[place]
    other = cases[{"smallest": 0, "largest": -1, "below": place - 1}[over]]
    effects = []
    for task in names(chosen):
        if of == "accuracy":
            more, less = (finals(results, case, [task]) for case in (chosen, other))
            effects.append(difference(SHOWN[task], more, less, least))
        else:
            slow, fast = (costs(results, c, [task], goal=targets) for c in (other, chosen))
            effects.append(ratio(SHOWN[task], slow, fast, least))
    return effects


def awaited(
    evidence: Evidence,
    *,
    studies: Sequence[str],
    chosen: int,
    of: str,
    least: float,
    targets: Goal,
) -> list[Effect]:
    """k = ``chosen`` against the extremes in Sync-ST (Figures 10 to 12), for each task.

    ``accuracy`` at the end is larger than with the smallest k; with the largest k, the ``seconds``
    to the target are more, and the ``rounds`` fewer.
    """
    results, effects = evidence.study(tuple(studies)), []
    for task in dict.fromkeys(kinds(case)[0] for case in results.study.cases):
        cases = [case for case in results.study.cases if kinds(case)[0] == task]
        small, *_, large = sorted(cases, key=lambda case: int(case["first"]))
        middle = first_of(cases, first=chosen)
        if of == "accuracy":
            more, less = (finals(results, case) for case in (middle, small))
            effects.append(difference(SHOWN[task], more, less, least))
            continue
        quantity = "version" if of == "rounds" else "sim_seconds"
        slow, fast = (
            costs(results, case, quantity=quantity, goal=targets)
            for case in ((middle, large) if of == "rounds" else (large, middle))
        )
        effects.append(ratio(SHOWN[task], slow, fast, least))
    return effects
