"""HIST's Tables 1 and 2 and the numbers of Figures 3, 4 and 8, with the paper's for comparison."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from experiments.evidence import costs_by_seed, final_by_seed
from experiments.hist.figures import BUDGET, QUANTITIES, SPLITS, TARGET, largest_step
from experiments.studies import Case, Results
from experiments.tables import table_of
from wirelessfl.results.costs import accuracies, markdown, reached, spread
from wirelessfl.results.intervals import Effect, difference, ratio
from wirelessfl.runs.targets import cost_to

# For both targets, the global rounds derived from the published MB by the formula of Section VI-B2
# (0: not derived), and the published MB. Keys: table, then split, N and algorithm.
PUBLISHED: dict[str, dict[tuple[str, int, str], tuple[tuple[int, int], tuple[float, float]]]] = {
    "table1": {
        ("noniid", 2, "hist"): ((30, 262), (13.20, 115.30)),
        ("noniid", 2, "hfedavg"): ((28, 244), (23.66, 206.18)),
        ("noniid", 4, "hist"): ((34, 320), (8.08, 76.06)),
        ("noniid", 4, "hfedavg"): ((24, 292), (20.28, 246.74)),
        ("cell-iid", 2, "hist"): ((10, 88), (4.40, 38.72)),
        ("cell-iid", 2, "hfedavg"): ((8, 102), (6.76, 86.20)),
        ("cell-iid", 4, "hist"): ((14, 104), (3.32, 24.72)),
        ("cell-iid", 4, "hfedavg"): ((14, 106), (11.84, 89.58)),
    },
    "table2": {
        ("noniid", 2, "hist"): ((0, 0), (177.50, 856.14)),
        ("noniid", 2, "hfedavg"): ((38, 156), (392.16, 1609.92)),
        ("noniid", 4, "hist"): ((0, 0), (110.64, 528.18)),
        ("noniid", 4, "hfedavg"): ((38, 174), (392.16, 1795.68)),
        ("cell-iid", 2, "hist"): ((0, 0), (114.76, 584.52)),
        ("cell-iid", 2, "hfedavg"): ((22, 118), (227.04, 1217.76)),
        ("cell-iid", 4, "hist"): ((0, 0), (74.72, 394.84)),
        ("cell-iid", 4, "hfedavg"): ((26, 152), (268.32, 1568.64)),
    },
}
FORMS = {"round": "d", "uplink_mib": ".1f", "sim_seconds": ".1f", "joules": ".3f"}
"""Formats of costs."""
TARGETS = {"table1": (0.7, 0.8), "table2": (0.5, 0.7)}


def traffic(results: Results, goals: Sequence[float] = (0.75, TARGET)) -> str:
    """Figures 3 and 4, and label shards by cell: accuracies, and costs to each of the goals."""
    order = [*SPLITS]
    return table_of(
        sorted(
            results.where(),
            key=lambda case: (order.index(case["split"]), -case["lr"], case.label),
        ),
        {
            "split": lambda case: SPLITS[case["split"]],
            "step size": lambda case: f"{case['lr']:g}",
            "run": lambda case: case.label,
            "seeds": lambda case: str(len(results.of(case))),
            "accuracy (%) after 10 / 20 / 40 / 60 / 100": lambda case: accuracies(
                results.rows(case), (10, 20, 40, 60, 100)
            ),
            "final accuracy (%)": lambda case: spread(results.finals(case)),
            **costs(results, *goals),
        },
    )


def savings(results: Results) -> str:
    """Figure 4: what both methods need to 80 %, and the ratio of their traffic with interval."""
    head = ["split", "N", "MiB: HFedAvg / HIST", "seconds", "joules", "ratio of MiB"]
    head += ["final accuracy, HIST - HFedAvg (pp)"]
    cases = largest_step(results)
    rows = []
    for split, n in dict.fromkeys((case["split"], case["cells"]) for case in cases):
        pair = [
            [
                one
                for one in cases
                if (one["algorithm"], one["split"], one["cells"]) == (a, split, n)
            ]
            for a in ("hfedavg", "hist")
        ]
        if not all(pair):
            continue
        (full,), (part,) = pair
        sent = [costs_by_seed(results.of(case), TARGET, "uplink_mib") for case in (full, part)]
        ends = [final_by_seed(results, case) for case in (part, full)]
        spent = [
            [reached(results.rows(case), TARGET, one, FORMS[one]) for case in (full, part)]
            for one in BUDGET
        ]
        rows.append(
            [
                SPLITS[split],
                str(n),
                *(" / ".join(one.partition(" (")[0] for one in both) for both in spent),
                _interval(ratio("", *sent, 1.0)),
                _interval(difference("", *ends, 0.0)),
            ]
        )
    return markdown(head, sorted(rows, key=lambda row: ([*SPLITS.values()].index(row[0]), row[1])))


def _interval(effect: Effect) -> str:
    """A value and its interval, without the number of seeds."""
    return str(effect).rpartition(", ")[0] + ")"


def costs(results: Results, *goals: float) -> dict[str, Callable[[Case], str]]:
    """Columns of rounds, MiB, seconds and joules until each of the goals."""

    def column(quantity: str, goal: float) -> Callable[[Case], str]:
        return lambda case: reached(results.rows(case), goal, quantity, FORMS[quantity])

    return {
        f"{title} to {100 * goal:g} %": column(quantity, goal)
        for quantity, title in QUANTITIES.items()
        for goal in goals
    }


def schemes(results: Results) -> str:
    """Figure 8: three hidden layers with both partition schemes."""
    return table_of(
        results.where(),
        {
            "partition": lambda case: case["partition"] or "none",
            "run": lambda case: case.label,
            "MiB per client and round": lambda case: (
                f"{statistics.mean(map(_mib_per_round, results.rows(case))):.2f}"
            ),
            "accuracy (%) after 10 / 20 / 40": lambda case: accuracies(
                results.rows(case), (10, 20, 40)
            ),
            "rounds to 80 %": lambda case: reached(results.rows(case), 0.8, "round", "d"),
            "MiB to 80 %": lambda case: reached(results.rows(case), 0.8, "uplink_mib"),
        },
    )


def _mib_per_round(rows: list[dict[str, Any]]) -> float:
    mib: float = rows[-1]["uplink_mib"] / rows[-1]["round"]
    return mib


def published_mb(rounds: float, cells: int, model_mb: float, conv: int, dense: int) -> float:
    """MB per client in the accounting of Section VI-B2, with E = 5.

    E * (vol_c + vol_f / N) / (vol_c + vol_f) * model size per round; N = 1 for the full model.
    """
    return rounds * 5 * model_mb * (conv + dense / cells) / (conv + dense)


def targets(results: Results) -> str:
    """Tables I and II: rounds, transmitted MiB, and MB in the accounting of Section VI-B2."""
    name = results.study.name
    goals = TARGETS[name]
    head = ["split", "run", f"rounds to {' / '.join(f'{100 * at:g}' for at in goals)} %", "paper"]
    head += ["MiB sent", *["MB by VI-B2, 61,706 parameters"] * (name == "table1"), "paper"]
    rows = []
    for case in results.study.cases:
        rounds, mb = PUBLISHED[name][case["split"], case["cells"], case["algorithm"]]
        seeds = results.rows(case)
        end = case["target"] if case["stop_at_target"] else 1.0
        columns = [
            [_to(seeds, at, "round", "d", end) for at in goals],
            list(map(str, rounds)) if rounds[0] else ["not given"],
            [_to(seeds, at, "uplink_mib", ".2f", end) for at in goals],
            [f"{one:.2f}" for one in mb],
        ]
        if name == "table1":
            share = case["cells"] if case["algorithm"] == "hist" else 1
            columns.insert(3, [_by_formula(seeds, at, share) for at in goals])
        rows.append([SPLITS[case["split"]], case.label, *map(" / ".join, columns)])
    return markdown(head, rows)


def _to(
    seeds: Sequence[list[dict[str, Any]]],
    accuracy: float,
    quantity: str,
    form: str,
    end: float,
) -> str:
    """The cost until ``accuracy``, for runs that stop at accuracy ``end``."""
    return reached(seeds, accuracy, quantity, form) if seeds and accuracy <= end else "not run"


def _by_formula(seeds: Sequence[list[dict[str, Any]]], accuracy: float, cells: int) -> str:
    costs = [cost_to(rows, accuracy) for rows in seeds]
    values = [cost.row["round"] for cost in costs if cost.reached]
    if not values or len(values) < len(seeds):
        return "-"
    return f"{published_mb(statistics.mean(values), cells, 0.169, 2572, 59134):.2f}"


def ablation_rows(results: Results) -> str:
    """One row per ablation, with the command that repeats it."""
    head = ["run", "step size", "dropout", "hidden biases"]
    head += ["accuracy (%) after 10 / 20 / 30 / 40", "rounds to 75 %", "rounds to 80 %"]
    head += ["MiB to 75 %", "MiB to 80 %"]
    rows, commands = [], []
    for case in results.where():
        seeds = results.rows(case)
        dropout = case["dropout"] or 0.0
        biases = case["hidden_biases"] or ("exchanged" if case["algorithm"] == "hist" else "-")
        rows.append(
            [
                case.label,
                f"{case['lr']:g}",
                f"{dropout:g}",
                biases,
                accuracies(seeds, (10, 20, 30, 40)),
                *(reached(seeds, at, "round", "d") for at in (0.75, 0.8)),
                *(reached(seeds, at, "uplink_mib") for at in (0.75, 0.8)),
            ]
        )
        commands.append(f"{_title(case, dropout, biases)}: `{case.command}`")
    listed = "".join(f"- {command}\n" for command in commands)
    return markdown(head, rows) + "\nCommands, by row:\n\n" + listed


def _title(case: Case, dropout: float, biases: str) -> str:
    return f"{case.label}, lr {case['lr']:g}, dropout {dropout:g}, biases {biases}"
