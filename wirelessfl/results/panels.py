"""Parts of figures with several panels: grids, legends, notes, and marks of what is missing."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wirelessfl.figures import NOT_REACHED, NOT_RUN, line_look, mark, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EM = 0.58
"""Mean width of a character, in units of the size of the text."""
PARTLY = "partly"
"""Mark of hollow markers."""


def grid(panels: int, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """A figure with this many panels, at most three side by side; four are two by two."""
    columns = panels if panels <= 3 else 2 if panels == 4 else 3
    figure, axes = new_figure(columns, height, rows=math.ceil(panels / columns))
    for unused in axes[panels:]:
        unused.remove()
    return figure, axes[:panels]


def legend(figure: Figure, axes: Sequence[Axes], *facts: str, order: Sequence[str] = ()) -> None:
    """One legend for all panels, above them, under a line of facts such as data set and seeds.

    Args:
        figure: the figure.
        axes: panels whose labels are in the legend, in place of their own legends.
        facts: data set, target, seeds; empty ones are left out.
        order: all labels in order; by default as they come.
    """
    for panel in axes:
        if (own := panel.get_legend()) is not None:
            own.remove()
    by_text: dict[str, Any] = {}
    for panel in axes:
        for handle, text in zip(*panel.get_legend_handles_labels(), strict=True):
            by_text.setdefault(text, _plain(handle))
    by_text = {text: by_text[text] for text in order or by_text if text in by_text}
    said = "; ".join(fact for fact in (*facts, _partly(figure)) if fact)
    said, small = wrapped(figure, said), style().small
    if len(by_text) < 2:
        figure.suptitle(said, fontsize=small)
        return
    entry = (EM * max(map(len, by_text)) + 4.5) * small / 72
    fitting = max(min(int(figure.get_figwidth() / entry), len(by_text)), 1)
    figure.legend(
        by_text.values(),
        by_text.keys(),
        title=said,
        loc="outside upper center",
        ncols=math.ceil(len(by_text) / math.ceil(len(by_text) / fitting)),
        fontsize=small,
        title_fontsize=small,
        frameon=False,
        columnspacing=1.2,
        handlelength=2.8,
        borderpad=0.1,
    ).get_title().set_multialignment("center")


def _plain(handle: Any) -> Any:
    """The handle of a legend, without the hatching of a single bar."""
    from matplotlib.container import BarContainer
    from matplotlib.patches import Patch

    bars = isinstance(handle, BarContainer)
    return Patch(color=handle.patches[0].get_facecolor()) if bars else handle


def _partly(figure: Figure) -> str:
    """What marks a mean over some of the seeds only, if the figure has one."""
    if any(bar.get_hatch() for panel in figure.axes for bar in panel.patches):
        return "hatched: n/m seeds reach the target"
    if any(line.get_gid() == PARTLY for panel in figure.axes for line in panel.get_lines()):
        return "hollow: not all seeds reach the target"
    return ""


def wrapped(figure: Figure, text: str) -> str:
    """The text in as few lines as fit into the figure, of about equal length."""
    width = int(72 * figure.get_figwidth() / (EM * style().small))
    lines = textwrap.wrap(text, width, break_long_words=False)
    for narrower in range(width - 1, 0, -1):
        found = textwrap.wrap(text, narrower, break_long_words=False)
        if len(found) > len(lines):
            break
        lines = found
    return "\n".join(lines)


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
    """Make room for marks below the points of a logarithmic axis, and drop its minor labels."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = panel.get_ylim()
    low, high = low / (high / low) ** (0.4 if panel.texts else 0.05), high * (high / low) ** 0.05
    panel.set_ylim(low, high)
    panel.yaxis.set_minor_formatter(NullFormatter())
    if math.log10(high / low) < 1:
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")


def room_below(axes: Sequence[Axes]) -> None:
    """Make room without ticks for marks below the values of linear axes, if a panel has marks."""
    if any(panel.texts for panel in axes):
        for panel in axes:
            low, high = panel.get_ylim()
            panel.set_yticks([tick for tick in panel.get_yticks() if low <= tick <= high])
            panel.set_ylim(low - 0.4 * (high - low), high)


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
) -> None:
    """Plot the mean and the range of the seeds at each place.

    A hollow marker means that some seeds have no value: the mean is of the others. Places without
    any value are marked "not reached", and those without runs "not run", in the series' colour.

    Args:
        panel: axes to draw on.
        points: values by place.
        name: the series' name in the legend.
        place: the series' number, which decides its colour, dashes and marker.
        line: whether to connect the means.
        shift: added to all places, so that series do not hide each other.
    """
    known = {x: [v for v in seeds or () if v is not None] for x, seeds in points.items()}
    known = {x: values for x, values in sorted(known.items()) if values}
    means = [statistics.mean(values) for values in known.values()]
    look = line_look(place) | ({} if line else {"linestyle": "none"})
    colour, marker, size = look["color"], look["marker"], look["markersize"]
    panel.plot([x + shift for x in known], means, label=name, **look)
    for x, values, mean in zip(known, known.values(), means, strict=True):
        if len(values) > 1:
            ends = [min(values), max(values)]
            panel.plot([x + shift] * 2, ends, "_-", color=colour, linewidth=1, markersize=4)
        if len(values) < len(points[x] or ()):
            panel.plot(
                x + shift, mean, marker, markersize=size / 2, color="white", zorder=3, gid=PARTLY
            )
    for x, seeds in points.items():
        if x not in known:
            panel.update_datalim([(x, 0.0)], updatey=False)
            text = NOT_RUN if seeds is None else NOT_REACHED
            mark(panel, x, text, colour)
    panel.autoscale_view()
