"""Figures of runs: a field of their rows against another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from wirelessfl.figures import STYLES, StyleName, draw_curves, new_figure, use_style
from wirelessfl.row_fields import field_of, is_accuracy, numeric_fields, unknown_field
from wirelessfl.wording import shown, suggestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Log = Literal["", "x", "y", "xy"]


def plotted(
    curves: Mapping[str, Sequence[Sequence[Row]]],
    x: str = "seconds",
    y: str = "accuracy",
    *,
    target: float | None = None,
    log: Log = "",
    smooth: int = 1,
    style: StyleName = "screen",
) -> Figure:
    """Plot one curve per label: the mean over runs, and their range as a shaded area.

    Args:
        curves: by label, the rows of each run; runs are compared row by row, up to the end of the
            shortest one.
        x: rounds, seconds, mib, joules, wall, or another field of the rows.
        y: accuracy, loss, or another field.
        target: value of ``y`` to mark with a line; an accuracy is in [0, 1].
        log: axes with a logarithmic scale: x, y or xy.
        smooth: number of successive rows that are averaged for each point, odd.
        style: "ieee" for print in one column, "screen" for slides and notebooks.

    Returns:
        The figure, to be saved in the same style.

    Raises:
        ValueError: there are no rows, none has a field, or an option is wrong.
    """
    for name, given, known in (("style", style, STYLES), ("log", log, get_args(Log))):
        if given not in known:
            choices = ", ".join(one for one in known if one)
            near = suggestion(given, known)
            raise ValueError(f"{name} is {shown(given)}.{near} Choose {choices}.")
    against, what = field_of(x), field_of(y)
    known_fields = numeric_fields(r for runs in curves.values() for rows in runs for r in rows)
    for name, given, field in (("x", x, against), ("y", y, what)):
        if curves and field not in known_fields:
            raise ValueError(unknown_field(name, given, known_fields))
    with use_style(style):
        figure, (axes,) = new_figure()
        draw_curves(
            axes,
            curves,
            against,
            what=what,
            smooth=smooth,
            target=target if is_accuracy(what) else None,
            legend=len(curves) > 1,
        )
        if target is not None and not is_accuracy(what):
            axes.axhline(target, color="0.5", linewidth=0.8, linestyle=":")
        if len(curves) == 1:
            axes.set_title(next(iter(curves)))
        if "x" in log:
            axes.set_xscale("log")
        if "y" in log:
            axes.set_yscale("log")
    return figure
