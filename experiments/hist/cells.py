"""Slow and fast cells: synchronous rounds, and a cloud that merges cells as they come."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from experiments.hist.figures import TARGET
from experiments.report import markdown, reached
from experiments.studies import NAMES, Case, Results
from wirelessfl.figures import draw_curves, new_figure, save_figure

SHARES = {"1/4": 0.25, "1/2": 0.5, "all": 1.0}
"""Shares of the simulated time after which the table tells accuracies."""


def cells_figure(results: Results, out: Path) -> list[Path]:
    """Accuracy against simulated seconds: a panel for every algorithm and network."""
    panels = _panels(results)
    figure, axes = new_figure(columns=len(panels), height=2.8)
    styles = list(dict.fromkeys(map(schedule_label, results.study.cases)))
    for place, (panel, (algorithm, slowdown)) in enumerate(zip(axes, panels, strict=True)):
        cases = results.where(algorithm=algorithm, slowdown=slowdown)
        curves = {schedule_label(case): results.rows(case) for case in cases}
        draw_curves(panel, curves, "sim_seconds", target=TARGET, legend=place == 0, styles=styles)
        panel.set_title(f"{NAMES[algorithm]}, {network_label(slowdown)}", fontsize=9)
    return save_figure(figure, out / "cells")


def cells_table(results: Results) -> str:
    """Accuracy along the simulated time that all schedules cover, seconds and MiB to a target."""
    head = ["slow cells", "run", "schedule", "seeds", "merges", "seconds a merge", "mean staleness"]
    head += ["seconds in all", f"accuracy (%) after {' / '.join(SHARES)} of them"]
    head += ["s to 75 %", "to 80 %", "MiB to 80 %"]
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
                    f"{statistics.mean(_seconds_a_merge(run) for run in seeds):.3g}",
                    f"{statistics.mean(map(mean_staleness, seeds)):.2f}",
                    f"{end:.3g}",
                    _accuracies(seeds, end),
                    *(reached(seeds, at, "sim_seconds") for at in (0.75, TARGET)),
                    reached(seeds, TARGET, "uplink_mib"),
                ]
            )
    return markdown(head, rows)


def network_label(slowdown: float) -> str:
    """How much slower the first half of the cells is than in Section VI-C."""
    return "Section VI-C" if slowdown == 1 else f"factor of {slowdown:g}"


def schedule_label(case: Case) -> str:
    """Rounds, or how many cells are merged at a time."""
    return "rounds" if case["buffer"] is None else f"B = {case['buffer']}"


def accuracy_after(rows: Iterable[dict[str, Any]], seconds: float) -> float:
    """Accuracy of the last row by then: of the model that the cloud has at that time."""
    return [float(row["accuracy"]) for row in rows if row["sim_seconds"] <= seconds][-1]


def mean_staleness(rows: Iterable[dict[str, Any]]) -> float:
    """Of a run with a row a merge; 0 of synchronous rounds."""
    by_merge: dict[int, float] = {}
    for row in rows:  # the first row of a merge tells it; a run by the clock ends with another one
        by_merge.setdefault(row["round"], row.get("staleness_mean", 0.0))
    return statistics.mean(list(by_merge.values())[1:] or [0.0])


def _seconds_a_merge(rows: list[dict[str, Any]]) -> float:
    """Of whole merges; a run by the clock ends within one."""
    last = next(row for row in rows if row["round"] == rows[-1]["round"])
    return float(last["sim_seconds"] / max(1, last["round"]))


def _accuracies(seeds: list[list[dict[str, Any]]], end: float) -> str:
    found = (
        statistics.mean(accuracy_after(run, share * end) for run in seeds)
        for share in SHARES.values()
    )
    return " / ".join(f"{100 * accuracy:.1f}" for accuracy in found)


def _panels(results: Results) -> list[tuple[str, float]]:
    """Algorithms and networks with something to draw."""
    return list(dict.fromkeys((case["algorithm"], case["slowdown"]) for case in results.where()))
