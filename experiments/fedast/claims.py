"""What the runs say about the FedAST paper's claims; ``claims.toml`` states the criteria.

Costs are simulated seconds until tasks first reach their targets, as in the paper. A published gain
is (T_base - T) / T_base; effects are the ratios T_base / T of runs with equal seeds.
"""

from __future__ import annotations

import statistics
from itertools import pairwise

from experiments.evidence import Evidence
from experiments.fedast.costs import (
    costs,
    dynamic_and_sync,
    finals,
    first_of,
    identical,
    method,
    stored,
)
from experiments.fedast.tables import PUBLISHED_CIFAR100, PUBLISHED_GAINS
from experiments.fedast.tasks import SHOWN, SYNCHRONOUS, Goal, is_central, kind_of, kinds, names
from wirelessfl.divergence import counted
from wirelessfl.results.intervals import Effect, contrast, difference, ratio
from wirelessfl.results.names import NAMES

MAX_RATIO = 37
"""Largest R / b that works well (Appendix C.5)."""


def fastest_method(evidence: Evidence, *, study: str, least: float) -> list[Effect]:
    """FedAST against every synchronous method: seconds to all targets (Figure 2)."""
    results = evidence.study(study)
    fedast = costs(results, method(results, "fedast"))
    return [
        ratio(f"over {NAMES[other]}", costs(results, method(results, other)), fedast, least)
        for other in SYNCHRONOUS
    ]


def synchronous(
    evidence: Evidence, *, study: str, task: str, within: float, slower: float
) -> list[Effect]:
    """Sync-ST against the other synchronous methods (Figure 2).

    Sync-Bayes-ST and Sync-UCB-ST need equally many seconds to all targets. Without mitigation,
    Sync-ST needs more seconds to the target of ``task``.
    """
    results = evidence.study(study)
    sync, slow = (method(results, "sync-st", mitigated=mitigated) for mitigated in (True, False))
    effects = []
    for other in (other for other in SYNCHRONOUS if other != "sync-st"):
        seconds = costs(results, method(results, other))
        effects.append(ratio(NAMES[other], seconds, costs(results, sync), within, equal=True))
    seconds, base = (costs(results, case, [task]) for case in (slow, sync))
    return [*effects, ratio(f"{SHOWN[kind_of(task)]} without mitigation", seconds, base, slower)]


def active(evidence: Evidence, *, study: str, least: float) -> list[Effect]:
    """Final accuracy with and without the buffer (Figure 3).

    It is equal with the fewest active clients, and larger with the buffer with the most.
    """
    results, effects = evidence.study(study), []
    federated = [case for case in results.study.cases if not is_central(case)]
    for kind in dict.fromkeys(kinds(case)[0] for case in federated):
        cases = [case for case in federated if kinds(case) == (kind,)]
        requests = sorted({int(case["requests"]) for case in cases})
        for count in (requests[0], requests[-1]):
            buffered, without = (
                finals(results, first_of(cases, algorithm=name, requests=count))
                for name in ("fedast", "fedast-nobuffer")
            )
            text, equal = f"{SHOWN[kind]}, R = {count}", count == requests[0]
            effects.append(difference(text, buffered, without, least, equal=equal))
    return effects


def unsteady(
    evidence: Evidence, *, study: str, task: str, steadier: float, higher: float
) -> list[Effect]:
    """Curves with and without the buffer: change between tests, mean accuracy (Figure 4).

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
            curve = [100 * counted(row) for row in late]
            changes[place][seed] = statistics.mean(abs(b - a) for a, b in pairwise(curve))
            means[place][seed] = statistics.mean(curve)
    return [
        difference("change between tests", *changes, least=steadier),
        difference("accuracy", *means[::-1], least=higher),
    ]


def faster(
    evidence: Evidence, *, study: str, least: float, targets: Goal = None, tests: int = 1
) -> list[Effect]:
    """FedAST against Sync-ST on identical tasks: mean seconds to the targets (Figure 5).

    ``tests`` is the number of tests that are averaged, see ``place_reaching``.
    """
    results = evidence.study(study)
    return [
        ratio(
            f"{count} {SHOWN[kind]}", *identical(results, kind, count, targets, tests), least=least
        )
        for kind, count in dict.fromkeys((kinds(c)[0], len(names(c))) for c in results.study.cases)
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


def cifar100(evidence: Evidence, *, part: float, growth: float) -> list[Effect]:
    """``faster`` and ``growing`` on CIFAR-100: a part of the published gains (Figure 16)."""
    results = evidence.study("fig16")
    effects = [
        ratio(f"{count} tasks", *identical(results, "cifar100", count), least=_least(part * gain))
        for count, gain in PUBLISHED_CIFAR100.items()
    ]
    return effects + growing(evidence, study="fig16", least=growth)


def heterogeneous(evidence: Evidence, *, part: float) -> list[Effect]:
    """FedAST (D) against the fastest Sync-ST: a part of the published gain (Figure 7)."""
    least = _least(part * PUBLISHED_GAINS["heterogeneous"])
    return [ratio("", *dynamic_and_sync(evidence.study("heterogeneous")), least=least)]


def levels(evidence: Evidence, *, part: float, growth: float) -> list[Effect]:
    """The same at other targets, and the gain at higher against lower ones (Figures 18 and 20)."""
    both = {level: dynamic_and_sync(evidence.study(level)) for level in ("higher", "lower")}
    effects = [
        ratio(f"{level} targets", *pair, least=_least(part * PUBLISHED_GAINS[level]))
        for level, pair in both.items()
    ]
    return [*effects, contrast("higher against lower", both["higher"], both["lower"], growth)]


def dynamic(evidence: Evidence, *, studies: list[str], least: float) -> list[Effect]:
    """FedAST (D) against FedAST (S): seconds to all targets (Figures 22, 24 and 26)."""
    effects = []
    for study in studies:
        results = evidence.study(study)
        both = (costs(results, method(results, "fedast", option)) for option in "SD")
        effects.append(ratio(study if len(studies) > 1 else "", *both, least=least))
    return effects


def buffers(
    evidence: Evidence, *, studies: list[str], points: float, least: float, targets: Goal
) -> list[Effect]:
    """The smallest b with R / b up to 37 against the extremes (Figures 8 and 9).

    Its final accuracy is higher than that of the smallest b, and it takes fewer seconds to the
    target than the largest b.
    """
    effects = []
    for results in map(evidence.study, studies):
        cases = sorted(results.study.cases, key=lambda case: int(case["buffer"]))
        chosen = next((c for c in cases if c["requests"] / c["buffer"] <= MAX_RATIO), None)
        for task in names(cases[0]) if cases else ():
            best, small = (finals(results, case, [task]) for case in (chosen, cases[0]))
            effects.append(difference(f"{SHOWN[task]}, accuracy", best, small, points))
            slow, fast = (costs(results, c, [task], goal=targets) for c in (cases[-1], chosen))
            effects.append(ratio(f"{SHOWN[task]}, seconds", slow, fast, least))
    return effects


def awaited(
    evidence: Evidence, *, study: str, chosen: int, points: float, least: float, targets: Goal
) -> list[Effect]:
    """k = ``chosen`` against the extremes in Sync-ST (Figures 10 to 12), for each task.

    The smallest k reaches a lower final accuracy and the largest takes more seconds to the target,
    but fewer rounds.
    """
    results, effects = evidence.study(study), []
    for task in dict.fromkeys(kinds(case)[0] for case in results.study.cases):
        cases = [case for case in results.study.cases if kinds(case)[0] == task]
        small, *_, large = sorted(cases, key=lambda case: int(case["first"]))
        middle = first_of(cases, first=chosen)
        seconds = (costs(results, case, goal=targets) for case in (large, middle))
        rounds = (costs(results, c, quantity="version", goal=targets) for c in (middle, large))
        accuracies = (finals(results, case) for case in (middle, small))
        effects.append(difference(f"{SHOWN[task]}, accuracy", *accuracies, least=points))
        effects.append(ratio(f"{SHOWN[task]}, seconds", *seconds, least=least))
        effects.append(ratio(f"{SHOWN[task]}, rounds", *rounds, least=least))
    return effects


def _least(gain: float) -> float:
    """The ratio T_base / T for a gain in percent."""
    return 1 / (1 - gain / 100)
