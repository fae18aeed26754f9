"""Figures of runs: accuracy, loss or another field against rounds, MiB, seconds or joules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from channels.arrays import FloatArray
from wirelessfl.base.figures.marks import (
    DIVERGED,
    NOT_REACHED,
    NOT_RUN,
    AtLeast,
    counted_seeds,
    draw_bars,
    entries,
    finish,
    mark,
    marks_of,
)
from wirelessfl.base.figures.style import (
    COLOURS,
    DASHES,
    MARKERS,
    STYLES,
    Style,
    StyleName,
    check_curves,
    check_scales,
    colour_of,
    line_look,
    looks,
    style,
    use_style,
)
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.rows import (
    COSTS,
    TITLES,
    as_mean_value,
    field_of,
    has_diverged,
    is_accuracy,
    title_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS", "DASHES", "LABELS", "MARKERS", "NOT_REACHED", "NOT_RUN", "SHADE", "STYLES",
    "Against", "AtLeast", "Row", "Style", "StyleName", "What",
    "colour_of", "curve_of", "draw_bars", "draw_curves", "line_look", "log_ticks", "looks", "mark",
    "new_figure", "over_seeds", "save_figure", "style", "use_style", "whole_ticks",
]  # fmt: skip

Row = Mapping[str, Any]
Against = Literal["round", "uplink_mib", "sim_seconds"]
What = Literal["accuracy", "loss", "validation_accuracy", "validation_loss"]

LABELS: dict[Against, str] = {name: TITLES[name] for name in get_args(Against)}
CROWDED = 4
"""Number of curves from which a panel's curves have markers."""
THIN = 0.6
"""Width of curves of one seed where others are means, relative to theirs."""
SHADE = 0.25
"""Opacity of the range of the seeds."""
MARGIN = 0.06
"""Room below the lowest accuracy, as a share of the range of accuracies."""
START, MANY = 0.1, 10
"""Share of the horizontal axis whose low accuracies are not shown, if curves have many rows."""


def new_figure(columns: int = 1, height: float = 2.6, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Create a figure of the width of one column or, with several panels side by side, of two.

    >>> from wirelessfl.results import new_figure
    >>> figure, panels = new_figure(columns=2)
    >>> len(panels)
    2

    Args:
        columns: number of panels side by side.
        height: height of a row of panels in inches, at print size.
        rows: number of rows.

    Returns:
        The figure, and its panels row by row.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    form = style()
    width = form.column if columns == 1 else form.wide
    with rc_context(form.rc):
        figure = Figure(figsize=(width, height * form.stretch * rows), layout="constrained")
        axes = [figure.add_subplot(rows, columns, i + 1) for i in range(columns * rows)]
    for panel in axes:
        panel.grid(color="0.9", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_curves(
    axes: Axes,
    runs: Mapping[str, Sequence[Sequence[Row]]],
    against: str,
    *,
    target: float | None = None,
    floor: float | None = None,
    common: bool = False,
    legend: bool = True,
    styles: Sequence[str] = (),
    what: str = "accuracy",
    smooth: int = 1,
) -> None:
    """Plot accuracy in percent, loss or another field of rows, with one curve per label.

    >>> from wirelessfl.results import draw_curves, new_figure
    >>> figure, (panel,) = new_figure()
    >>> rows = [{"round": 0, "loss": 2.3}, {"round": 1, "loss": 1.9}]
    >>> draw_curves(panel, {"hist": [rows]}, "rounds", what="loss")

    Curves have the colours of their methods, see ``looks``. Where the numbers of seeds differ, the
    legend gives them, and curves of one seed are thin.
    A diverged model has no accuracy and no loss: a cross marks the last value of its seed, and the
    mean is that of the others. Rows without the fields are left out; a label without such rows has
    an entry in the legend that says so.

    Args:
        axes: axes to draw on.
        runs: by label, the rows of each seed's run; a curve shows the mean over the seeds, and the
            shaded area their range. At each value on the horizontal axis, every seed has its last
            known value; the curve ends with the shortest seed.
        against: field of the rows on the horizontal axis, or its short name: rounds, mib, seconds,
            wall.
        target: accuracy in [0, 1] to mark with a horizontal line.
        floor: lowest accuracy shown, in [0, 1]; by default the lowest one after the first tenth of
            the horizontal axis, if the curves have at least ``MANY`` rows.
        common: whether the horizontal axis ends shortly after the end of the shortest curve, or
            after all curves that reach the target have reached it.
        legend: whether to draw a legend.
        styles: all labels of the figure in a fixed order, so that a label looks alike in all
            panels.
        what: field of the rows on the vertical axis.
        smooth: number of successive rows that are averaged for each point of a curve, odd.

    Raises:
        ValueError: there is no curve, a curve has no rows, no row has a field, ``against`` falls
            within one of several seeds, a label is not in ``styles``, ``target`` or ``floor`` is
            outside [0, 1] or given for a loss, or ``smooth`` is even.
    """
    against, what = field_of(against), field_of(what)
    check_scales(what, {"target": target, "floor": floor}, smooth)
    check_curves(runs, {"against": against, "what": what}, styles)
    ends: list[float] = []
    hits: list[float] = []
    accuracy = is_accuracy(what)
    order = list(styles) or list(runs)
    by_label = looks(order)
    counts = {len(seeds) for seeds in runs.values()}
    for label, rows_of_seeds in runs.items():
        curves = [(curve_of(rows, against, what, smooth), rows) for rows in rows_of_seeds]
        seeds = [curve for curve, _ in curves if len(curve[0])]
        diverged = [any(map(has_diverged, rows)) for curve, rows in curves if len(curve[0])]
        x, y = over_seeds(label, against, seeds)
        if not len(x):
            lacking = f"no common {against}" if seeds else f"no {what}"
            name = f"{label} ({lacking.replace('_', ' ')})"
            axes.plot([], [], label=name, **by_label[label] | {"marker": ""})
            continue
        ends.append(x[-1])
        y = y * (100 if accuracy else 1)
        drawn = mean_of(y)
        for seed in y[diverged]:
            for last in np.flatnonzero(np.isnan(seed[1:]) & np.isfinite(seed[:-1])):
                _mark_end(axes, x[last], seed[last], by_label[label]["color"])
        if target is not None and (hit := np.flatnonzero(drawn >= 100 * target)).size:
            hits.append(x[hit[0]])
        look = by_label[label] | {"marker": "", "gid": counted_seeds([len(seeds)])}
        if len(seeds) == 1 < max(counts):
            look |= {"linewidth": THIN * style().line}
        if len(order) >= CROWDED:
            step = max(len(x) // 6, 1)
            at = order.index(label) * step // len(order), step
            look |= {"marker": by_label[label]["marker"], "markevery": at}
            look |= {"markersize": style().small / 2.2, "markeredgewidth": 0}
        axes.plot(x, drawn, label=label, **look)
        if len(seeds) > 1:
            axes.fill_between(x, *_range(y), color=look["color"], alpha=SHADE, linewidth=0)
    if target is not None:
        axes.axhline(100 * target, color="0.5", linewidth=0.8, linestyle=":")
    if against == "round":
        whole_ticks(axes)
    end = max(1.2 * min(ends, default=0.0), 1.05 * max(hits, default=0.0))
    if common and end > 0:  # not if all rows are at zero
        axes.set_xlim(0, end)
    if floor is not None:
        axes.set_ylim(bottom=100 * floor)
    elif accuracy:
        _crop(axes)
    axes.set_xlabel(title_of(against), fontsize=style().text)
    axes.set_ylabel(title_of(what), fontsize=style().text)
    if legend:
        shown_by = entries([axes])
        if crosses := marks_of(axes, DIVERGED):
            shown_by[DIVERGED] = crosses[0]
        axes.legend(
            shown_by.values(), shown_by.keys(), fontsize=style().small, frameon=False, loc="best"
        )


def mean_of(seeds: FloatArray) -> FloatArray:
    """The mean over the seeds, [seeds, abscissae], of those with a value; nan if there are none."""
    counts = np.isfinite(seeds).sum(0)
    return np.where(counts > 0, np.nansum(seeds, 0) / np.maximum(counts, 1), np.nan)


def _range(seeds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The least and the largest value over the seeds, which are nan where no seed has one."""
    return np.fmin.reduce(seeds), np.fmax.reduce(seeds)


def _mark_end(axes: Axes, x: float, y: float, colour: str) -> None:
    """Mark the last value before a seed diverges."""
    look: dict[str, Any] = {"markersize": style().small / 1.4, "markeredgewidth": 1.4, "zorder": 4}
    axes.plot([x], [y], "x", color=colour, gid=DIVERGED, **look)


def _crop(axes: Axes) -> None:
    """Leave out accuracies that all curves exceed after the start, if they have many rows."""
    curves = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    places = [np.array(line.get_xydata(), dtype=float) for line in curves]
    places = [curve for curve in places if len(curve)]
    if min(map(len, places), default=0) < MANY:
        return
    shades = [path for shade in axes.collections for path in shade.get_paths()]
    places += [np.array(path.vertices, dtype=float) for path in shades]
    start = axes.get_xlim()[0] + START * (axes.get_xlim()[1] - axes.get_xlim()[0])
    late = np.concatenate(
        [curve[curve[:, 0] >= min(start, curve[:, 0].max()), 1] for curve in places]
    )
    levels = [line for line in axes.get_lines() if line not in curves]
    heights = [*late, *(float(np.min(line.get_ydata())) for line in levels)]
    low, high = np.nanmin(heights), np.nanmax(np.concatenate(places)[:, 1])
    low -= MARGIN * (high - low)
    if low > axes.get_ylim()[0]:
        axes.set_ylim(bottom=low)


def curve_of(
    rows: Sequence[Row], against: str, what: str, smooth: int
) -> tuple[FloatArray, FloatArray]:
    """The curve of one run: its abscissae and values, without rows that lack one of the fields."""
    complete = [row for row in rows if row.get(against) is not None and what in row]
    values = np.array([_value(row, what) for row in complete])
    return np.array([float(row[against]) for row in complete]), _averaged(values, smooth)


def over_seeds(
    label: str, against: str, seeds: Sequence[tuple[FloatArray, FloatArray]]
) -> tuple[FloatArray, FloatArray]:
    """Common abscissae of all seeds, and values [seeds, abscissae]: each seed's last known one."""
    shortest = min((len(x) for x, _ in seeds), default=0)
    if all(np.array_equal(x[:shortest], seeds[0][0][:shortest]) for x, _ in seeds):
        x = seeds[0][0][:shortest] if seeds else np.empty(0)
        return x, np.array([y[:shortest] for _, y in seeds])
    if any((np.diff(x) < 0).any() for x, _ in seeds):
        raise ValueError(
            f"against is {against!r}, which falls within the runs of {label!r}: means over seeds "
            "need a field that never falls, such as round or sim_seconds. Choose another, or give "
            "each run its own label."
        )
    every = np.unique(np.concatenate([x for x, _ in seeds]))
    low, high = max(x[0] for x, _ in seeds), min(x[-1] for x, _ in seeds)
    x = every[(low <= every) & (every <= high)]
    return x, np.array([y[np.searchsorted(ours, x, side="right") - 1] for ours, y in seeds])


def _value(row: Row, field: str) -> float:
    """The value of a field in curves; nan if it has none."""
    if field in COSTS:
        return np.nan if row[field] is None else float(row[field])
    return as_mean_value(row, field) if row.get(field) is not None or has_diverged(row) else np.nan


def _averaged(values: FloatArray, over: int) -> FloatArray:
    """Centred moving averages; near the ends, of as many values as there are on both sides."""
    if over == 1:
        return values
    reach = [min(over // 2, i, len(values) - 1 - i) for i in range(len(values))]
    return np.array([values[i - r : i + r + 1].mean() for i, r in enumerate(reach)])


def whole_ticks(axes: Axes) -> None:
    """Put the ticks of the horizontal axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True, steps=[1, 2, 5, 10]))


def log_ticks(axis: Axis) -> None:
    """Label a logarithmic axis at 1, 2 and 5 in each decade, by plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    decades = math.log10(high / low) if 0 < low < high else 1.0
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2.5 else (1,)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def save_figure(figure: Figure, path: Path | str) -> list[Path]:
    """Save a figure as .png and .pdf; return the two paths.

    >>> from wirelessfl.results import new_figure, save_figure
    >>> figure, (panel,) = new_figure()
    >>> [file.name for file in save_figure(figure, "empty")]
    ['empty.png', 'empty.pdf']

    Args:
        figure: the figure.
        path: path of the two files, without a suffix or with one of theirs.

    Raises:
        ValueError: the path has another suffix.
    """
    from matplotlib import rc_context

    path = expanded(path)
    if path.suffix not in ("", ".png", ".pdf"):
        raise ValueError(
            f"path is {path}: a figure is saved as .png and .pdf. Name one of them, or leave out "
            f"{path.suffix!r}."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    finish(figure)
    files = [path.with_suffix(suffix) for suffix in (".png", ".pdf")]
    with rc_context(style().rc):
        for file in files:
            try:
                figure.savefig(file, dpi=200)
            except OSError as error:  # e.g. on a full disk
                file.unlink(missing_ok=True)
                error.filename = error.filename or str(file)
                raise
    return files
