"""Curves of accuracy of stored runs, as in Figures 5, 6a, 6b and 7a."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import draw_curves
from wirelessfl.base.figures.marks import NOT_RUN
from wirelessfl.base.figures.style import looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_cases(
    panel: Axes,
    results: Results,
    cases: Mapping[str, Case],
    against: str,
    target: float | None = None,
) -> None:
    """Draw the accuracy of cases by label; the legend names cases without runs as not run."""
    curves = {text: rows for text, case in cases.items() if (rows := results.rows(case))}
    styles = list(cases)
    if curves:
        draw_curves(panel, curves, against, target=target, legend=False, styles=styles)
    for text, look in looks(styles).items():
        if text not in curves:
            panel.plot([], [], label=f"{text} ({NOT_RUN})", **look | {"marker": ""})
