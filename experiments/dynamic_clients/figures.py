"""The dynamic-clients paper's figures, drawn from the rows of finished runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.dynamic_clients.methods import ALGORITHMS, SHOWN
from experiments.look import data_name, grid, legend, same_limits, save, seeds_text
from experiments.studies import NAMES, Case, Results
from wirelessfl.figures import draw_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = list(SHOWN.values())
FILES = ("dataset", "model", "split", "overlap")
"""Settings shared by the cases of a file, which differ in algorithm and warm start."""


def curves(name: str) -> Callable[[Results, Path], list[Path]]:
    """Figures 2 to 4: accuracy against rounds over all sessions, one curve per warm start.

    One panel per algorithm, one file per data set and label distribution; medians over the seeds. A
    session's initial model is drawn at the last round of the previous session, so a change of
    clients appears as a step.
    """

    def draw(results: Results, out: Path) -> list[Path]:
        groups: dict[tuple[Any, ...], list[Case]] = {}
        for case in results.where():
            groups.setdefault(tuple(case[key] for key in FILES), []).append(case)
        drawn = []
        for place, cases in enumerate(groups.values()):
            file = name if place == 0 else f"{name}-{_file(cases[0])}"
            drawn += _panels(results, cases, out / file)
        return drawn

    return draw


def _panels(results: Results, cases: Sequence[Case], file: Path) -> list[Path]:
    algorithms = [one for one in ALGORITHMS if one in {case["algorithm"] for case in cases}]
    figure, axes = grid(len(algorithms), height=2.1)
    for panel, algorithm in zip(axes, algorithms, strict=True):
        panel_cases = [case for case in cases if case["algorithm"] == algorithm]
        runs = {
            SHOWN[start]: [
                rows for c in panel_cases if c["warm_start"] == start for rows in results.rows(c)
            ]
            for start in SHOWN
            if start in {case["warm_start"] for case in panel_cases}
        }
        draw_curves(panel, runs, "round", legend=False, styles=STYLES, median=True)
        mark_sessions(panel, next(iter(runs.values()))[0])
        panel.set_title(NAMES[algorithm])
    same_limits(axes, x=True)
    seeds = seeds_text(results, cases, "median and range")
    dotted = "dotted: change of clients"
    legend(figure, axes, data_name(cases), _dealt(cases[0]), seeds, dotted, order=STYLES)
    return save(figure, results, file)


def mark_sessions(panel: Axes, rows: Sequence[dict[str, Any]]) -> None:
    """Mark the starts of all sessions except the first."""
    for at in starts(rows):
        panel.axvline(at, color="0.6", linewidth=0.8, linestyle=":", zorder=0)


def starts(rows: Sequence[dict[str, Any]]) -> list[int]:
    """Number of completed rounds at the start of each session except the first."""
    first: dict[int, int] = {}
    for row in rows:
        first.setdefault(row["session"], row["round"] - row["session_round"])
    return [at for session, at in first.items() if session > 0]


def _dealt(case: Case) -> str:
    if case["split"] == "dirichlet":
        return f"overlap {case['overlap']:g}, Dir({case['alpha']:g})"
    return str(case["split"])


def _file(case: Case) -> str:
    text = f"{case['dataset']}-{case['split']}-{case['overlap']:g}"
    return text.replace("-dirichlet", "").removesuffix("-0").replace(".", "")
