"""The operations that differ between kinds of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from wirelessfl.runs.directory import Row
from wirelessfl.schedules.events import Event, Report
from wirelessfl.setup.setups import Setup


class Engine(Protocol):
    """The operations that differ between rounds, sessions, asynchronous cells and tasks."""

    @property
    def setup(self) -> Setup:
        """Setup of the run."""

    def start(self) -> None:
        """Put the first events on the clock."""

    def row(self, report: Report) -> tuple[Row, Event | None]:
        """Evaluate a model; return its row, and an event for the schedule or None."""

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of the state, for a checkpoint."""

    def snapshot(self) -> dict[str, Any]:
        """The rest of the state, as numbers, strings, lists and dicts."""

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Continue from a checkpoint, and put the next events on the clock."""

    def attach(self, folder: Path, rows: Sequence[Row]) -> None:
        """Set the run's folder, and its rows so far, which grow."""

    def saved(self) -> None:
        """Note that a checkpoint has been written."""

    def fingerprint(self) -> dict[str, str]:
        """Short hashes of model, data and network, keyed by their names in error messages."""

    def params(self) -> dict[str, Tensor]:
        """The current parameters, by name."""

    def ended(self) -> str | None:
        """Why the run ends before its last round, if energy does not suffice for it."""
