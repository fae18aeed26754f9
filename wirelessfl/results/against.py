"""Figures of final accuracies, or of costs until a target, against a setting of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import ConfigError
from wirelessfl.figure_marks import AtLeast, finish
from wirelessfl.figures import StyleName, looks, new_figure, use_style
from wirelessfl.results.cases import Case
from wirelessfl.results.panels import draw_points, legend
from wirelessfl.results.selection import label_text, value_text
from wirelessfl.results.tables import (
    COSTS,
    check_target,
    last_value,
    monitor_of,
    reaching,
    with_rows,
)
from wirelessfl.row_fields import is_accuracy, title_of
from wirelessfl.runs.monitor import Monitor
from wirelessfl.runs.plots import for_notebooks
from wirelessfl.wording import shown, suggestion

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKED = 3
"""Most lines in a panel whose missing places are marked "not run"."""
DODGE = 0.18
"""Horizontal distance between the points of two lines in one category, of 1 between categories."""
Seeds = Sequence[float | None]
Lines = Mapping[str, Sequence[tuple[Any, str, Seeds | None]]]
"""By label: values of the setting, their texts, and the values of the seeds; None without runs."""


def draw_lines(
    axis: Axes, lines: Lines, by_label: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Draw one line per label; a setting without numbers has evenly spaced places.

    Lines without any run are left out, and have no entry in the legend.

    Args:
        axis: axes to draw on.
        lines: the lines.
        by_label: colour, dashes and marker by label; by default ``looks`` of these labels.
    """
    by_label = looks(list(lines)) if by_label is None else by_label
    settings = {text: value for line in lines.values() for value, text, _ in line}
    numbers = all(isinstance(value, int | float) for value in settings.values())
    places = {t: float(v) if numbers else float(i) for i, (t, v) in enumerate(settings.items())}
    known = [t for t, line in lines.items() if any(seeds is not None for *_, seeds in line)]
    beside = {text: _lines_at(text, lines) for text in places}
    for number, (label, line) in enumerate(lines.items()):
        points: dict[float, Seeds | None] = {}
        for _, text, seeds in line:
            shift = 0.0
            if not numbers and label in beside[text]:
                shift = DODGE * (beside[text].index(label) - (len(beside[text]) - 1) / 2)
            if seeds is not None or len(known) <= MARKED:
                points[places[text] + shift] = seeds
        if label in known:
            draw_points(axis, points, label, number, line=numbers, look=by_label[label])
    ends = sorted(places.values())
    if numbers and ends and 0 < 8 * ends[0] <= ends[-1]:
        axis.set_xscale("log")
        axis.minorticks_off()
    axis.set_xticks(list(places.values()), list(places))


def _lines_at(text: str, lines: Lines) -> list[str]:
    """The lines with a value at a tick, which stand side by side there."""
    return [
        label
        for label, line in lines.items()
        if any(
            at == text and any(value is not None for value in seeds or ()) for _, at, seeds in line
        )
    ]


def plotted_against(
    cases: Sequence[Case],
    setting: str,
    *,
    target: float | None = None,
    cost: str = "seconds",
    field: str | None = None,
    tests: int = 1,
    style: StyleName = "screen",
) -> Figure:
    """The figure of ``Runs.plot_against``, whose arguments and errors these are, of some cases."""
    if cost not in COSTS:
        raise ConfigError(
            f"cost is {shown(cost)}.{suggestion(cost, COSTS)} Choose {', '.join(COSTS)}."
        )
    cases = with_rows(cases, tests)
    monitor = monitor_of(cases, field)
    if target is not None:
        check_target(target, monitor)
    lines: dict[str, list[tuple[Any, str, Seeds | None]]] = {}
    for case in cases:
        value = case.values[case.names.index(setting)]
        seeds = [_drawn(rows, target, cost, monitor, tests) for rows in case.rows if rows]
        lines.setdefault(_line_of(case, setting), []).append((value, value_text(value), seeds))
    what = title_of(monitor.field)
    if target is not None:
        kind = monitor.field.replace("_", " ")
        what = f"{title_of(COSTS[cost][0])} to {kind} {target:g}"
    with use_style(style):
        figure, (panel,) = new_figure()
        draw_lines(panel, lines)
        panel.set_xlabel(setting.replace("_", " "))
        panel.set_ylabel(what)
        legend(figure, [panel])
        finish(figure)
    return for_notebooks(figure)


def _drawn(
    rows: Sequence[dict[str, Any]], target: float | None, cost: str, monitor: Monitor, tests: int
) -> float | None:
    """The final value of a run, or its cost until the target."""
    if target is None:
        value = last_value(rows, monitor.field, tests)
        return 100 * value if value is not None and is_accuracy(monitor.field) else value
    place = reaching(rows, target, monitor, tests)
    field = COSTS[cost][0]
    return AtLeast(rows[-1][field]) if place is None else float(rows[place][field])


def _line_of(case: Case, setting: str) -> str:
    """The label of a case without the setting on the horizontal axis."""
    kept = {n: v for n, v in zip(case.names, case.values, strict=True) if n != setting}
    label = label_text([*kept], [*kept.values()])
    title = replace(case, names=tuple(kept), values=tuple(kept.values()), label=label).title
    return ", ".join(text for text in (title, case.task) if text) or "runs"
