"""Observers: what they see of a run, its monitored field, and three hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from wirelessfl.config import Config
from wirelessfl.runs.targets import Monitor

Row = dict[str, Any]


class EndOfTask(str):
    """A reason to end the task of a row, as if it had reached its target; other tasks continue.

    The run ends with its last task. In a run of one model, it is like any other reason.

    >>> from wirelessfl.observers import EndOfTask
    >>> EndOfTask("accuracy has not improved in 5 evaluations")
    'accuracy has not improved in 5 evaluations'
    """


@dataclass(frozen=True, eq=False)
class Running:
    """A run as its observers see it.

    >>> import wirelessfl
    >>> from wirelessfl.observers import Observer, Running
    >>> class Norm(Observer):
    ...     # Prints the rows and the largest parameter at the end of the run
    ...     def end(self, run: Running):
    ...         largest = max(float(values.abs().max()) for values in run.params().values())
    ...         print(len(run.rows), run.config.training.rounds, 0 < largest < 10)
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=1, out="measured-run")
    >>> _ = wirelessfl.run(settings, observers=[Norm()])
    2 1 True

    Args:
        config: resolved settings.
        directory: folder of the run.
        rows: all rows so far, those before an interruption included; observers do not change them.
        params: returns a copy of the current parameters by name, as ``RunResult.params``. In
            ``row`` they are those that the row evaluates.
        covered: returns the number of rows that the last checkpoint covers; if the process is
            killed now, the run resumes after them.
        monitor: returns the monitored field of a row's task, or that with a given name: its method
            ``score`` has scores of rows, of which larger ones are better, see ``--monitor``.
        note: shows a message to the user, one line.
    """

    config: Config
    directory: Path
    rows: Sequence[Row]
    params: Callable[[], dict[str, torch.Tensor]]
    covered: Callable[[], int]
    monitor: Callable[..., Monitor]
    note: Callable[[str], None]


class Observer:
    """Sees a run; derive from it and define the hooks that are needed.

    An observer that keeps a state derives it from ``run.rows`` in ``begin``, so that a resumed run
    ends as an uninterrupted one. An error in a hook ends the run with a checkpoint, from which
    ``resume`` continues. Nothing is called for a finished run that is only read.

    >>> import wirelessfl
    >>> from wirelessfl.observers import Observer
    >>> class UntilLoss(Observer):
    ...     # Ends the run once the loss is below a limit
    ...     def row(self, run, row):
    ...         return "the loss is low" if row["loss"] < 2.25 else None
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=9, out="observed-run")
    >>> wirelessfl.run(settings, observers=[UntilLoss()]).exhausted
    'the loss is low'
    """

    def begin(self, run: Running) -> None:
        """Called once before training starts or resumes."""

    def row(self, run: Running, row: Row) -> str | None:
        """Called after each row has been stored.

        Returns:
            None to continue, or the reason to end the run here, such as "no improvement in 10
            rows": the run is then finished, with a checkpoint. ``EndOfTask`` ends only the task of
            the row.
        """
        return None

    def end(self, run: Running) -> None:
        """Called once when training ends: finished, ended by an observer, or interrupted."""
