"""A run of one model with asynchronous cells."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from wirelessfl.runs.directory import Row
from wirelessfl.runs.rounds import RoundsEngine
from wirelessfl.schedules.events import Reached, Report
from wirelessfl.setup.setups import CellsSetup

STATUS = ("version", "staleness_mean", "staleness_max", "updates")
"""Fields of rows: merges, staleness since the previous row, and number of finished cell rounds."""


class CellsEngine(RoundsEngine):
    """The engine of runs with asynchronous cells, see ``Progress``."""

    setup: CellsSetup

    def row(self, report: Report) -> tuple[Row, Reached | None]:
        """Evaluate the cloud's model; ``round`` counts merges."""
        row, reached = super().row(report)
        return row | {name: report.status[name] for name in STATUS}, reached

    def tensors(self) -> dict[str, Tensor]:
        """Tensors of ``RoundsEngine``, and the models that training cells have received."""
        return super().tensors() | self.setup.regime.tensors()

    def snapshot(self) -> dict[str, Any]:
        """State of ``RoundsEngine``, and the cells' work and its end times."""
        return {**super().snapshot(), "cells": self.setup.regime.snapshot()}

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Continue from a checkpoint, including the cells' work in progress."""
        self.setup.training.restore(tensors, state["totals"])
        self.restore_schedule(state)
        self.setup.regime.restore(tensors, state["cells"])
