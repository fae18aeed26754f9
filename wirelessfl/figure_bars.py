"""Bars: means over seeds with targets that are not reached, and spans of simulated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wirelessfl.figure_marks import (
    NOT_REACHED,
    NOT_RUN,
    counted_seeds,
    draw_bound,
    draw_seeds,
    mark,
    mean_or_bound,
    missed,
)
from wirelessfl.figure_style import looks, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MANY_SPANS = 5000
"""Number of spans above which they are stored as pixels in the PDF."""
Span = tuple[float, float, float]
"""Begin and length in seconds, and height of the line."""
Looks = Mapping[str, Mapping[str, Any]]
"""Properties of patches, by kind of span."""


def draw_bars(
    axes: Axes,
    bars: Mapping[str, Mapping[str, Sequence[float | None]]],
    label: str,
    groups: Sequence[str] = (),
) -> None:
    """Draw grouped bars: a bar shows the mean over the seeds, and dots (of many, a line) the seeds.

    Args:
        axes: axes to draw on.
        bars: the seeds' values by series and group; None for a seed that does not reach the target,
            or ``AtLeast`` with the cost at which it ended. A bar of which only some seeds reach it
            is pale, with an arrow: a lower bound of the mean. If no seed does, the place has an
            arrow in a band at the top; if the group is absent, it is marked "not run".
        label: label of the vertical axis.
        groups: all groups in order; by default those of ``bars`` as they come.

    Raises:
        ValueError: there are no series or no groups.
    """
    from matplotlib.patches import Patch

    groups = groups or list(dict.fromkeys(group for series in bars.values() for group in series))
    if not bars or not groups:
        raise ValueError(f"bars is {dict(bars)}: give at least one series with a group.")
    width, small, by_label = 0.8 / len(bars), style().small, looks(list(bars))
    for i, (series, by_group) in enumerate(bars.items()):
        colour = by_label[series]["color"]
        gid = counted_seeds(map(len, by_group.values()))
        shown = axes.fill_between([], [], color=colour, label=series)
        shown.set_gid(gid)  # for legends: in full colour even if bars are pale
        for j, group in enumerate(groups):
            seeds = by_group.get(group, ())
            x = j + (i - (len(bars) - 1) / 2) * width
            height = mean_or_bound(seeds)
            (bar,) = axes.bar(x, height or 0.0, width, color=colour, gid=gid)
            bar.set(edgecolor="white", linewidth=0.5)
            if height is None:
                mark(axes, x, NOT_REACHED if group in by_group else NOT_RUN, colour)
                continue
            draw_seeds(axes, x, seeds, "0.2", beside=False)
            if any(map(missed, seeds)):
                bar.set_alpha(0.5)
                draw_bound(axes, x, height, "0.2")
    axes.set_xticks(range(len(groups)), groups, fontsize=small)
    axes.set_ylabel(label, fontsize=style().text)
    axes.grid(visible=False, axis="x")
    axes.set_axisbelow(True)
    axes.margins(y=0.35)  # room for the legend
    every = [seeds for by_group in bars.values() for seeds in by_group.values()]
    if all(mean_or_bound(seeds) is None for seeds in every):
        axes.set_ylim(0, 1)
        axes.set_yticks([])
    handles = [Patch(color=by_label[series]["color"], label=series) for series in bars]
    axes.legend(handles=handles, fontsize=small, frameon=False)


def draw_spans(
    panel: Axes,
    spans: Mapping[str, Sequence[Span]],
    looks: Looks,
    legend: Looks,
    *,
    clients: str,
    thick: Sequence[str] = (),
) -> None:
    """Draw what clients do over simulated time, a line per client.

    Args:
        panel: axes to draw on.
        spans: the spans of each kind.
        looks: properties of their patches.
        legend: entries of the legend above, with the properties of their patches.
        clients: which clients are shown.
        thick: kinds whose spans have no gaps between lines.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    pixels = sum(map(len, spans.values())) > MANY_SPANS
    for name, bars in spans.items():
        if not bars:
            continue
        begin, length, height = np.array(bars).T
        half = 0.5 if name in thick else 0.4
        x = np.stack([begin, begin + length, begin + length, begin], -1)
        y = np.stack([height - half, height - half, height + half, height + half], -1)
        look = {"linewidth": 0.0, "zorder": 1, **looks[name]}
        panel.add_collection(
            PolyCollection(list(np.stack([x, y], -1)), label=name, rasterized=pixels, **look)
        )
    panel.set_xlabel("simulated time (s)", fontsize=style().text)
    panel.set_ylabel(clients, fontsize=style().text)
    panel.legend(
        handles=[Patch(label=name, **look) for name, look in legend.items()],
        fontsize=style().small,
        frameon=False,
        loc="lower right",
        ncols=len(legend),
        bbox_to_anchor=(1.0, 1.0),
        columnspacing=1.0,
        handlelength=1.2,
    )
