"""A design as a figure: a heat map over local steps and edge rounds, and seconds against joules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirelessfl.codesign.predicted import Designed
from wirelessfl.figures import COLOURS, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDE = 20.0
"""Ratio of the ends of an axis from which it is logarithmic."""


def design_figure(design: Designed) -> Figure:
    """See ``Design.plot``."""
    from matplotlib import rc_context

    front = design.reports.front
    with rc_context(style().rc):
        figure, axes = new_figure(2 if front else 1, height=2.8)
        _heat(figure, axes[0], design)
        if front:
            _front(axes[1], design)
    return figure


def _heat(figure: Figure, axes: Axes, design: Designed) -> None:
    steps, edges, scores = design.reports.heat
    least = design.goal.target is None
    values = np.where(np.isfinite(scores), -scores if least else scores, np.nan)
    axes.grid(visible=False)
    shown = axes.imshow(
        values.T, origin="lower", aspect="auto", cmap="viridis" if least else "viridis_r"
    )
    axes.set_xticks(range(len(steps)), [str(number) for number in steps])
    axes.set_yticks(range(len(edges)), [str(number) for number in edges])
    axes.set_xlabel("H, local steps")
    axes.set_ylabel("E, edge rounds")
    choice = design.choice
    axes.plot(
        steps.index(choice.local_steps),
        edges.index(choice.edge_rounds),
        "*",
        color=COLOURS[1],
        markersize=9,
    )
    axes.set_title(f"{choice.family.algorithm}: {design.goal.title}")
    unit = "accuracy" if least else "s" if design.goal.seconds_only else "objective"
    figure.colorbar(shown, ax=axes, label=unit)


def _front(axes: Axes, design: Designed) -> None:
    points = [(c.rounds * c.seconds, c.rounds * c.joules) for c in design.reports.front]
    axes.plot(*zip(*points, strict=True), marker="o", color=COLOURS[0])
    choice = design.choice
    axes.plot(
        choice.rounds * choice.seconds, choice.rounds * choice.joules, "*", color=COLOURS[1],
        linestyle="none", label="design", markersize=10,
    )  # fmt: skip
    for scale, values in zip(
        (axes.set_xscale, axes.set_yscale), zip(*points, strict=True), strict=True
    ):
        if max(values) > WIDE * min(values):
            scale("log")
    axes.set_xlabel("simulated seconds")
    axes.set_ylabel("joules per client")
    axes.set_title("seconds against joules")
    axes.legend()
