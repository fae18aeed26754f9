"""The FedAST paper's curves against simulated time, drawn from the rows of finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.fedast.drawing import Quantity, compared, targets
from experiments.fedast.measures import curves, runs, to_target
from experiments.fedast.tables import CaseFilter
from experiments.fedast.tasks import SHOWN, kind_of, kinds, label, names, target
from experiments.look import save, seeds_text
from experiments.paper import Draw
from experiments.studies import Results
from wirelessfl.divergence import counted
from wirelessfl.figures import COLOURS, DASHES, draw_curves
from wirelessfl.results.panels import grid, legend, same_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

UNEQUAL = 3.0
"""Ratio of the longest to the shortest curve from which the axis of time is logarithmic."""
LOSS_TOP = 2.5
"""Upper end of the loss axis, slightly above the loss of a uniform guess among ten classes."""


def of_methods(name: str, quantity: Quantity = "accuracy") -> Draw:
    """Figures 2, 4 and 14: mean over a data set's tasks against time, one panel per data set."""

    def draw(results: Results, out: Path) -> list[Path]:
        cases = results.where()
        each = kinds(cases[0])
        figure, axes = grid(len(each), height=2.8)
        for panel, kind in zip(axes, each, strict=True):
            by_method = {
                label(c): curves(results, c, [n for n in names(c) if kind_of(n) == kind])
                for c in cases
            }
            goal = target(cases[0], kind) if quantity == "accuracy" else None
            draw_curves(panel, by_method, "sim_seconds", what=quantity, target=goal, legend=False)
            count = sum(kind_of(n) == kind for n in names(cases[0]))
            title = SHOWN[kind] if count == 1 else f"mean of {count} {SHOWN[kind]} tasks"
            panel.set_title(title)
            if quantity == "loss":
                panel.set_ylim(0, min(panel.get_ylim()[1], LOSS_TOP))
        _stretch(axes)
        same_limits(axes)
        goals = targets(cases[0]) if quantity == "accuracy" else ""
        legend(figure, axes, goals, seeds_text(results, cases))
        return save(figure, results, out / name)

    return draw


def _stretch(axes: Sequence[Axes]) -> None:
    """Put time on logarithmic axes if, in a panel, a curve is much longer than another."""
    by_panel = [[times for line in panel.get_lines() if (times := _times(line))] for panel in axes]
    ends = [[times[-1] for times in curves] for curves in by_panel if curves]
    if any(max(each) > UNEQUAL * min(each) for each in ends):
        for panel, curves in zip(axes, by_panel, strict=True):
            if curves:
                panel.set_xscale("log")
                first, last = (f(times[i] for times in curves) for f, i in ((min, 0), (max, -1)))
                panel.set_xlim(first, 1.1 * last)


def _times(line: Line2D) -> list[float]:
    """The times of a curve after zero; none of the line of a target."""
    named = not str(line.get_label()).startswith("_")
    return [float(x) for x in line.get_xdata() if x > 0] if named else []


def of_one_run(name: str, case_filter: CaseFilter) -> Draw:
    """Figures 6, 17, 19 and, for D and S, 21, 23, 25: curves of one run, with times to targets."""

    def draw(results: Results, out: Path) -> list[Path]:
        cases = compared(results, case_filter)
        figure, axes = grid(len(cases), height=2.8)
        for panel, case in zip(axes, cases, strict=True):
            run = runs(results, case)[0]
            for place, task in enumerate(names(case)):
                rows, colour = run.rows_of(task), COLOURS[place]
                goal = target(case, task)
                panel.plot(
                    [row["sim_seconds"] for row in rows],
                    [100 * counted(row) for row in rows],
                    color=colour,
                    linestyle=DASHES[place],
                    label=f"{SHOWN[kind_of(task)]}, {100 * goal:.0f} %",
                )
                at = to_target(results, case, task)[0]
                if at is not None:
                    panel.axvline(at, color=colour, linestyle=DASHES[place], linewidth=0.8)
            panel.set_title(f"{label(case)}, seed {run.seed}")
            panel.set_xlabel("simulated time (s)")
            panel.set_ylabel("test accuracy (%)")
            panel.set_xlim(left=0)
            panel.set_ylim(bottom=0)
        same_limits(axes, x=True)
        legend(figure, axes, "vertical lines: the target is reached", "1 seed")
        return save(figure, results, out / name)

    return draw


def of_identical_tasks(name: str) -> Draw:
    """Figures 15 and 16a: mean accuracy of identical tasks, one panel per data set."""

    def draw(results: Results, out: Path) -> list[Path]:
        each = list(dict.fromkeys(kinds(case)[0] for case in results.where()))
        figure, axes = grid(len(each), height=2.8)
        for panel, kind in zip(axes, each, strict=True):
            cases = [case for case in results.where() if kinds(case) == (kind,)]
            counts = sorted({len(names(case)) for case in cases})
            for case in cases:
                seeds = curves(results, case)
                line = f"{label(case)}, {len(names(case))} tasks"
                draw_curves(panel, {line: seeds}, "sim_seconds", legend=False)
                drawn = panel.get_lines()[-1]
                drawn.set_color(COLOURS[counts.index(len(names(case)))])
                drawn.set_linestyle("-" if case["algorithm"] == "fedast" else "--")
                drawn.set_marker("")
                for shade in panel.collections[len(panel.collections) - (len(seeds) > 1) :]:
                    shade.set_color(COLOURS[counts.index(len(names(case)))])
            goal = 100 * target(cases[0], names(cases[0])[0])
            panel.axhline(goal, color="0.5", linewidth=0.8, linestyle=":")
            panel.set_title(f"{SHOWN[kind]}, target {goal:.0f} %")
        same_limits(axes)
        legend(figure, axes, seeds_text(results, results.where()))
        return save(figure, results, out / name)

    return draw
