"""Figures of runs: a field of their rows against another one."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from channels.arguments import is_number
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import (
    STYLES,
    StyleName,
    draw_curves,
    log_ticks,
    new_figure,
    use_style,
)
from wirelessfl.base.figures.curves import style as current_style
from wirelessfl.base.figures.marks import EM, HANDLE, LINE, SPACING, TALL, entries, legend_above
from wirelessfl.base.rows import (
    field_of,
    is_accuracy,
    measured_field,
    numeric_fields,
    unknown_field,
)
from wirelessfl.base.wording import shown, suggestion

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Curves = Mapping[str, Sequence[Sequence[Row]]]
"""By label, the rows of each run."""
Log = Literal["", "x", "y", "xy"]


def plotted(
    curves: Curves,
    x: str = "seconds",
    y: str | None = None,
    *,
    target: float | None = None,
    log: Log = "",
    smooth: int = 1,
    style: StyleName = "screen",
) -> Figure:
    """Plot one curve per label: the mean over runs, and their range as a shaded area.

    Args:
        curves: by label, the rows of each run. At each value of ``x`` each run has its last known
            value, up to the end of the shortest one.
        x: rounds, seconds, mib, joules, wall, or another field of the rows.
        y: accuracy, loss, or another field; None for the accuracy or, in regression, the loss.
        target: value of ``y`` to mark with a line; an accuracy is in [0, 1].
        log: axes with a logarithmic scale: x, y or xy.
        smooth: number of successive rows that are averaged for each point, odd.
        style: "ieee" for print in one column, "screen" for slides and notebooks.

    Returns:
        The figure.

    Raises:
        ValueError: there are no rows, none has a field, or an option is wrong.
    """
    _check_choice("style", style, list(STYLES))
    _check_choice("log", log, get_args(Log))
    if target is not None and not is_number(target):
        raise ValueError(f"target is {shown(target)}: give a number.")
    every = [row for runs in curves.values() for rows in runs for row in rows]
    y = measured_field(every) if y is None else y
    against, what = field_of(x), field_of(y)
    names = numeric_fields(every)
    for name, value, field in (("x", x, against), ("y", y, what)):
        if curves and field not in names:
            raise ValueError(unknown_field(name, value, names, every))
    if "x" in log:
        curves = {label: _positive(label, runs, against) for label, runs in curves.items()}
    with use_style(style):
        form = current_style()
        figure, (axes,) = new_figure()
        draw_curves(
            axes,
            curves,
            against,
            what=what,
            smooth=smooth,
            target=target if is_accuracy(what) else None,
            legend=False,
        )
        if target is not None and not is_accuracy(what):
            axes.axhline(target, color="0.5", linewidth=0.8, linestyle=":")
        axes.tick_params(labelsize=form.small)  # also if it is saved in another style
        if len(curves) > 1:
            _legend(axes)
        else:
            axes.set_title(next(iter(curves)))
        if "x" in log:
            axes.set_xscale("log")
            log_ticks(axes.xaxis)
        if "y" in log:
            axes.set_yscale("log", nonpositive="mask")
            log_ticks(axes.yaxis)
    return for_notebooks(figure)


def relabelled(curves: Curves, labels: Mapping[str, str]) -> dict[str, Sequence[Sequence[Row]]]:
    """The curves with other labels.

    Args:
        curves: by label, the rows of each run.
        labels: new labels, by label.

    Raises:
        ConfigError: a label is unknown, or two curves get the same one.
    """
    for label in labels:
        if label not in curves:
            raise ConfigError(
                f"labels has {shown(label)}, which no curve has.{suggestion(label, curves)} The "
                f"labels are {', '.join(map(repr, curves))}."
            )
    made = {labels.get(name, name): rows for name, rows in curves.items()}
    if len(made) < len(curves):
        raise ConfigError(f"labels is {shown(dict(labels))}: give each curve a label of its own.")
    return made


def _legend(axes: Axes) -> None:
    """A legend, above the panel if it would hide the curves."""
    figure, by_text, small = (
        axes.figure.get_figure(root=True),
        entries([axes]),
        current_style().small,
    )
    width = (EM * max(map(len, by_text)) + HANDLE) * small / 72
    height = (LINE + SPACING) * small / 72 * len(by_text)
    if width > 0.7 * figure.get_figwidth() or height > TALL * figure.get_figheight():
        legend_above(figure, by_text)
    else:
        axes.legend(by_text.values(), by_text.keys(), fontsize=small, frameon=False, loc="best")


def for_notebooks(figure: Figure) -> Figure:
    """The figure, which notebooks then show, also without pyplot."""
    vars(figure)["_repr_png_"] = partial(_png, figure)
    return figure


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100)
    return file.getvalue()


def _check_choice(name: str, value: str, names: Sequence[str]) -> None:
    if value not in names:
        choices = ", ".join(one for one in names if one)
        raise ValueError(f"{name} is {shown(value)}.{suggestion(value, names)} Choose {choices}.")


def _positive(label: str, runs: Sequence[Sequence[Row]], field: str) -> list[list[Row]]:
    """The rows in which a field is positive, as a logarithmic axis needs."""
    positive = [[row for row in rows if (row.get(field) or 0) > 0] for rows in runs]
    if not all(positive):
        raise ValueError(
            f"log conflicts with {field}, which is 0 in all rows of {label!r}: leave log out."
        )
    return positive
