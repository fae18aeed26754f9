"""Helpers shared by the FedAST figures: compared cases, and the legend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from experiments.fedast.tables import CaseFilter, against_static, fastest
from experiments.studies import Case, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[[Results, Path], list[Path]]
Quantity = Literal["accuracy", "loss"]


def legend(panel: Axes) -> None:
    """One legend for all panels, above them."""
    figure, (handles, texts) = panel.figure, panel.get_legend_handles_labels()
    columns = round(figure.get_figwidth() / 2.3)
    figure.legend(
        handles, texts, fontsize=8, frameon=False, loc="outside upper center", ncols=columns
    )


def compared(results: Results, case_filter: CaseFilter) -> list[Case]:
    """FedAST (D) and its reference: the fastest Sync-ST, or FedAST (S)."""
    cases = [case for case in results.where() if case_filter(case)]
    dynamic = [case for case in cases if case["option"] == "D"]
    others = [case for case in cases if case["option"] != "D"]
    if case_filter is not against_static:
        others = [case for case in others if case["first"] != 0]
    return dynamic[:1] + ([fastest(results, others)] if others else [])


def both(*draws: Draw) -> Draw:
    """Combine several drawing functions into one, which returns all of their files."""
    return lambda results, out: [file for draw in draws for file in draw(results, out)]
