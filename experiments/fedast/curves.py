"""Curves against simulated time: FedAST's Figures 2, 4, 6 and its variants (17 to 25), 14 to 16."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.fedast.measures import compared, curves, mean, to_target
from experiments.fedast.tables import pairs
from experiments.fedast.tasks import kind_of, kinds, label, names, target, title
from experiments.labels import SPREAD, seeds_text
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import draw_curves, looks
from wirelessfl.base.rows import is_accuracy
from wirelessfl.results.panels import grid, legend, same_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDS = "vertical lines: mean time to the target"


def of_methods(results: Results, what: str = "accuracy") -> Figure:
    """Figures 2, 4 and 14: accuracy or loss against time, mean over the tasks of a data set.

    One panel per data set.

    Args:
        results: the runs of the study.
        what: field of rows.
    """
    cases = results.where()
    figure, axes = grid(len(kinds(cases[0])))
    for panel, kind in zip(axes, kinds(cases[0]), strict=True):
        tasks = [task for task in names(cases[0]) if kind_of(task) == kind]
        _draw(panel, results, {label(case): case for case in cases}, tasks, what)
    same_limits(axes)
    legend(figure, axes, seeds_text(results, cases, SPREAD))
    return figure


def of_tasks(results: Results, against: str) -> Figure:
    """Figures 6, 17, 19, 21, 23 and 25: accuracy of different tasks until they reach their targets.

    One panel per task. The paper shows a single run; here it is the mean over the seeds.

    Args:
        results: the runs of the study.
        against: see ``compared``.
    """
    cases = compared(results, against)
    tasks = names(cases[0])
    figure, axes = grid(len(tasks))
    for panel, task in zip(axes, tasks, strict=True):
        _draw(panel, results, {label(case): case for case in cases}, [task])
        for look, case in zip(looks(list(map(label, cases))).values(), cases, strict=True):
            end = mean(to_target(results, case, task))
            if end is not None:
                panel.axvline(end, color=look["color"], linestyle="--", linewidth=0.9)
    legend(figure, axes, ENDS, seeds_text(results, cases, SPREAD))
    return figure


def of_counts(results: Results) -> Figure:
    """Figures 15 and 16: accuracy of identical tasks, one panel per data set and number of tasks.

    Tasks that have reached their target keep their last accuracy in the mean.
    """
    order = [kind for kind, *_ in pairs(results)]
    groups = sorted(pairs(results), key=lambda group: order.index(group[0]))
    figure, axes = grid(len(groups))
    for panel, (_, _, *both) in zip(axes, groups, strict=True):
        cases = {label(case): case for case in both if case is not None}
        _draw(panel, results, cases, names(next(iter(cases.values()))))
    same_limits(axes)
    legend(figure, axes, seeds_text(results, results.where(), SPREAD))
    return figure


def _draw(
    panel: Axes,
    results: Results,
    cases: dict[str, Case],
    tasks: Sequence[str],
    what: str = "accuracy",
) -> None:
    """Draw the mean over these tasks for each case, under a title with data set and target."""
    first = next(iter(cases.values()))
    goal = target(first, tasks[0])
    rows = {text: curves(results, case, tasks) for text, case in cases.items()}
    line = goal if is_accuracy(what) else None
    draw_curves(panel, rows, "sim_seconds", what=what, target=line, legend=False)
    data = title(first, tasks[0])
    text = data if len(tasks) == 1 else f"mean of {len(tasks)} {data} tasks"
    panel.set_title(f"{text}, target {100 * goal:.0f} %")
