"""Stored runs: read, select, compare, tabulate and plot them, without training."""

from __future__ import annotations

from wirelessfl.base.figures.curves import draw_curves, new_figure, save_figure
from wirelessfl.base.figures.style import line_look
from wirelessfl.results.load import load, load_all
from wirelessfl.results.panels import draw_points
from wirelessfl.results.runs import Runs
from wirelessfl.results.tables import Table

__all__ = [
    "Runs",
    "Table",
    "draw_curves",
    "draw_points",
    "line_look",
    "load",
    "load_all",
    "new_figure",
    "save_figure",
]
