"""Figures 2 to 4: accuracy over the rounds of all sessions, one curve per warm start."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.dynamic_clients.methods import SHOWN
from experiments.labels import SPREAD, data_name, seeds_text, shown
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import (
    NOT_RUN,
    draw_curves,
    new_figure,
    style,
)
from wirelessfl.results.panels import legend, same_limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUNDARIES = "vertical lines: change of clients"


def curves(results: Results, columns: str, lines: Sequence[str]) -> Figure:
    """The paper's picture of sessions, from the rows of a study.

    Args:
        results: the runs of the study.
        columns: setting with one column of panels per value.
        lines: settings with one line of panels for each combination of their values.
    """
    cases = results.study.cases
    across = list(dict.fromkeys(case[columns] for case in cases))
    down = list(dict.fromkeys(tuple(case[one] for one in lines) for case in cases))
    figure, axes = new_figure(len(across), height=1.6, rows=len(down))
    order = [SHOWN[start] for start in SHOWN if any(c["warm_start"] == start for c in cases)]
    for panel, (values, column) in zip(axes, itertools.product(down, across), strict=True):
        settings = {columns: column, **dict(zip(lines, values, strict=True))}
        planned = [case for case in cases if case.matches(settings)]
        rows = {SHOWN[c["warm_start"]]: results.rows(c) for c in planned if results.of(c)}
        missing = [SHOWN[c["warm_start"]] for c in planned if not results.of(c)]
        if rows:
            draw_curves(panel, rows, "round", legend=False, styles=order)
            panel.set_xlim(left=0)
            for end in boundaries(results, planned):
                panel.axvline(end, color="0.75", linewidth=0.6, zorder=0.5)
        if not rows or missing:
            text = NOT_RUN if not rows else f"{NOT_RUN}: {', '.join(missing)}"
            at, small = panel.transAxes, style().small
            panel.text(0.5, 0.02, text, transform=at, ha="center", fontsize=small)
        named = [one for one in (*lines, columns) if len({c[one] for c in cases}) > 1]
        panel.set_title(", ".join(shown(c, one) for c in planned[:1] for one in named))
    for place, panel in enumerate(axes):
        panel.set_ylabel(panel.get_ylabel() if place % len(across) == 0 else "")
        last = place >= len(axes) - len(across)
        panel.set_xlabel(panel.get_xlabel() if last else "")
    same_limits(axes)
    stored = results.where()
    seeds = seeds_text(results, stored, SPREAD)
    legend(figure, axes, data_name(stored), seeds, BOUNDARIES)
    return figure


def boundaries(results: Results, cases: Sequence[Case]) -> list[int]:
    """The rounds at which a session begins, without the first one."""
    rows = next(runs[0] for case in cases if (runs := results.rows(case)))
    return [row["round"] for row in rows if row["session"] and not row["session_round"]]
