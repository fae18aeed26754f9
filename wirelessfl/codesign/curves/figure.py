"""Figures of a learning curve: measured against predicted rounds, and accuracy against rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirelessfl.codesign.curves.shown import ShownCurve
from wirelessfl.figures import COLOURS, DASHES, MARKERS, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SHOWN = 6
"""Largest number of pilots whose accuracies are drawn."""


def draw_rounds(axes: Axes, curve: ShownCurve) -> None:
    """Measured rounds of each pilot against those predicted from the other pilots.

    Open marks are bounds: triangles up for pilots that end before the target, triangles down for
    those that reach it before their first evaluation.
    """
    observed, found = curve.observed, curve.left_out
    for t, target in enumerate(curve.observed.targets):
        colour = COLOURS[t % len(COLOURS)]
        kinds = (observed.exact, None), (observed.censored, "^"), (observed.early, "v")
        for kind, sign in kinds:
            chosen = kind[:, t] & np.isfinite(found[:, t])
            axes.plot(
                found[chosen, t],
                observed.rounds[chosen, t],
                linestyle="none",
                marker=sign or MARKERS[t % len(MARKERS)],
                markersize=style().small / 1.8,
                markerfacecolor="none" if sign else colour,
                color=colour,
                label=None if sign else f"target {100 * target:.3g} %",
            )
    finite = found[np.isfinite(found)]
    low = min(finite.min(initial=np.inf), observed.rounds.min())
    high = max(finite.max(initial=0.0), observed.rounds.max())
    axes.plot([low, high], [low, high], color="0.5", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("predicted from the other pilots (rounds)", fontsize=style().text)
    axes.set_ylabel("measured (rounds)", fontsize=style().text)
    axes.legend(fontsize=style().small, frameon=False, loc="best")


def draw_accuracies(axes: Axes, curve: ShownCurve) -> None:
    """Best accuracies so far of some pilots (thin), and the fitted curve at their settings."""
    order = sorted(curve.runs, key=lambda run: run.settings)
    places = np.unique(np.linspace(0, len(order) - 1, min(SHOWN, len(order))).round().astype(int))
    shades = np.linspace(curve.observed.targets[0], curve.observed.targets[-1], 40)
    for i, place in enumerate(places):
        run, colour = order[place], COLOURS[i % len(COLOURS)]
        trained = run.rounds > 0
        axes.plot(
            run.rounds[trained], 100 * run.best[trained], color=colour, linewidth=0.6, alpha=0.6
        )
        settings = run.settings
        rounds = np.array([curve.rounds(target, *settings) for target in shades])
        dashes = DASHES[i % len(DASHES)]
        axes.plot(
            rounds,
            100 * shades,
            color=colour,
            linestyle=dashes,
            linewidth=1.2 * style().line,
            label=run.label,
        )
    axes.set_xscale("log")
    low = 100 * (2 * curve.observed.targets[0] - curve.observed.targets[-1])
    axes.set_ylim(bottom=max(0.0, low))
    axes.set_xlabel("global round", fontsize=style().text)
    axes.set_ylabel("best validation accuracy so far (%)", fontsize=style().text)
    axes.legend(fontsize=style().small, frameon=False, loc="best")


def figure(curve: ShownCurve) -> Figure:
    """Both panels."""
    found, (left, right) = new_figure(2, height=3.0)
    draw_rounds(left, curve)
    draw_accuracies(right, curve)
    return found
