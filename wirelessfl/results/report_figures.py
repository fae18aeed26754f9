"""Interactive figures of the page on stored runs, drawn by bokeh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wirelessfl.base.figures.curves import COLOURS, DASHES, curve_of, looks, mean_of, over_seeds
from wirelessfl.base.figures.style import contrast, method_of, mixed
from wirelessfl.base.packages import bokeh
from wirelessfl.base.rows import is_accuracy, numeric_fields, title_of
from wirelessfl.results.selection import Case
from wirelessfl.results.tables import COSTS
from wirelessfl.runs.summaries import MEASURED

POINTS = 200
"""Most rows of a curve: more are thinned to rows at even steps, first and last included."""
AXES = {name: COSTS[name][0] for name in ("rounds", "seconds", "joules", "mib")}
"""Fields of the horizontal axis by short name."""
AIR = ("air_error", "air_error_predicted")
DARK = 4.5
"""Most contrast on white of a line on a dark page."""
GREY, INK, PAPER = "#8892A0", "#1B2430", "#E3E8EF"
PLACE = {"client": "@client", "cell": "@cell"}
TALL = ("curves", "map")
THIN, THICK = 1.2, 2.6
FAINT = 0.5


@dataclass(frozen=True)
class Look:
    """How a case is drawn: colours on a light and on a dark page, and dashes."""

    light: str
    dark: str
    dash: list[int]


def looks_of_cases(labels: Sequence[str]) -> list[Look]:
    """Colours of figures in print; dashes only where colours alone do not tell cases apart."""
    repeated = len({method_of(label) or label for label in labels}) < len(labels)
    drawn: list[Look] = []
    for place, look in enumerate(looks(labels).values()):
        colour, share = look["color"], 0.0
        while contrast(mixed(colour, 1.0, share)) > DARK:
            share += 0.02
        number = place if repeated else sum(other.light == colour for other in drawn)
        dash = DASHES[number % len(DASHES)]
        lengths = [] if dash == "-" else [3 * int(length) for length in dash[1]]
        drawn.append(Look(colour, mixed(colour, 1.0, share), lengths))
    return drawn


def figures(
    cases: Sequence[Case],
    monitored: str,
    by_case: Sequence[Look],
    columns: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """All figures as JSON by name, with the fields of their axes.

    Args:
        cases: the cases.
        monitored: the field that targets refer to.
        by_case: how each case is drawn.
        columns: numbers of the clients of each run by name; the page fills in those of other runs.
    """
    rows = [row for case in cases for rows in case.rows for row in rows]
    fields = numeric_fields(rows)
    measured = [name for name in dict.fromkeys([*MEASURED, monitored]) if name in fields]
    item = bokeh("embed").json_item
    drawn = {"curves": _curves("curves", cases, measured, by_case)}
    if AIR[0] in fields:
        drawn["air"] = _curves("air", cases, [n for n in AIR if n in fields], by_case, log=True)
    by_figure = {
        "taking-part": (_taking_part, [c for c in columns if "rounds" in c]),
        "map": (_map, [c for c in columns if "snr" in c and "x" in c]),
        "bars": (_snr, [c for c in columns if "snr" in c and "x" not in c]),
    }
    for name, (draw, of_runs) in by_figure.items():
        if of_runs:
            drawn[name] = draw(bokeh("models").ColumnDataSource(dict(of_runs[0])))
    return {
        "items": {name: item(plot) for name, plot in drawn.items()},
        "x": {name: (field, title_of(field)) for name, field in AXES.items()},
        "y": {name: title_of(name) for name in measured},
    }


def _plot(name: str, x: str, y: str, **options: Any) -> Any:
    """An empty figure in the style of the page."""
    plot = bokeh("plotting").figure(
        name=name, height=400 if name in TALL else 300, sizing_mode="stretch_width",
        x_axis_label=x, y_axis_label=y, tools="pan,box_zoom,wheel_zoom,reset,save",
        toolbar_location="above",
        background_fill_color=None, border_fill_color=None, outline_line_color=None, **options,
    )  # fmt: skip
    plot.toolbar.logo = None
    plot.toolbar.active_drag = plot.select_one(bokeh("models").BoxZoomTool)
    for axis in (*plot.xaxis, *plot.yaxis):
        axis.update(axis_label_text_font_style="normal", axis_label_text_font_size="13px",
                    major_label_text_font_size="12px", minor_tick_line_color=None)  # fmt: skip
    return plot


def _hover(renderers: list[Any], **tips: str) -> Any:
    return bokeh("models").HoverTool(
        renderers=renderers, tooltips=[(name.replace("_", " "), tip) for name, tip in tips.items()]
    )


def _curves(
    name: str,
    cases: Sequence[Case],
    fields: Sequence[str],
    by_case: Sequence[Look],
    log: bool = False,
) -> Any:
    """Curves of each seed, thin, and their mean; the page chooses the fields of the axes.

    The page's script finds the columns by the tags of a line: its number among the cases, whether
    it is a mean, the colours on light and dark pages, and its field if it is always the same.
    """
    plot = _plot(name, title_of(AXES["seconds"]), "mean squared error" if log else
                 title_of(fields[0]), y_axis_type="log" if log else "linear")  # fmt: skip
    source = bokeh("models").ColumnDataSource
    plot.x_range.only_visible = plot.y_range.only_visible = True
    hovered = []
    for place, (case, look) in enumerate(zip(cases, by_case, strict=True)):
        having = [rows for rows in case.rows if any(fields[0] in row for row in rows)]
        seeds = [[dict.fromkeys(fields, np.nan) | row for row in rows] for rows in having]
        if not seeds:
            continue
        sources = [source(_seed(rows, fields)) for rows in seeds]
        mean = source(_means(case, seeds, fields)) if len(seeds) > 1 else None
        for field in fields if log else [""]:
            predicted = field == AIR[1]
            colours = (INK, PAPER) if predicted else (look.light, look.dark)
            style = {"line_dash": [5, 4] if predicted else look.dash, "color": colours[0]}
            thick = THIN if predicted else THICK
            x, y = AXES["seconds"], field or fields[0]
            lines = []
            for data in [] if predicted and mean else sources:
                width, alpha = (THIN, FAINT) if mean else (thick, 1.0)
                lines.append(plot.line(x, y, source=data, line_width=width, alpha=alpha, **style))
            if mean:
                lines.append(plot.line(x, f"{x} {y}", source=mean, line_width=thick, **style))
            for line in lines:
                line.name = case.title
                line.tags = [place, line.data_source is mean, *colours, field]
            hovered.append(lines[-1])
    plot.add_tools(_hover(hovered, run="$name", x="$snap_x{0.[0000]}", y="$snap_y{0.[0000]}"))
    return plot


def _seed(rows: Sequence[dict[str, Any]], fields: Sequence[str]) -> dict[str, Any]:
    """Columns of one run."""
    kept = [rows[place] for place in thinned(len(rows))]
    columns = {field: np.array([row[field] for row in kept]) for field in AXES.values()}
    columns |= {field: _curve(kept, "round", field)[1] for field in fields}
    return {name: values.astype(np.float32) for name, values in columns.items()}


def _means(
    case: Case, seeds: Sequence[Sequence[dict[str, Any]]], fields: Sequence[str]
) -> dict[str, Any]:
    """Means over seeds for each horizontal axis, padded to one length."""
    columns = {}
    for axis in AXES.values():
        for field in fields:
            x, y = over_seeds(case.title, axis, [_curve(rows, axis, field) for rows in seeds])
            kept = thinned(len(x))
            columns[axis], columns[f"{axis} {field}"] = x[kept], mean_of(y)[kept]
    longest = max(map(len, columns.values()))
    return {
        name: np.pad(v.astype(np.float32), (0, longest - len(v)), constant_values=np.nan)
        for name, v in columns.items()
    }


def _curve(rows: Sequence[dict[str, Any]], axis: str, field: str) -> tuple[Any, Any]:
    """Abscissae and values, accuracies in percent."""
    x, y = curve_of(rows, axis, field, 1)
    return x, y * (100 if is_accuracy(field) else 1)


def thinned(count: int) -> Any:
    """Indices of the rows of a curve that are drawn."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, POINTS)).round().astype(int))


def _taking_part(clients: Any) -> Any:
    """In how many rounds each client took part, and in how many it was the straggler."""
    plot = _plot("taking-part", "client", "rounds")
    bars = plot.vbar("client", 0.8, "rounds", source=clients, color=GREY, alpha=0.55)
    plot.vbar("client", 0.8, "straggler", source=clients, fill_color=COLOURS[1], line_color=None)
    tips = {"took_part": "@rounds rounds", "straggler": "@straggler rounds"}
    plot.add_tools(_hover([bars], **PLACE, **tips, updates_arrived="@arrived"))
    _by_client(plot)
    return plot


def _snr(clients: Any) -> Any:
    """The SNR of each client as bars, for networks without positions."""
    plot = _plot("snr", "client", "mean SNR (dB)")
    bars = plot.vbar("client", 0.8, "snr", source=clients, color=COLOURS[2])
    plot.add_tools(_hover([bars], **PLACE, mean_SNR="@snr{0.0} dB"))
    _by_client(plot)
    return plot


def _by_client(plot: Any) -> None:
    plot.xgrid.visible = False
    for axis in (*plot.xaxis, *plot.yaxis):
        axis.ticker.min_interval = 1


def _map(clients: Any) -> Any:
    """Clients at their positions, coloured by SNR; the page adds the base stations."""
    models = bokeh("models")
    plot = _plot("map", "x (m)", "y (m)", match_aspect=True)
    shades = models.LinearColorMapper(palette="Viridis11")
    dots = plot.scatter("x", "y", size=11, source=clients, line_color=GREY,
                        fill_color={"field": "snr", "transform": shades})  # fmt: skip
    stations = models.ColumnDataSource({"x": [], "y": []})
    plot.scatter("x", "y", size=15, source=stations, marker="triangle", fill_color=None,
                 line_width=2, line_color=COLOURS[1])  # fmt: skip
    bar = models.ColorBar(color_mapper=shades, title="SNR (dB)", width=10, padding=6,
                          background_fill_color=None, title_text_font_style="normal")  # fmt: skip
    plot.add_layout(bar, "right")
    plot.add_tools(_hover([dots], **PLACE, mean_SNR="@snr{0.0} dB"))
    return plot
