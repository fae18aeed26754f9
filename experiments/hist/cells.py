"""Slow and fast cells: synchronous rounds compared with asynchronous merges of cells."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from experiments.hist.figures import TARGET, facts
from experiments.look import save
from experiments.report import markdown, reached
from experiments.studies import Case, Results
from wirelessfl.divergence import counted
from wirelessfl.figures import draw_curves
from wirelessfl.results.names import NAMES
from wirelessfl.results.panels import grid, legend, same_limits

SHARES = {"1/4": 0.25, "1/2": 0.5, "all": 1.0}
"""Fractions of the simulated time at which the table reports accuracies."""


def cells_figure(results: Results, out: Path) -> list[Path]:
    """Accuracy against simulated seconds, one panel per algorithm and network."""
    panels = _panels(results)
    figure, axes = grid(len(panels), height=2.2)
    styles = list(dict.fromkeys(map(schedule_label, results.study.cases)))
    for panel, (algorithm, slowdown) in zip(axes, panels, strict=True):
        cases = results.where(algorithm=algorithm, slowdown=slowdown)
        curves = {schedule_label(case): results.rows(case) for case in cases}
        draw_curves(panel, curves, "sim_seconds", target=TARGET, legend=False, styles=styles)
        panel.set_title(f"{NAMES[algorithm]}, slow cells: {network_label(slowdown)}")
    same_limits(axes)
    legend(figure, axes, *facts(results, results.where()))
    return save(figure, results, out / "cells")


def cells_table(results: Results) -> str:
    """Accuracy at fractions of the shortest run's duration; seconds and MiB to a target."""
    head = [
        "slow cells",
        "run",
        "schedule",
        "seeds",
        "merges",
        "seconds per merge",
        "mean staleness",
    ]
    head += ["total seconds", f"accuracy (%) after {' / '.join(SHARES)} of the time"]
    head += ["s to 75 %", "s to 80 %", "MiB to 80 %"]
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
                    *(reached(seeds, at, "sim_seconds") for at in (0.75, TARGET)),
                    reached(seeds, TARGET, "uplink_mib"),
                ]
            )
    return markdown(head, rows)


def network_label(slowdown: float) -> str:
    """The slowdown of the first half of the cells relative to Section VI-C."""
    return "Section VI-C" if slowdown == 1 else f"factor of {slowdown:g}"


def schedule_label(case: Case) -> str:
    """``rounds``, or the number of cells per merge."""
    return "rounds" if case["buffer"] is None else f"B = {case['buffer']}"


def accuracy_after(rows: Iterable[dict[str, Any]], seconds: float) -> float:
    """Accuracy of the cloud's model at time ``seconds``: that of the last row until then."""
    return [counted(row) for row in rows if row["sim_seconds"] <= seconds][-1]


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
    found = (
        statistics.mean(accuracy_after(run, share * end) for run in seeds)
        for share in SHARES.values()
    )
    return " / ".join(f"{100 * accuracy:.1f}" for accuracy in found)


def _panels(results: Results) -> list[tuple[str, float]]:
    """Algorithms and networks with finished runs."""
    return list(dict.fromkeys((case["algorithm"], case["slowdown"]) for case in results.where()))
