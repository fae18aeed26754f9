"""FedAST against a setting: active clients (Figures 3, 13), b (8, 9), awaited updates k (10-12)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.fedast.measures import final, to_target
from experiments.fedast.tables import ratio
from experiments.fedast.tasks import Goal, is_central, kinds, label, names, target, targets, title
from experiments.labels import seeds_text
from experiments.studies import Results
from wirelessfl.base.figures.curves import colour_of, new_figure, whole_ticks
from wirelessfl.base.rows import is_accuracy, title_of
from wirelessfl.results.panels import draw_points, grid, legend, same_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHOSEN = 30
"""k in the paper's experiments."""


def active(results: Results, what: str = "accuracy") -> Figure:
    """Figures 3 and 13: final accuracy or loss against the ratio of active clients, by data set."""
    percent = 100 if is_accuracy(what) else 1
    models = list(dict.fromkeys(kinds(case)[0] for case in results.where()))
    figure, axes = grid(len(models))
    for panel, kind in zip(axes, models, strict=True):
        cases = [case for case in results.where() if kinds(case) == (kind,)]
        lines = list(dict.fromkeys(label(c) for c in cases if not is_central(c)))
        for place, line in enumerate(lines):
            points = {
                ratio(c): [percent * v for v in final(results, c, what)]
                for c in cases
                if label(c) == line
            }
            draw_points(panel, points, line, place)
        for case in cases:
            if is_central(case):
                height = percent * statistics.mean(final(results, case, what))
                look = {"color": colour_of(label(case)), "linestyle": "--"}
                panel.axhline(height, label=label(case), **look)
        count = max(len(names(case)) for case in cases)
        data = title(cases[0], kind)
        panel.set_title(f"{data}, one task" if count == 1 else f"mean of {count} {data} tasks")
        panel.set_xlabel("active requests / clients")
        _log_places(panel, sorted({ratio(c) for c in cases if not is_central(c)}))
        panel.set_ylabel(f"final {title_of(what).removeprefix('test ')}")
    same_limits(axes)
    legend(figure, axes, _seeds(results))
    return figure


def buffers(results: Results, goal: Goal = None) -> Figure:
    """Figures 8 and 9: final accuracy and seconds to the target against b, one line per task.

    ``goal`` gives the targets.
    """
    figure, axes = new_figure(columns=2)
    cases = results.study.cases
    tasks = names(cases[0])
    for place, task in enumerate(tasks):
        ends, seconds = {}, {}
        for case in cases:
            at, finished = float(case["buffer"]), bool(results.of(case))
            accuracies = [100 * v for v in final(results, case, of=[task])]
            ends[at] = accuracies if finished else None
            seconds[at] = to_target(results, case, task, goal=goal) if finished else None
        for panel, points in zip(axes, (ends, seconds), strict=True):
            draw_points(panel, points, title(cases[0], task), place)
    for panel, text in zip(
        axes, ("final accuracy (%)", "simulated time to target (s)"), strict=True
    ):
        panel.set_xlabel("buffer size b")
        panel.set_ylabel(text)
        whole_ticks(panel)
    axes[1].set_ylim(bottom=0)
    legend(figure, axes, targets(cases[0], goal), _seeds(results))
    return figure


def awaited(results: Results, goal: Goal = None) -> Figure:
    """Figures 10 to 12: seconds and rounds to the target, and final accuracy, against k.

    One line per data set; each case has one task. ``goal`` gives the targets.
    """
    figure, axes = new_figure(columns=3, height=2.3)
    cases = sorted(results.where(), key=lambda case: int(case["first"]))
    models = list(dict.fromkeys(kinds(case)[0] for case in results.study.cases))
    for place, kind in enumerate(models):
        mine = [case for case in cases if kinds(case) == (kind,)]
        if not mine:
            continue
        columns: list[list[Sequence[float | None]]] = [
            [to_target(results, case, names(case)[0], goal=goal) for case in mine],
            [to_target(results, case, names(case)[0], "version", goal) for case in mine],
            [[100 * value for value in final(results, case)] for case in mine],
        ]
        for panel, values in zip(axes, columns, strict=True):
            points = dict(zip([float(case["first"]) for case in mine], values, strict=True))
            draw_points(panel, points, title(mine[0], kind), place)
    texts = ("simulated seconds to target", "rounds to target", "final accuracy (%)")
    places = sorted({int(case["first"]) for case in cases})
    for panel, text in zip(axes, texts, strict=True):
        panel.axvline(CHOSEN, color="0.5", linewidth=0.8, linestyle=":")
        panel.set_xlabel("k, first updates per round")
        panel.set_ylabel(text)
        _log_places(panel, places)
    goals = {kinds(c)[0]: f"{100 * target(c, names(c)[0], goal):.0f} %" for c in cases}
    note = ", ".join(f"{title(cases[0], kind)} to {text}" for kind, text in goals.items())
    legend(figure, axes, note, _seeds(results), f"dotted line: k = {CHOSEN} of the paper")
    return figure


def _log_places(panel: Axes, places: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, with ticks at these places only."""
    panel.set_xscale("log")
    panel.set_xticks(places, [f"{place:.3g}" for place in places])
    panel.minorticks_off()


def _seeds(results: Results) -> str:
    return seeds_text(results, results.where())
