"""Seconds to the targets as bars: FedAST's Figures 5 and 16, 7 and its variants (18 to 26)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from experiments.fedast.measures import compared, costs, identical, to_end, to_mean, to_target
from experiments.fedast.tables import pairs
from experiments.fedast.tasks import Goal, label, names, target, title
from experiments.labels import seeds_text
from experiments.studies import Results
from wirelessfl.base.figures.curves import colour_of, draw_bars, new_figure, style
from wirelessfl.base.figures.marks import marks_of
from wirelessfl.results.intervals import Costs, ratio
from wirelessfl.results.panels import grid, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = ("FedAST", "Sync-ST")
ALL = "all"
"""The time until the last task reaches its target."""


def of_methods(results: Results) -> Figure:
    """Mean seconds to the target, one bar per method and one panel per task."""
    cases = results.where()
    tasks = names(cases[0])
    figure, axes = grid(len(tasks), height=3.4)
    for panel, task in zip(axes, tasks, strict=True):
        seeds = {label(case): to_target(results, case, task) for case in cases}
        draw_bars(panel, {"": seeds}, "simulated time to target (s)")
        for bar, method in zip(panel.patches, seeds, strict=True):
            bar.set_facecolor(colour_of(method))
        for arrow in marks_of(panel):
            arrow.set_color(colour_of([*seeds][round(arrow.get_xdata()[0])]))
        panel.set_xticks(range(len(seeds)), [_lines(method) for method in seeds], rotation=90)
        panel.margins(y=0.1)
        goal = f"{100 * target(cases[0], task):.0f} %"
        panel.set_title(f"{title(cases[0], task)}, target {goal}")
    legend(figure, axes, seeds_text(results, cases))
    return figure


def _lines(method: str) -> str:
    """A long name of a method on two lines."""
    return method.replace(" without ", "\nwithout ")


def of_tasks(results: Results, against: str) -> Figure:
    """Figures 7, 18, 20, 22, 24 and 26: mean seconds to each target, and to the last of them.

    Above the bars stand the other method's seconds divided by those of FedAST (D).

    Args:
        results: the runs of the study.
        against: see ``compared``.
    """
    cases = compared(results, against)
    tasks = names(cases[0])
    figure, (panel,) = new_figure(columns=1, height=2.8)
    groups = [f"{title(cases[0], n)}\n{100 * target(cases[0], n):.0f} %" for n in tasks]
    ends = {label(c): [to_target(results, c, n) for n in tasks] for c in cases}
    seeds = {
        label(case): dict(zip(groups, ends[label(case)], strict=True))
        | {ALL: to_end(results, case)}
        for case in cases
    }
    draw_bars(panel, seeds, "simulated time to target (s)", [*groups, ALL])
    panel.margins(y=0.25)
    if len(cases) > 1:
        ours, other = cases[0], cases[-1]
        for place, some in enumerate([*([n] for n in tasks), tasks]):
            pair = (costs(results, case, some) for case in (other, ours))
            _write_ratio(panel, place, *pair)
    words = f"numbers: {label(cases[-1])} / {label(cases[0])}, 95 % interval"
    legend(figure, [panel], words * (len(cases) > 1), seeds_text(results, cases))
    return figure


def of_identical_tasks(results: Results, goal: Goal = None, tests: int = 1) -> Figure:
    """Figures 5 and 16: mean seconds to the target with 2, 4 and 6 identical tasks.

    Above the bars stand Sync-ST's seconds divided by FedAST's, and the interval of this ratio.

    Args:
        results: the runs of the study.
        goal: the targets.
        tests: number of tests that are averaged, see ``cost_to``.
    """
    by_count = pairs(results)
    shown = list(dict.fromkeys(kind for kind, *_ in by_count))
    figure, axes = grid(len(shown))
    for panel, kind in zip(axes, shown, strict=True):
        mine = {n: (fedast, sync) for k, n, fedast, sync in by_count if k == kind}
        seeds: dict[str, dict[str, list[float | None]]] = {
            method: {
                str(count): to_mean(results, case, goal, tests)
                for count, cases in mine.items()
                if (case := cases[place]) is not None
            }
            for place, method in enumerate(METHODS)
        }
        groups = [str(count) for count in mine]
        draw_bars(panel, seeds, "simulated time to target (s)", groups)
        panel.margins(y=0.25)
        for place, count in enumerate(mine):
            _write_ratio(panel, place, *identical(results, kind, count, goal, tests))
        case = next(case for cases in mine.values() for case in cases if case is not None)
        text = f"{title(case, kind)}, target {100 * target(case, names(case)[0], goal):.0f} %"
        panel.set_title(text)
        panel.set_xlabel("number of identical tasks")
    averaged = f"target for the mean of {tests} evaluations" * (tests > 1)
    interval_text = "numbers: Sync-ST / FedAST, 95 % interval"
    seeds_shown = seeds_text(results, results.where())
    legend(figure, axes, "mean over the tasks", averaged, seeds_shown, interval_text)
    return figure


def _write_ratio(panel: Axes, place: int, slow: Costs, fast: Costs) -> None:
    """Write the ratio of two methods' seconds above their bars, if all seeds reach the target."""
    ends = [*slow.values(), *fast.values()]
    effect = ratio("", slow, fast, 1.0)
    if not effect.values or not all(end.reached for end in ends):
        return
    text = f"{math.exp(effect.mean):.2f}"
    if len(effect.values) > 1:
        low, high = effect.interval
        text += f"\n({math.exp(low):.2f} to {math.exp(high):.2f})"
    panel.annotate(
        text,
        (place, max(end.cost for end in ends)),
        (0, 3),
        textcoords="offset points",
        fontsize=style().small,
        ha="center",
    )
