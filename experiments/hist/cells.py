"""Slow and fast cells: synchronous rounds compared with asynchronous aggregation of cells."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from experiments.hist.figures import QUANTITIES, TARGET, Lines, draw_by_place, facts
from experiments.labels import costs_of
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import new_figure
from wirelessfl.base.rows import as_mean_value
from wirelessfl.results.costs import markdown, reached, spread
from wirelessfl.results.panels import legend
from wirelessfl.results.selection import NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = {"1/4": 0.25, "1/2": 0.5, "all": 1.0}
"""Fractions of the simulated time at which the table reports accuracies."""


def cells_figure(results: Results) -> Figure:
    """Seconds to 80 % and final accuracy by schedule, one line per algorithm and network."""
    order = list(dict.fromkeys(map(schedule_label, results.study.cases)))
    costs: Lines = {}
    finals: Lines = {}
    for case in results.where():
        line = f"{NAMES[case['algorithm']]}, slow cells: {network_label(case['slowdown'])}"
        place = order.index(schedule_label(case))
        costs.setdefault(line, {})[place] = costs_of(results, case, "sim_seconds", TARGET)
        finals.setdefault(line, {})[place] = [*results.finals(case)]
    figure, axes = new_figure(2, 2.4)
    draw_by_place(axes[0], costs, "schedule", QUANTITIES["sim_seconds"], log=True)
    draw_by_place(axes[1], finals, "schedule", "final accuracy (%)")
    for panel in axes:
        panel.set_xticks(range(len(order)), [title.replace(", ", ",\n") for title in order])
    legend(figure, axes, *facts(results, results.where()))
    return figure


def cells_table(results: Results) -> str:
    """Accuracy at fractions of the shortest run's duration; seconds and MiB to a target."""
    head = [
        "slow cells",
        "run",
        "schedule",
        "seeds",
        "aggregations",
        "seconds per aggregation",
        "mean staleness",
    ]
    head += ["total seconds", f"accuracy (%) after {' / '.join(SHARES)} of the time"]
    head += ["final accuracy (%)", "s to 75 %", "s to 80 %", "MiB to 80 %", "J to 80 %"]
    rows = []
    for algorithm, slowdown in _panels(results):
        cases = results.where(algorithm=algorithm, slowdown=slowdown)
        end = min(run[-1]["sim_seconds"] for case in cases for run in results.rows(case))
        for case in cases:
            seeds = results.rows(case)
            rows.append(
                [
                    network_label(slowdown),
                    case.label,
                    schedule_label(case),
                    str(len(seeds)),
                    f"{statistics.mean(run[-1]['round'] for run in seeds):.0f}",
                    f"{statistics.mean(_seconds_per_merge(run) for run in seeds):.3g}",
                    f"{statistics.mean(map(mean_staleness, seeds)):.2f}",
                    f"{end:.3g}",
                    _accuracies(seeds, end),
                    spread(results.finals(case)),
                    *(reached(seeds, at, "sim_seconds") for at in (0.75, TARGET)),
                    reached(seeds, TARGET, "uplink_mib"),
                    reached(seeds, TARGET, "joules", ".3f"),
                ]
            )
    return markdown(head, rows)


def network_label(slowdown: float) -> str:
    """The slowdown of the first half of the cells relative to Section VI-C."""
    return "Section VI-C" if slowdown == 1 else f"{slowdown:g} times slower"


def schedule_label(case: Case) -> str:
    """``rounds``, or the number of cells per aggregation; and the cloud's step size."""
    if case["buffer"] is None:
        return "rounds"
    step = case["cloud_lr"] or 1
    return f"B = {case['buffer']}" + ("" if step == 1 else f", step {step:g}")


def accuracy_after(rows: Iterable[dict[str, Any]], seconds: float) -> float:
    """Accuracy of the cloud's model at time ``seconds``: that of the last row until then."""
    return [as_mean_value(row) for row in rows if row["sim_seconds"] <= seconds][-1]


def mean_staleness(rows: Iterable[dict[str, Any]]) -> float:
    """Mean staleness of a run with one row per merge; 0 for synchronous rounds."""
    by_merge: dict[int, float] = {}
    for row in rows:  # first row of each merge; a run with a time limit repeats the last
        by_merge.setdefault(row["round"], row.get("staleness_mean", 0.0))
    return statistics.mean(list(by_merge.values())[1:] or [0.0])


def _seconds_per_merge(rows: list[dict[str, Any]]) -> float:
    """Mean time between merges, without the incomplete one that a time limit may cut off."""
    last = next(row for row in rows if row["round"] == rows[-1]["round"])
    return float(last["sim_seconds"] / max(1, last["round"]))


def _accuracies(seeds: list[list[dict[str, Any]]], end: float) -> str:
    accuracies = (
        statistics.mean(accuracy_after(run, share * end) for run in seeds)
        for share in SHARES.values()
    )
    return " / ".join(f"{100 * accuracy:.1f}" for accuracy in accuracies)


def _panels(results: Results) -> list[tuple[str, float]]:
    """Algorithms and networks with finished runs."""
    return list(dict.fromkeys((case["algorithm"], case["slowdown"]) for case in results.where()))
