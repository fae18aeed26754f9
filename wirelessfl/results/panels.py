"""Figures with several panels: grids, legends, marks of what is missing, costs or accuracies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import (
    NOT_REACHED,
    NOT_RUN,
    StyleName,
    line_look,
    looks,
    mark,
    new_figure,
    style,
    use_style,
)
from wirelessfl.base.figures.marks import (
    DIVERGED,
    ONE,
    AtLeast,
    counted_seeds,
    diverged,
    draw_bound,
    draw_seeds,
    entries,
    explained,
    finish,
    legend_above,
    mean_or_bound,
    missed,
    wrapped,
)
from wirelessfl.base.rows import is_accuracy, title_of
from wirelessfl.base.wording import heading_of, shown, suggestion
from wirelessfl.results.selection import Case, label_text, value_text
from wirelessfl.results.tables import (
    COSTS,
    check_target,
    last_value,
    monitor_of,
    with_rows,
)
from wirelessfl.runs.plots import Log, for_notebooks
from wirelessfl.runs.targets import Monitor, cost_to

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTLY = "partly"
"""Mark of hollow markers."""


def grid(panels: int, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """A figure with this many panels, at most three side by side; four are two by two."""
    columns = panels if panels <= 3 else 2 if panels == 4 else 3
    figure, axes = new_figure(columns, height, rows=math.ceil(panels / columns))
    for unused in axes[panels:]:
        unused.remove()
    return figure, axes[:panels]


def legend(figure: Figure, axes: Sequence[Axes], *facts: str) -> None:
    """One legend for all panels, above them, under a line of facts such as data set and seeds.

    Args:
        figure: the figure.
        axes: panels whose labels are in the legend, in place of their own legends.
        facts: data set, target, seeds; empty ones are left out.
    """
    for panel in axes:
        if (old := panel.get_legend()) is not None:
            old.remove()
    by_text = entries(axes)
    text = "; ".join(fact for fact in (*facts, *explained(figure)) if fact)
    text = wrapped(figure, text)
    if len(by_text) < 2:
        figure.suptitle(text, fontsize=style().small)
        return
    legend_above(figure, by_text, text)


def note(figure: Figure, text: str) -> None:
    """Write a note below the panels, after other notes."""
    before = figure.get_supxlabel()
    lines = f"{before}\n{text}" if before else text
    figure.supxlabel(lines, fontsize=style().small, color="0.3", x=0.01, ha="left")


def same_limits(axes: Sequence[Axes], *, x: bool = False, y: bool = True) -> None:
    """Give panels that are compared the same axes."""
    for shared, way in ((x, "x"), (y, "y")):
        if shared and axes:
            ends = [getattr(panel, f"get_{way}lim")() for panel in axes]
            for panel in axes:
                getattr(panel, f"set_{way}lim")(min(e[0] for e in ends), max(e[1] for e in ends))


def room(panel: Axes) -> None:
    """Make room around the points of a logarithmic axis, and drop its minor labels."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = panel.get_ylim()
    low, high = low / (high / low) ** 0.05, high * (high / low) ** 0.05
    panel.set_ylim(low, high)
    panel.yaxis.set_minor_formatter(NullFormatter())
    if math.log10(high / low) < 1:
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")


Values = Mapping[float, Sequence[float | None] | None]
"""The seeds' values by place: None for a seed without one, or for a place that was not run."""


def draw_points(
    panel: Axes,
    points: Values,
    name: str | None,
    place: int,
    *,
    line: bool = True,
    shift: float = 0.0,
    look: Mapping[str, Any] | None = None,
) -> None:
    """Plot the mean over the seeds and the seeds at each place.

    >>> from wirelessfl.results import draw_points, new_figure
    >>> figure, (panel,) = new_figure()
    >>> draw_points(panel, {2: [0.8, 0.9], 4: [0.7]}, "hist", 0)

    Up to five seeds are dots, more a range. If some seeds have no value, the place has an open
    marker at a lower bound of the mean, with an arrow. Places without any value are arrows in a
    band at the top, and those without runs are marked "not run"; lines are interrupted there.
    Seeds that diverged (nan) are crosses at the bottom, and do not count in means.

    Args:
        panel: axes to draw on.
        points: values by place; ``AtLeast`` for a run that ended before its target.
        name: the series' name in the legend.
        place: the series' number, which decides its dashes and marker, and its colour unless its
            name begins with a method that has one.
        line: whether to connect the means.
        shift: added to all places, so that series do not hide each other.
        look: colour, dashes and marker, see ``looks``; by default those of ``line_look``.
    """
    bounds = {x: mean_or_bound(seeds or ()) for x, seeds in sorted(points.items())}
    means = {x: mean for x, mean in bounds.items() if mean is not None}
    look = dict(look or line_look(place, name)) | ({} if line else {"linestyle": "none"})
    colour, marker, size = look["color"], look["marker"], look["markersize"]
    seeds = {x: points[x] or () for x in means}
    gid = counted_seeds(map(len, seeds.values()))
    within = [x for x in bounds if means and min(means) <= x <= max(means)]
    heights = [means.get(x, math.nan) for x in within]  # a line is interrupted at other places
    panel.plot([x + shift for x in within], heights, label=name, gid=gid, **look)
    for x, mean in means.items():
        draw_seeds(panel, x + shift, seeds[x], colour)
        white = {"markersize": size / 2, "color": "white", "zorder": 3, "markeredgewidth": 0}
        if any(map(missed, seeds[x])):
            panel.plot(x + shift, mean, marker, gid=PARTLY, **white)
            draw_bound(panel, x + shift, mean, colour)
        elif len(seeds[x]) == 1:
            panel.plot(x + shift, mean, marker, gid=ONE, visible=False, **white)
    for x in points:
        lost = any(map(diverged, points[x] or ()))
        if lost:
            mark(panel, x + shift, DIVERGED, colour)
        if x not in means:
            panel.update_datalim([(x + shift, 0.0)], updatey=False)
            if not lost:
                mark(panel, x + shift, NOT_RUN if points[x] is None else NOT_REACHED, colour)
    panel.autoscale_view()


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
    drawn = [t for t, line in lines.items() if any(seeds is not None for *_, seeds in line)]
    beside = {text: _lines_at(text, lines) for text in places}
    for number, (label, line) in enumerate(lines.items()):
        points: dict[float, Seeds | None] = {}
        for _, text, seeds in line:
            shift = 0.0
            if not numbers and label in beside[text]:
                shift = DODGE * (beside[text].index(label) - (len(beside[text]) - 1) / 2)
            if seeds is not None or len(drawn) <= MARKED:
                points[places[text] + shift] = seeds
        if label in drawn:
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
    log: Log = "",
    style: StyleName = "screen",
) -> Figure:
    """The figure of ``Runs.plot_against``, whose arguments and errors these are, of some cases."""
    if cost not in COSTS:
        raise ConfigError(
            f"cost is {shown(cost)}.{suggestion(cost, COSTS)} Choose {', '.join(COSTS)}."
        )
    if log not in get_args(Log):
        raise ConfigError(f"log is {shown(log)}: choose x, y or xy, or leave it out.")
    cases = with_rows(cases, tests)
    values = [case.values[case.names.index(setting)] for case in cases]
    if "x" in log and not all(isinstance(v, int | float) and v > 0 for v in values):
        raise ConfigError(f"log is {log!r}, and {setting} is not > 0 in all runs: leave out x.")
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
        panel.set_xlabel(heading_of(setting))
        _set_scales(panel, log)
        panel.set_ylabel(what)
        legend(figure, [panel])
        finish(figure)
    return for_notebooks(figure)


def _drawn(
    rows: Sequence[dict[str, Any]], target: float | None, cost: str, monitor: Monitor, tests: int
) -> float | None:
    """The final value of a run (nan if it diverged), or its cost until the target."""
    if target is None:
        value = last_value(rows, monitor.field, tests)
        if value is None:
            return math.nan
        return 100 * value if is_accuracy(monitor.field) else value
    until = cost_to(rows, target, tests, monitor).of(COSTS[cost][0])
    return until.cost if until.reached else AtLeast(until.cost)


def _set_scales(panel: Axes, log: Log) -> None:
    """Give logarithmic scales to the axes of a panel whose ticks are its values."""
    if "x" in log:
        places, texts = panel.get_xticks(), [text.get_text() for text in panel.get_xticklabels()]
        panel.set_xscale("log")
        panel.minorticks_off()
        panel.set_xticks(places, texts)
    if "y" in log:
        panel.set_yscale("log", nonpositive="mask")


def _line_of(case: Case, setting: str) -> str:
    """The label of a case without the setting on the horizontal axis."""
    kept = {n: v for n, v in zip(case.names, case.values, strict=True) if n != setting}
    label = label_text([*kept], [*kept.values()])
    title = replace(case, names=tuple(kept), values=tuple(kept.values()), label=label).title
    return ", ".join(text for text in (title, case.task) if text) or "runs"
