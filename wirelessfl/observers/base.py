"""The protocol of observers: three hooks, at a run's start, after each row, and at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from wirelessfl.config import Config

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Running:
    """A run as its observers see it.

    Args:
        config: resolved settings.
        directory: folder of the run.
        rows: all rows so far, those before an interruption included; observers do not change them.
        params: returns a copy of the current parameters by name, as ``RunResult.params``.
        note: shows a message to the user, one line.
    """

    config: Config
    directory: Path
    rows: Sequence[Row]
    params: Callable[[], dict[str, Tensor]]
    note: Callable[[str], None]


class Observer:
    """Sees a run; derive from it and define the hooks that are needed.

    An observer that keeps a state derives it from ``run.rows`` in ``begin``, so that a resumed run
    ends as an uninterrupted one. An error in a hook ends the run with a checkpoint, from which
    ``resume`` continues.
    """

    def begin(self, run: Running) -> None:
        """Called once before training starts or resumes."""

    def row(self, run: Running, row: Row) -> str | None:
        """Called after each row has been stored.

        Returns:
            None to continue, or the reason to end the run here, such as "no improvement in 10
            rows": the run is then finished, with a checkpoint.
        """
        return None

    def end(self, run: Running) -> None:
        """Called once when training ends: finished, ended by an observer, or interrupted."""
