"""Figures of runs: accuracy, loss or another field against rounds, MiB, seconds or joules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from wirelessfl.divergence import counted, has_diverged
from wirelessfl.figure_style import (
    COLOURS,
    DASHES,
    MARKERS,
    STYLES,
    Style,
    StyleName,
    line_look,
    style,
    use_style,
)
from wirelessfl.row_fields import (
    COSTS,
    TITLES,
    field_of,
    is_accuracy,
    numeric_fields,
    title_of,
    unknown_field,
)
from wirelessfl.wording import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS", "DASHES", "LABELS", "MARKERS", "NOT_REACHED", "NOT_RUN", "STYLES",
    "Against", "Row", "Style", "StyleName", "What",
    "draw_bars", "draw_curves", "line_look", "mark", "new_figure", "save_figure", "style",
    "use_style", "whole_ticks",
]  # fmt: skip

Row = Mapping[str, Any]
Against = Literal["round", "uplink_mib", "sim_seconds"]
What = Literal["accuracy", "loss", "validation_accuracy", "validation_loss"]

LABELS: dict[Against, str] = {name: TITLES[name] for name in get_args(Against)}
WIDE = 2.5
"""Width of wide curves, relative to others."""
CROWDED = 4
"""Number of curves from which a panel's curves have markers."""
NOT_REACHED, NOT_RUN = "not reached", "not run"
SHIFT = 1.15
"""Distance of marks at the same place, in units of the size of the text."""


def new_figure(columns: int = 1, height: float = 2.6, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Create a figure of the width of one column or, with several panels side by side, of two.

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
    wide: Sequence[str] = (),
    median: bool = False,
    what: str = "accuracy",
    smooth: int = 1,
) -> None:
    """Plot accuracy in percent, loss or another field of rows, with one curve per label.

    A diverged model has the accuracy 0 and no loss, so its curve of losses ends there.

    Args:
        axes: axes to draw on.
        runs: by label, the rows of each seed's run; a curve shows the mean over the seeds, and the
            shaded area their range.
        against: field of the rows on the horizontal axis (mean over the seeds), or its short name:
            rounds, mib, seconds, wall.
        target: accuracy in [0, 1] to mark with a horizontal line.
        floor: lowest accuracy shown, in [0, 1].
        common: whether the horizontal axis ends shortly after the end of the shortest curve, or
            after all curves that reach the target have reached it.
        legend: whether to draw a legend.
        median: whether a curve shows the median over the seeds instead of the mean.
        styles: all labels in a fixed order, so that a label has the same colour and dashes in
            all panels.
        wide: labels of curves that are drawn wide and pale below the others, and so are seen where
            others lie on them.
        what: field of the rows on the vertical axis.
        smooth: number of successive rows that are averaged for each point of a curve, odd.

    Raises:
        ValueError: there is no curve, a curve has no rows or rows without the fields, a label is
            not in ``styles``, ``target`` or ``floor`` is outside [0, 1] or given for a loss, or
            ``smooth`` is even.
    """
    against, what = field_of(against), field_of(what)
    _check_scales(what, {"target": target, "floor": floor}, smooth)
    _check_curves(runs, {"against": against, "what": what}, styles)
    ends: list[float] = []
    hits: list[float] = []
    accuracy = is_accuracy(what)
    order = list(styles) or list(runs)
    alpha = 0.15 if len(runs) < CROWDED else 0.08
    for label, seeds in runs.items():
        i = order.index(label)
        length = min(len(rows) for rows in seeds)
        x = np.mean([[row[against] for row in rows[:length]] for rows in seeds], axis=0)
        y = np.array([[_value(row, what) for row in rows[:length]] for rows in seeds])
        y = np.array([_averaged(one, smooth) for one in y]) * (100 if accuracy else 1)
        ends.append(x[-1])
        drawn = np.median(y, axis=0) if median else y.mean(0)
        if target is not None and (hit := np.flatnonzero(drawn >= 100 * target)).size:
            hits.append(x[hit[0]])
        look: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)]}
        look |= {"linestyle": DASHES[i % len(DASHES)], "linewidth": style().line}
        if label in wide:
            look |= {"linewidth": WIDE * style().line, "alpha": 0.5, "zorder": 1.9}
        if len(order) >= CROWDED:
            step = max(length // 6, 1)
            look |= {"marker": MARKERS[i % len(MARKERS)], "markersize": style().small / 2.2}
            look |= {"markevery": (i * step // len(order), step), "markeredgewidth": 0}
        axes.plot(x, drawn, label=label, **look)
        if len(seeds) > 1:
            axes.fill_between(x, y.min(0), y.max(0), color=look["color"], alpha=alpha, linewidth=0)
    if target is not None:
        axes.axhline(100 * target, color="0.5", linewidth=0.8, linestyle=":")
    if against == "round":
        whole_ticks(axes)
    end = max(1.2 * min(ends), 1.05 * max(hits, default=0.0))
    if common and end > 0:  # not if all rows are at zero
        axes.set_xlim(0, end)
    if floor is not None:
        axes.set_ylim(bottom=100 * floor)
    axes.set_xlabel(title_of(against), fontsize=style().text)
    axes.set_ylabel(title_of(what), fontsize=style().text)
    if legend:
        axes.legend(fontsize=style().small, frameon=False, loc="best")


def _check_scales(what: str, accuracies: Mapping[str, float | None], smooth: int) -> None:
    """Check settings of ``draw_curves``; those in ``accuracies`` are of accuracies only.

    Raises:
        ValueError: see ``draw_curves``.
    """
    for name, value in accuracies.items():
        if value is None:
            continue
        if not is_accuracy(what):
            raise ValueError(
                f"{name}={value} conflicts with what={what!r}: it is an accuracy. Leave it out."
            )
        if not 0 <= value <= 1:
            raise ValueError(
                f"{name} is {shown(value)}: give an accuracy in [0, 1], such as 0.9 for 90 %."
            )
    if not isinstance(smooth, int) or smooth < 1 or smooth % 2 == 0:
        raise ValueError(f"smooth is {shown(smooth)}: give an odd number of rows, at least 1.")


def _check_curves(runs: Any, fields: Mapping[str, str], styles: Sequence[str]) -> None:
    """Check the rows that ``draw_curves`` is given.

    Args:
        runs: its argument.
        fields: fields that all rows need, by the argument that gives them.
        styles: its argument.

    Raises:
        ValueError: see ``draw_curves``.
    """
    if not isinstance(runs, Mapping):
        raise ValueError(
            f"runs is {shown(runs)}: give the rows of each seed's run by label, such as "
            '{"fedavg": [result.rows]}.'
        )
    if not runs:
        raise ValueError("runs is empty: give at least one curve.")
    for label, seeds in runs.items():
        if not seeds or not all(seeds):
            raise ValueError(f"runs[{label!r}] has no rows: give rows of at least one run.")
        if not all(isinstance(row, Mapping) for rows in seeds for row in rows):
            raise ValueError(
                f"runs[{label!r}] is {shown(seeds)}: give a list of the rows of each run, such as "
                "[result.rows]."
            )
        if styles and label not in styles:
            raise ValueError(f"styles is {shown(styles)}: it lacks the label {label!r}. Add it.")
    together = [row for seeds in runs.values() for rows in seeds for row in rows]
    every = numeric_fields(together)
    for argument, name in fields.items():
        if name not in every and name not in TITLES:
            raise ValueError(unknown_field(argument, name, every, together))
    for label, seeds in runs.items():
        lacking = [name for name in fields.values() if any(name not in rows[0] for rows in seeds)]
        if lacking:
            raise ValueError(
                f"the rows of runs[{label!r}] have no {lacking[0]!r}: choose another field, or "
                "leave this curve out."
            )


def _value(row: Row, field: str) -> float:
    """The value of a field in curves; nan if it has none."""
    if field in COSTS:
        return float(row[field])
    return counted(row, field) if row.get(field) is not None or has_diverged(row) else np.nan


def _averaged(values: Any, over: int) -> Any:
    """Centred moving averages; near the ends, of as many values as there are on both sides."""
    reach = [min(over // 2, i, len(values) - 1 - i) for i in range(len(values))]
    return [values[i - r : i + r + 1].mean() for i, r in enumerate(reach)]


def whole_ticks(axes: Axes) -> None:
    """Put the ticks of the horizontal axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True, steps=[1, 2, 5, 10]))


def save_figure(figure: Figure, path: Path | str) -> list[Path]:
    """Save a figure as .png and .pdf; return the two paths.

    Args:
        figure: the figure.
        path: path of the two files, without a suffix or with one of theirs.

    Raises:
        ValueError: the path has another suffix.
    """
    from matplotlib import rc_context

    path = Path(path)
    if path.suffix not in ("", ".png", ".pdf"):
        raise ValueError(
            f"path is {path}: a figure is saved as .png and .pdf. Name one of them, or leave out "
            f"{path.suffix!r}."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_suffix(suffix) for suffix in (".png", ".pdf")]
    with rc_context(style().rc):
        for file in files:
            figure.savefig(file, dpi=200)
    return files


def draw_bars(
    axes: Axes,
    bars: Mapping[str, Mapping[str, Sequence[float | None]]],
    label: str,
    groups: Sequence[str] = (),
) -> None:
    """Draw grouped bars: a bar shows the mean over the seeds, and a line the range.

    Args:
        axes: axes to draw on.
        bars: the seeds' values by series and group; None for a seed that does not reach the target.
            A bar of some seeds is hatched, and their number stands above it. If no seed has a
            value, the place is marked "not reached"; if the group is absent, "not run".
        label: label of the vertical axis.
        groups: all groups in order; by default those of ``bars`` as they come.

    Raises:
        ValueError: there are no series or no groups.
    """
    from matplotlib.patches import Patch

    groups = groups or list(dict.fromkeys(group for series in bars.values() for group in series))
    if not bars or not groups:
        raise ValueError(f"bars is {dict(bars)}: give at least one series with a group.")
    width, small = 0.8 / len(bars), style().small
    for i, (series, by_group) in enumerate(bars.items()):
        colour = COLOURS[i % len(COLOURS)]
        for j, group in enumerate(groups):
            seeds = by_group.get(group, ())
            values = [value for value in seeds if value is not None]
            x = j + (i - (len(bars) - 1) / 2) * width
            named = series if j == 0 else None
            height = float(np.mean(values)) if values else 0.0
            (bar,) = axes.bar(x, height, width, color=colour, label=named)
            bar.set(edgecolor="white", linewidth=0.5)
            if len(values) > 1:
                axes.plot([x, x], [min(values), max(values)], color="0.2", linewidth=1)
            if 0 < len(values) < len(seeds):
                bar.set_hatch("////")
                text = f"{len(values)}/{len(seeds)}"
                axes.text(x, max(values), text, fontsize=small, ha="center", va="bottom")
            if not values:
                mark(axes, x, NOT_REACHED if group in by_group else NOT_RUN, colour)
    axes.set_xticks(range(len(groups)), groups, fontsize=small)
    axes.set_ylabel(label, fontsize=style().text)
    axes.grid(visible=False, axis="x")
    axes.set_axisbelow(True)
    axes.margins(y=0.35)  # room for the legend
    if not any(v is not None for by_group in bars.values() for s in by_group.values() for v in s):
        axes.set_ylim(0, 1)
        axes.set_yticks([])
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(bars))]
    handles = [Patch(color=c, label=series) for c, series in zip(colours, bars, strict=True)]
    axes.legend(handles=handles, fontsize=small, frameon=False)


def mark(axes: Axes, x: float, text: str, colour: str = "0.3") -> None:
    """Write a vertical text at a place of the horizontal axis that has no value.

    Several marks at the same place stand side by side, centred on it.

    Args:
        axes: axes to draw on.
        x: the place.
        text: ``NOT_REACHED`` or ``NOT_RUN``.
        colour: colour of the text.
    """
    from matplotlib.text import Annotation

    axes.annotate(
        text,
        (x, 0),
        (0, 3),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=style().small,
        fontstyle="italic" if text == NOT_RUN else "normal",
        color=colour,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.85},
        zorder=1.5,  # above the grid, below lines and error bars
        rotation=90,
        ha="center",
        va="bottom",
    )
    annotations = (one for one in axes.texts if isinstance(one, Annotation))
    marks = [one for one in annotations if one.xy == (x, 0)]
    for i, one in enumerate(marks):
        one.xyann = (i - (len(marks) - 1) / 2) * SHIFT * style().small, 3
