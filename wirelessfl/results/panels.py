"""Parts of figures with several panels: grids, legends, notes, and marks of what is missing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wirelessfl.figure_marks import (
    ONE,
    counted_seeds,
    draw_bound,
    draw_seeds,
    entries,
    explained,
    legend_above,
    mean_or_bound,
    missed,
    wrapped,
)
from wirelessfl.figures import NOT_REACHED, NOT_RUN, line_look, mark, new_figure, style

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
        if (own := panel.get_legend()) is not None:
            own.remove()
    by_text = entries(axes)
    said = "; ".join(fact for fact in (*facts, *explained(figure)) if fact)
    said = wrapped(figure, said)
    if len(by_text) < 2:
        figure.suptitle(said, fontsize=style().small)
        return
    legend_above(figure, by_text, said)


def note(figure: Figure, text: str) -> None:
    """Write a note below the panels, after other notes."""
    before = figure.get_supxlabel()
    said = f"{before}\n{text}" if before else text
    figure.supxlabel(said, fontsize=style().small, color="0.3", x=0.01, ha="left")


def same_limits(axes: Sequence[Axes], *, x: bool = False, y: bool = True) -> None:
    """Give panels that are compared the same axes."""
    for wanted, way in ((x, "x"), (y, "y")):
        if wanted and axes:
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

    Up to five seeds are dots, more a range. If some seeds have no value, the place has an open
    marker at a lower bound of the mean, with an arrow. Places without any value are arrows in a
    band at the top, and those without runs are marked "not run"; lines are interrupted there.

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
    found = {x: mean_or_bound(seeds or ()) for x, seeds in sorted(points.items())}
    means = {x: mean for x, mean in found.items() if mean is not None}
    look = dict(look or line_look(place, name)) | ({} if line else {"linestyle": "none"})
    colour, marker, size = look["color"], look["marker"], look["markersize"]
    seeds = {x: points[x] or () for x in means}
    gid = counted_seeds(map(len, seeds.values()))
    within = [x for x in found if means and min(means) <= x <= max(means)]
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
        if x not in means:
            panel.update_datalim([(x + shift, 0.0)], updatey=False)
            mark(panel, x + shift, NOT_RUN if points[x] is None else NOT_REACHED, colour)
    panel.autoscale_view()
