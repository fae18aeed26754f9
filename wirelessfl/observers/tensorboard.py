"""Writes the rows of a run to TensorBoard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirelessfl.errors import ConfigError
from wirelessfl.observers.observer import Observer, Row, Running
from wirelessfl.observers.trackers import check_installed, numbers_of

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FOLDER = "tensorboard"
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

        folder = run.directory / FOLDER
        if folder.is_symlink():
            raise ConfigError(f"{folder} is a link, which may lead elsewhere: remove it.")
        for file in folder.glob("events.out.tfevents.*"):
            file.unlink()
        self._writer = SummaryWriter(str(folder), flush_secs=5)
        for each in run.rows:  # the last one is ``row``
            self._write(each)

    def _write(self, row: Row) -> None:
        writer: Any = self._writer
        for name, value in numbers_of(row).items():
            writer.add_scalar(name, value, row["round"])

    def end(self, run: Running) -> None:
        """Write buffered rows."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
