"""Writes the rows of a run to Trackio."""

from __future__ import annotations

import importlib
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import Any

from wirelessfl.observers.observer import Observer, Row, Running
from wirelessfl.observers.trackers import check_installed, numbers_of

FOLDER = "directory"
"""Entry of a run's configuration in Trackio: the absolute path of its folder here."""


class Trackio(Observer):
    """Writes every numeric field of each row to Trackio's database; show it by ``trackio show``.

    A run has the name of its folder. A resumed run is written anew from its rows, so that each row
    is there once. Steps are rounds, or a task's merges.

    >>> from wirelessfl.observers import Trackio
    >>> tracker = Trackio(project="hist-at-the-edge")  # for run(..., observers=[tracker])
    >>> tracker.project
    'hist-at-the-edge'

    Args:
        project: name of the project in Trackio.

    Raises:
        ConfigError: the package trackio is not installed.
    """

    def __init__(self, project: str = "wirelessfl") -> None:
        check_installed("trackio")
        self.project = project
        self._run: Any = None

    def row(self, run: Running, row: Row) -> None:
        """Write a row, and before the first one all rows before an interruption."""
        rows = [row]
        if self._run is None:
            self._run, rows = self._opened(run), [*run.rows]  # the last one is ``row``
        for each in rows:
            self._run.log(numbers_of(each), step=each["round"])

    def _opened(self, run: Running) -> Any:
        """A new run in the database, in place of an earlier one of this folder."""
        trackio, folder = importlib.import_module("trackio"), str(run.directory.absolute())
        with redirect_stdout(StringIO()):  # stdout may be the JSON of a command
            with suppress(ValueError):  # there is no such project yet
                for each in trackio.Api().runs(self.project):
                    if (each.config or {}).get(FOLDER) == folder:
                        each.delete()
            return trackio.init(
                self.project,
                name=run.directory.name,
                config={FOLDER: folder, **run.config.given_tables()},
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )

    def end(self, run: Running) -> None:
        """Write buffered rows."""
        if self._run is not None:
            with redirect_stdout(StringIO()):
                importlib.import_module("trackio").finish()
            self._run = None
