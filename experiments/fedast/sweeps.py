"""The FedAST figures against a setting: active clients, buffer size, awaited updates."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.fedast.drawing import Quantity, targets
from experiments.fedast.measures import final, to_target
from experiments.fedast.tables import ratio
from experiments.fedast.tasks import SHOWN, Goal, is_central, kind_of, kinds, label, names, target
from experiments.look import save, seeds_text
from experiments.paper import Draw
from experiments.studies import Results
from wirelessfl.figures import COLOURS, new_figure, style, whole_ticks
from wirelessfl.results.panels import draw_points, grid, legend, same_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHOSEN = 30
"""k in the paper's experiments."""


def active(name: str, quantity: Quantity = "accuracy") -> Draw:
    """Figures 3 and 13: a quantity against the ratio of active clients, by data set."""

    def draw(results: Results, out: Path) -> list[Path]:
        each = list(dict.fromkeys(kinds(case)[0] for case in results.where()))
        figure, axes = grid(len(each))
        scale = 100 if quantity == "accuracy" else 1
        for panel, kind in zip(axes, each, strict=True):
            cases = [case for case in results.where() if kinds(case) == (kind,)]
            lines = list(dict.fromkeys(label(c) for c in cases if not is_central(c)))
            for place, line in enumerate(lines):
                points = {
                    ratio(c): [scale * v for v in final(results, c, quantity)]
                    for c in cases
                    if label(c) == line
                }
                draw_points(panel, points, line, place)
            for case in cases:
                if is_central(case):
                    height = scale * statistics.mean(final(results, case, quantity))
                    panel.axhline(height, color=COLOURS[3], linestyle="--", label="centralised")
            panel.set_title(_tasks_title(kind, max(len(names(case)) for case in cases)))
            panel.set_xlabel("active requests / clients")
            axis_label = "final accuracy (%)" if quantity == "accuracy" else "final loss"
            panel.set_ylabel(axis_label)
        same_limits(axes)
        legend(figure, axes, _seeds(results))
        return save(figure, results, out / name)

    return draw


def _tasks_title(kind: str, count: int) -> str:
    return f"{SHOWN[kind]}, one task" if count == 1 else f"mean of {count} {SHOWN[kind]} tasks"


def buffers(name: str, goal: Goal = None) -> Draw:
    """Figures 8 and 9: final accuracy and seconds to the target against b, one line per task.

    ``goal`` gives the targets.
    """

    def draw(results: Results, out: Path) -> list[Path]:
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
                draw_points(panel, points, SHOWN[kind_of(task)], place)
        for panel, text in zip(
            axes, ("final accuracy (%)", "simulated time to target (s)"), strict=True
        ):
            panel.set_xlabel("buffer size b")
            panel.set_ylabel(text)
            whole_ticks(panel)
        axes[1].set_ylim(bottom=0)
        legend(figure, axes, targets(cases[0], goal), _seeds(results))
        return save(figure, results, out / name)

    return draw


def awaited(name: str, goal: Goal = None) -> Draw:
    """Figures 10 to 12: seconds and rounds to the target, and final accuracy, against k.

    One line per data set; each case has one task. ``goal`` gives the targets.
    """

    def draw(results: Results, out: Path) -> list[Path]:
        figure, axes = new_figure(columns=3, height=2.3)
        cases = sorted(results.where(), key=lambda case: int(case["first"]))
        each = list(dict.fromkeys(kinds(case)[0] for case in results.study.cases))
        for place, kind in enumerate(each):
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
                draw_points(panel, points, SHOWN[kind], place)
                _star(panel, points.get(CHOSEN, []))
        texts = ("simulated seconds to target", "rounds to target", "final accuracy (%)")
        for panel, text in zip(axes, texts, strict=True):
            panel.set_xlabel("k, awaited updates")
            panel.set_ylabel(text)
            whole_ticks(panel)
        goals = {kinds(c)[0]: f"{100 * target(c, names(c)[0], goal):.0f} %" for c in cases}
        said = ", ".join(f"{SHOWN[kind]} to {text}" for kind, text in goals.items())
        known = any(case["first"] == CHOSEN for case in cases)
        stars = f"star: k = {CHOSEN} of the paper" if known else ""
        legend(figure, axes, said, _seeds(results), stars)
        return save(figure, results, out / name)

    return draw


def _star(panel: Axes, seeds: Sequence[float | None]) -> None:
    """Mark the mean at the paper's k."""
    known = [value for value in seeds if value is not None]
    if known:
        look = {"color": "black", "markersize": 1.3 * style().small, "zorder": 4}
        panel.plot(CHOSEN, statistics.mean(known), "*", **look)


def _seeds(results: Results) -> str:
    return seeds_text(results, results.where())
