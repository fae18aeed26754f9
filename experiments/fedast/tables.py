"""The numbers of FedAST's figures as tables, with the paper's numbers for comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.fedast.measures import (
    fastest,
    final,
    gain,
    staleness,
    to_end,
    to_mean,
)
from experiments.fedast.measures import identical as seconds_of
from experiments.fedast.measures import to_target as times_of
from experiments.fedast.tasks import Goal, is_central, kinds, label, names, target, title
from experiments.studies import Case, Results
from wirelessfl.results.costs import cost_text, markdown
from wirelessfl.results.intervals import ratio as ratio_of

# Published gains over Sync-ST, in percent: in the time until the last task reaches its target, with
# FedAST (D) (Figures 7, 18 and 20); and in the mean over 2, 4 and 6 CIFAR-100 tasks (Figure 16).
PUBLISHED_GAINS = {"heterogeneous": 40.1, "higher": 55.9, "lower": 16.3}
PUBLISHED_CIFAR100 = {2: 22.0, 4: 40.7, 6: 56.3}
PUBLISHED_MAX = 46.0
"""Largest gain of Figure 5; the paper shows the others only as bars."""
PUBLISHED_DYNAMIC = 11.9
"""Largest gain of FedAST (D) over FedAST (S) (Section 5.3; Figures 22, 24 and 26)."""
COSTS = {"seconds": "sim_seconds", "rounds": "version"}
"""Costs until a target in rounds of one task, and their fields of rows."""
CaseFilter = Callable[[Case], bool]


def everything(case: Case) -> bool:
    """Accept all cases."""
    return True


def against_sync(case: Case) -> bool:
    """Accept FedAST (D) and Sync-ST."""
    return case["option"] == "D" or case["algorithm"] == "sync-st"


def against_static(case: Case) -> bool:
    """Accept FedAST (D) and FedAST (S)."""
    return bool(case["algorithm"] == "fedast")


def shown(values: Sequence[float | None], form: str = ".0f") -> str:
    """Mean and range of the values, or a bound, see ``cost_text``."""
    return cost_text(values, form)


def percent(value: float | None) -> str:
    """A gain in percent; a dash for None."""
    return "-" if value is None else f"{100 * value:+.1f} %"


def task_title(case: Case, name: str, goal: Goal = None) -> str:
    """The data set of a task and its target."""
    return f"{title(case, name)} {100 * target(case, name, goal):.0f} %"


def stale(results: Results, case: Case) -> str:
    """Mean and maximum staleness of merged updates."""
    delays = staleness(results, case)
    return "-" if delays is None else f"{delays[0]:.1f} / {delays[1]}"


def times(results: Results, case_filter: CaseFilter = everything) -> str:
    """Figures 7, 18, 20, 22, 24, 26: seconds to each and to all targets, and FedAST's gains."""
    cases = [case for case in results.where() if case_filter(case)]
    bases = [c for c in cases if c["algorithm"] == "sync-st" and c["first"] != 0]
    if case_filter is against_sync and bases:
        bases = [fastest(results, bases)]
    bases += [case for case in cases if case_filter is against_static and case["option"] == "S"]
    if not cases:
        return markdown(["method"], [])
    head = ["method", "seeds", *(task_title(cases[0], name) for name in names(cases[0]))]
    head += ["all", *(f"gain over {label(base)}" for base in bases), "published"]
    head += ["staleness, mean / max"]
    rows = []
    for case in cases:
        ends = to_end(results, case)
        gains = [
            "-" if base is case else percent(gain(to_end(results, base), ends)) for base in bases
        ]
        row = [label(case), str(len(ends))]
        row += [shown(times_of(results, case, name)) for name in names(case)]
        row += [shown(ends), *gains, _published(results.study.name, case, case_filter)]
        rows.append([*row, stale(results, case)])
    return "Simulated seconds to the targets, means over the seeds.\n\n" + markdown(head, rows)


def _published(study: str, case: Case, case_filter: CaseFilter) -> str:
    if case["option"] != "D":
        return "-"
    if case_filter is against_static:
        return f"up to {PUBLISHED_DYNAMIC:+.1f} % over FedAST (S)"
    value = PUBLISHED_GAINS.get(study, PUBLISHED_GAINS["heterogeneous"])
    return f"{value:+.1f} %, four tasks"


def identical(results: Results) -> str:
    """Figures 5 and 16: seconds to the target, mean over identical tasks, and their ratio."""
    head = ["tasks", "FedAST", "Sync-ST", "Sync-ST / FedAST", "published"]
    head += ["staleness, mean / max"]
    rows = []
    for kind, count, fedast, sync in pairs(results):
        case = fedast or sync
        assert case is not None
        effect = ratio_of("", *seconds_of(results, kind, count), 1.0)
        published = PUBLISHED_CIFAR100.get(count) if kind == "cifar100" else PUBLISHED_MAX
        rows.append(
            [
                f"{count} {task_title(case, names(case)[0])}",
                "-" if fedast is None else shown(to_mean(results, fedast)),
                "-" if sync is None else shown(to_mean(results, sync)),
                str(effect),
                "-" if published is None else "up to " * (kind != "cifar100") + as_ratio(published),
                "-" if fedast is None else stale(results, fedast),
            ]
        )
    return "Simulated seconds, means over tasks and seeds.\n\n" + markdown(head, rows)


def as_ratio(gain: float) -> str:
    """A published gain (T_base - T) / T_base in percent as the ratio T_base / T."""
    return f"{1 / (1 - gain / 100):.2f}"


def sustained(results: Results, goal: Goal, tests: int) -> str:
    """Identical tasks at equal concurrency: seconds to the target, once and over several tests."""
    head = ["tasks", "method", "R per task", "b", "seeds", "seconds to the target"]
    head += [f"seconds to the target, mean of {tests} evaluations", "final accuracy (%)"]
    head += ["staleness, mean / max"]
    rows = [
        [
            f"{len(names(case))} {task_title(case, names(case)[0], goal)}",
            label(case),
            str(case["requests"] or "-"),
            str(case["buffer"] or "-"),
            str(len(results.of(case))),
            shown(to_mean(results, case, goal)),
            shown(to_mean(results, case, goal, tests)),
            _final(results, case)[0],
            stale(results, case),
        ]
        for case in results.where()
    ]
    return "Simulated seconds, means over tasks and seeds.\n\n" + markdown(head, rows)


def pairs(results: Results) -> list[tuple[str, int, Case | None, Case | None]]:
    """Cases of FedAST and of Sync-ST for each data set and number of copies."""
    by_kind: dict[tuple[str, int], dict[str, Case]] = {}
    for case in results.where():
        key = kinds(case)[0], len(names(case))
        by_kind.setdefault(key, {})[case["algorithm"]] = case
    return [(*key, cases.get("fedast"), cases.get("sync-st")) for key, cases in by_kind.items()]


def finals(results: Results) -> str:
    """Figures 2, 4 and 14: accuracy and loss at the end, and seconds to the targets."""
    head = ["method", "tasks", "seeds", "simulated s", "final accuracy (%)", "final loss"]
    head += ["seconds to the targets, mean over tasks", "staleness, mean / max"]
    rows = []
    for case in results.where():
        ends = [run.rows[-1]["sim_seconds"] for run in results.of(case)]
        rows.append(
            [
                label(case),
                " + ".join(title(case, name) for name in names(case)),
                str(len(ends)),
                shown(ends),
                *_final(results, case),
                shown(to_mean(results, case)),
                stale(results, case),
            ]
        )
    return markdown(head, rows)


def _final(results: Results, case: Case) -> list[str]:
    accuracies = [100 * value for value in final(results, case)]
    return [shown(accuracies, ".1f"), shown(final(results, case, "loss"), ".3f")]


def active(results: Results) -> str:
    """Figures 3 and 13: final accuracy and loss against the ratio of active clients."""
    head = ["task", "method", "active requests / clients", "b", "final accuracy (%)"]
    head += ["final loss", "staleness, mean / max"]
    rows = []
    for case in results.where():
        central = is_central(case)
        rows.append(
            [
                title(case, kinds(case)[0]),
                label(case),
                "-" if central else f"{ratio(case):.3f}",
                "-" if central else str(case["buffer"] or 1),
                *_final(results, case),
                "-" if central else stale(results, case),
            ]
        )
    return markdown(head, rows)


def ratio(case: Case) -> float:
    """Active requests of all tasks divided by the number of clients."""
    return float(case["requests"] * len(names(case)) / case["clients"])


def buffers(results: Results, goal: Goal = None) -> str:
    """Figures 8 and 9: final accuracy and seconds to the targets against b."""
    head = ["b", "R / b", "task", "final accuracy (%)", "seconds to the target"]
    rows = []
    for case in sorted(results.where(), key=lambda case: int(case["buffer"])):
        for name in names(case):
            accuracies = [100 * v for v in final(results, case, of=[name])]
            rows.append(
                [
                    str(case["buffer"]),
                    f"{case['requests'] / case['buffer']:.0f}",
                    task_title(case, name, goal),
                    shown(accuracies, ".1f"),
                    shown(times_of(results, case, name, goal=goal)),
                ]
            )
    return markdown(head, rows)


def awaited(results: Results) -> str:
    """Figures 10 to 12: effect of k on Sync-ST, with the lower and the main targets."""
    levels = "lower", "main"
    head = ["k", "task", *(f"{q} to the {one} target" for one in levels for q in COSTS)]
    rows = []
    for case in results.where():
        (name,) = names(case)
        goals = " / ".join(f"{100 * target(case, name, level):.0f}" for level in levels)
        costs = [
            shown(times_of(results, case, name, quantity, level))
            for level in levels
            for quantity in COSTS.values()
        ]
        task = f"{title(case, name)}, {goals} %"
        rows.append([str(case["first"]), task, *costs, _final(results, case)[0]])
    return markdown([*head, "final accuracy (%)"], rows)
