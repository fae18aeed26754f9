"""What tables and figures read of a learning curve.

Figures of a learning curve: measured against predicted rounds, and accuracy against rounds.

The table of a learning curve.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from wirelessfl.base.figures.curves import COLOURS, DASHES, MARKERS, new_figure, style
from wirelessfl.designs.curves.pilot import Pilot
from wirelessfl.designs.curves.power import Observed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class ShownCurve(Protocol):
    """The fields of ``RoundsCurve`` that are shown."""

    @property
    def form(self) -> str:
        """The chosen form."""

    @property
    def errors(self) -> dict[str, float]:
        """Errors by form."""

    @property
    def observed(self) -> Observed:
        """What the pilots say."""

    @property
    def runs(self) -> tuple[Pilot, ...]:
        """The pilots."""

    @property
    def left_out(self) -> FloatArray:
        """Predictions of left-out pilots."""

    @property
    def coefficients(self) -> dict[str, FloatArray]:
        """Coefficients by name."""

    def rounds(
        self,
        target: float,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None,
        largest: ArrayLike,
        noise: ArrayLike,
    ) -> FloatArray:
        """Rounds to a target."""


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


def table(curve: ShownCurve) -> str:
    """The errors of all forms, the coefficients, and each pilot beside its prediction.

    ``left out``: rounds as predicted from the pilots with other settings; ``>`` and ``<`` mark
    bounds.
    """
    return "\n".join(_lines(curve))


def _lines(curve: ShownCurve) -> Iterator[str]:
    observed = curve.observed
    wall = sum(run.wall_seconds for run in curve.runs)
    censored, early = int(observed.censored.sum()), int(observed.early.sum())
    yield f"Rounds to a validation accuracy, from {len(curve.runs)} pilots"
    yield f"training of the pilots: {wall:.0f} wall-clock seconds"
    yield f"pilots x targets: {observed.rounds.size}"
    yield f"  end before the target: {censored}"
    yield f"  reach it before the first evaluation: {early}"
    yield ""
    yield "form                  error of left-out pilots"
    for form, error in curve.errors.items():
        chosen = "  chosen" if form == curve.form else ""
        yield f"{form:20}  {np.expm1(error):>7.1%}{chosen}"
    yield ""
    for name, values in curve.coefficients.items():
        if np.any(values):
            yield f"{name:20}  " + "  ".join(f"{value:>8.4g}" for value in np.atleast_1d(values))
    yield ""
    targets = observed.targets
    yield f"{'validation accuracy':22}" + "  ".join(f"{target:>17.4g}" for target in targets)
    yield f"{'rounds':22}" + "  ".join([f"{'measured':>8} {'left out':>8}"] * len(targets))
    for i, run in enumerate(curve.runs):
        cells = []
        for t in range(len(targets)):
            sign = ">" if observed.censored[i, t] else "<" if observed.early[i, t] else ""
            measured = f"{sign}{observed.rounds[i, t]:.4g}"
            cells.append(f"{measured:>8} {curve.left_out[i, t]:>8.4g}")
        yield f"{run.label:22}" + "  ".join(cells)
