"""Figures 3 and 4 and label shards by cell: traffic, seconds, joules; parts that others share."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.labels import SPREAD, costs_of, data_name, seeds_text
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import draw_curves, new_figure
from wirelessfl.base.figures.marks import NOT_RUN
from wirelessfl.base.figures.style import looks
from wirelessfl.base.rows import as_mean_value
from wirelessfl.results.panels import Values, draw_points, grid, legend, room, same_limits
from wirelessfl.results.selection import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPLITS = {
    "noniid": "random label shards",
    "cell-iid": "i.i.d. across cells",
    "cell-shards": "label shards by cell",
}
QUANTITIES = {
    "round": "global rounds",
    "uplink_mib": "MiB per client",
    "sim_seconds": "simulated seconds",
    "joules": "joules per client",
}
"""Costs, as fields of rows, and their names on axes."""
BUDGET = ("uplink_mib", "sim_seconds", "joules")
TARGET = 0.8
CURVED = (2, 4, 6)
"""Numbers of cells with a curve in Figure 3."""
FLOOR = 0.6  # lowest accuracy shown
DECADES = 300
"""Ratio of the ends of a logarithmic axis up to which it has ticks at 2 and 5."""
CELLS = "number of cells N"
Lines = dict[str, dict[float, list[float | None] | None]]
"""The seeds' values by name of a line and place; None for a place that was not run."""


def fig3(results: Results) -> Figure:
    """Accuracy against transmitted MiB per client, one panel per split, at the larger step size."""
    cases = largest_step(results)
    shown = [case for case in cases if case["cells"] in CURVED] or cases
    splits = list(dict.fromkeys(case["split"] for case in shown))
    figure, axes = grid(len(splits))
    styles = list(dict.fromkeys(case.label for case in shown))
    for panel, split in zip(axes, splits, strict=True):
        curves = {c.label: results.rows(c) for c in shown if c["split"] == split}
        draw_curves(
            panel,
            curves,
            "uplink_mib",
            floor=floor(curves),
            target=TARGET,
            common=True,
            legend=False,
            styles=styles,
        )
        panel.set_title(SPLITS[split])
    same_limits(axes)
    legend(figure, axes, *facts(results, shown, spread=SPREAD), _step(shown))
    return figure


def fig4(results: Results) -> Figure:
    """MiB, seconds and joules to 80 % against the number of cells, one row of panels per split."""
    cases = largest_step(results)
    splits = list(dict.fromkeys(case["split"] for case in cases))
    figure, axes = new_figure(len(BUDGET), 1.75, rows=len(splits))
    for row, split in enumerate(splits):
        panels = axes[row * len(BUDGET) : (row + 1) * len(BUDGET)]
        for panel, quantity in zip(panels, BUDGET, strict=True):
            mine = [case for case in cases if case["split"] == split]
            draw_costs(panel, results, mine, quantity)
            panel.set_title(SPLITS[split])
            if row + 1 < len(splits):
                panel.set_xlabel("")
    for column in range(len(BUDGET)):
        same_limits(axes[column :: len(BUDGET)])
    legend(figure, axes, *facts(results, cases), _step(cases))
    return figure


def labels(results: Results) -> Figure:
    """Label shards by cell: final accuracy, and MiB to a target that both methods reach."""
    cases = largest_step(results)
    figure, axes = new_figure(2, 2.3)
    lines = {name: dict(line) for name, line in by_cells(cases).items()}
    finals = {
        name: {n: [*results.finals(case)] for n, case in line.items()}
        for name, line in lines.items()
    }
    draw_by_place(axes[0], finals, CELLS, "final accuracy (%)")
    draw_costs(axes[1], results, cases, "uplink_mib", LOW_TARGET)
    axes[1].set_ylabel(f"{QUANTITIES['uplink_mib']} to {100 * LOW_TARGET:g} %")
    legend(figure, axes, data_name(cases), seeds_text(results, cases), _step(cases))
    return figure


LOW_TARGET = 0.7
"""Target with label shards by cell, where HIST does not reach ``TARGET`` with more than 2 cells."""


def largest_step(results: Results) -> list[Case]:
    """The cases with runs at the largest step size: others have fewer seeds or are slower."""
    return results.where(lr=max(results.values("lr"), default=None))


def draw_cases(
    panel: Axes,
    results: Results,
    cases: Mapping[str, Case],
    against: str,
    target: float | None = None,
) -> None:
    """Draw the accuracy of cases by label; the legend names cases without runs as not run."""
    curves = {text: rows for text, case in cases.items() if (rows := results.rows(case))}
    styles = list(cases)
    if curves:
        draw_curves(panel, curves, against, target=target, legend=False, styles=styles)
    for text, look in looks(styles).items():
        if text not in curves:
            panel.plot([], [], label=f"{text} ({NOT_RUN})", **look | {"marker": ""})


def by_cells(cases: Sequence[Case]) -> dict[str, dict[float, Case]]:
    """Cases by method and number of cells."""
    names = sorted({case["algorithm"] for case in cases})
    return {
        NAMES[name]: {case["cells"]: case for case in cases if case["algorithm"] == name}
        for name in names
    }


def draw_costs(
    panel: Axes, results: Results, cases: Sequence[Case], quantity: str, target: float = TARGET
) -> None:
    """Draw what each method needs to the target against the number of cells, on a log axis."""
    lines = {
        name: {n: costs_of(results, case, quantity, target) for n, case in line.items()}
        for name, line in by_cells(cases).items()
    }
    draw_by_place(panel, lines, CELLS, QUANTITIES[quantity], log=True)


def draw_by_place(
    panel: Axes,
    lines: Mapping[str, Values],
    x: str,
    y: str,
    *,
    log: bool = False,
    apart: float = 0.0,
) -> None:
    """Draw lines with the values of seeds, see ``draw_points``; the legend names those not run.

    Args:
        panel: axes to draw on.
        lines: values by place, by name.
        x: label of the horizontal axis, whose ticks are the places.
        y: label of the vertical axis.
        log: whether the vertical axis is logarithmic.
        apart: distance of the lines at a place, as a share of the horizontal axis.
    """
    if log:
        panel.set_yscale("log")
    by_name = looks([*lines])
    ticks = sorted({tick for points in lines.values() for tick in points})
    step = apart * (ticks[-1] - ticks[0]) if ticks else 0.0
    for place, (name, points) in enumerate(lines.items()):
        if all(values is None for values in points.values()):
            panel.plot([], [], label=f"{name} ({NOT_RUN})", **by_name[name])
            continue
        shift = step * (place - (len(lines) - 1) / 2)
        draw_points(panel, points, name, place, shift=shift, look=by_name[name])
    panel.margins(x=0.12)
    if log:
        room(panel)
        _plain_ticks(panel)
    panel.set_xticks(ticks)
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set_xlabel(x)
    panel.set_ylabel(y)


def _plain_ticks(panel: Axes) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, unless a logarithmic axis has many decades."""
    from matplotlib.ticker import LogLocator

    low, high = panel.get_ylim()
    if high < DECADES * low:
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")


def facts(
    results: Results, cases: Sequence[Case], target: float = TARGET, spread: str = "mean"
) -> list[str]:
    """Data set, target and seeds, for the line above the panels.

    Args:
        results: the runs of the study.
        cases: those that are drawn.
        target: the target accuracy.
        spread: what is shown of the seeds; single ones are explained by themselves.
    """
    return [data_name(cases), f"target {100 * target:g} %", seeds_text(results, cases, spread)]


def floor(curves: dict[str, list[list[dict[str, Any]]]]) -> float | None:
    """Lower end of the accuracy axis: ``FLOOR`` if the curves end well above it."""
    best = statistics.median(as_mean_value(rows[-1]) for seeds in curves.values() for rows in seeds)
    return FLOOR if best > FLOOR + 0.05 else None


def _step(cases: Sequence[Case]) -> str:
    return f"step size {cases[0]['lr']:g}"
