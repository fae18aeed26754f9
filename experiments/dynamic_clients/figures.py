"""The dynamic-clients paper's figures, drawn from the rows of finished runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.dynamic_clients.measures import last, session_of
from experiments.dynamic_clients.methods import ALGORITHMS, SHOWN
from experiments.look import data_name, save, seeds_text
from experiments.studies import Case, Results
from wirelessfl.divergence import counted
from wirelessfl.figures import draw_curves, new_figure
from wirelessfl.results.names import NAMES
from wirelessfl.results.panels import legend, same_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = list(SHOWN.values())
FILES = ("dataset", "model", "split", "overlap")
"""Settings shared by the cases of a file, which differ in algorithm and warm start."""
FIRST, APART = 10, 13
"""Rounds shown of a session in the right panels, and the distance of their starts."""


def curves(name: str) -> Callable[[Results, Path], list[Path]]:
    """Figures 2 to 4: accuracy against rounds over all sessions, one curve per warm start.

    One row of panels per algorithm, one file per data set and label distribution; medians over the
    seeds. A session's initial model is drawn at the last round of the previous session, so a change
    of clients appears as a step. The panels on the right show the first rounds after the
    transitions at which the warm starts differ.
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
    figure, axes = new_figure(2, height=1.6, rows=len(algorithms))
    for panel, zoomed, algorithm in zip(axes[::2], axes[1::2], algorithms, strict=True):
        panel_cases = [case for case in cases if case["algorithm"] == algorithm]
        runs = {
            SHOWN[start]: [
                rows for c in panel_cases if c["warm_start"] == start for rows in results.rows(c)
            ]
            for start in SHOWN
            if start in {case["warm_start"] for case in panel_cases}
        }
        numbers = range(1, last(panel_cases[0]) + 1)
        early = {
            name: [after_transitions(rows, numbers) for rows in seeds]
            for name, seeds in runs.items()
        }
        for shown, of in ((panel, runs), (zoomed, early)):
            draw_curves(
                shown, of, "round", legend=False, styles=STYLES, median=True, wide=STYLES[:1]
            )
        mark_sessions(panel, next(iter(runs.values()))[0])
        places = [(APART * i + at, str(at)) for i in range(len(numbers)) for at in (0, 5, FIRST)]
        zoomed.set_xticks(*zip(*places, strict=True))
        zoomed.set_xlabel(f"round after transition {', '.join(map(str, numbers))}")
        panel.set_title(NAMES[algorithm])
        zoomed.set_title(f"{NAMES[algorithm]}, first {FIRST} rounds")
    same_limits(axes)
    same_limits(axes[::2], x=True)
    seeds = seeds_text(results, cases, "median and range")
    dotted = "dotted: change of clients"
    legend(figure, axes, data_name(cases), _dealt(cases[0]), seeds, dotted, order=STYLES)
    return save(figure, results, file)


def after_transitions(
    rows: Sequence[dict[str, Any]], numbers: Sequence[int]
) -> list[dict[str, Any]]:
    """The first rounds after these transitions, side by side with a gap between them."""
    found = []
    for place, number in enumerate(numbers):
        found += [
            {"round": APART * place + row["session_round"], "accuracy": counted(row)}
            for row in rows
            if row["session"] == session_of(number) and row["session_round"] <= FIRST
        ]
        found.append({"round": APART * (place + 1) - 1, "accuracy": math.nan})
    return found[:-1]


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
