"""Stored runs: read, select, compare, tabulate and plot them, without training."""

from __future__ import annotations

from wirelessfl.results.load import load, load_all
from wirelessfl.results.runs import Runs
from wirelessfl.results.tables import Table

__all__ = ["Runs", "Table", "load", "load_all"]
