"""Writes the rows of a run to an experiment tracker: TensorBoard or Trackio."""

from __future__ import annotations

import importlib
import importlib.util
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal

from wirelessfl.base.errors import ConfigError
from wirelessfl.runs.observers.observer import Observer, Row, Running

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

Name = Literal["tensorboard", "trackio"]
"""The trackers."""


def check_installed(package: Name) -> None:
    """Check that the package of a tracker is installed, without importing it.

    Raises:
        ConfigError: it is not.
    """
    if importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"track is {package!r}, but its package is not installed: pip install "
            "'wirelessfl[trackers]'"
        )


def numbers_of(row: Row) -> dict[str, float]:
    """The numeric fields of a row by name; those of a task below its name, as ``task/accuracy``."""
    mark = f"{row['task']}/" if "task" in row else ""
    return {
        f"{mark}{name}": float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name != "numerics"
    }


TENSORBOARD_FOLDER = "tensorboard"
"""Folder of the event files in that of the run."""


class TensorBoard(Observer):
    """Writes every numeric field of each row to event files; show them by ``tensorboard --logdir``.

    The files are in the folder ``tensorboard`` of the run. A resumed run writes them anew from its
    rows, so that each row is there once. Steps are rounds, or a task's merges.

    >>> import wirelessfl
    >>> from wirelessfl.observers import TensorBoard
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=1, out="tracked-run")
    >>> result = wirelessfl.run(settings, observers=[TensorBoard()])
    >>> len([*result.directory.glob("tensorboard/events.out.tfevents.*")])
    1

    Raises:
        ConfigError: the package tensorboard is not installed.
    """

    def __init__(self) -> None:
        check_installed("tensorboard")
        self._writer: SummaryWriter | None = None

    def row(self, run: Running, row: Row) -> None:
        """Write a row, and before the first one all rows before an interruption."""
        if self._writer is not None:
            self._write(row)
            return
        from torch.utils.tensorboard import SummaryWriter

        folder = run.directory / TENSORBOARD_FOLDER
        if folder.is_symlink():
            raise ConfigError(f"{folder} is a link, which may lead elsewhere: remove it.")
        for file in folder.glob("events.out.tfevents.*"):
            file.unlink()
        self._writer = SummaryWriter(str(folder), flush_secs=5)
        for entry in run.rows:  # the last one is ``row``
            self._write(entry)

    def _write(self, row: Row) -> None:
        writer: Any = self._writer
        for name, value in numbers_of(row).items():
            writer.add_scalar(name, value, row["round"])

    def end(self, run: Running) -> None:
        """Write buffered rows."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


TRACKIO_FOLDER = "directory"
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
        for entry in rows:
            self._run.log(numbers_of(entry), step=entry["round"])

    def _opened(self, run: Running) -> Any:
        """A new run in the database, in place of an earlier one of this folder."""
        trackio, folder = importlib.import_module("trackio"), str(run.directory.absolute())
        with redirect_stdout(StringIO()):  # stdout may be the JSON of a command
            with suppress(ValueError):  # there is no such project yet
                for stored in trackio.Api().runs(self.project):
                    if (stored.config or {}).get(TRACKIO_FOLDER) == folder:
                        stored.delete()
            return trackio.init(
                self.project,
                name=run.directory.name,
                config={TRACKIO_FOLDER: folder, **run.config.given_tables()},
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
