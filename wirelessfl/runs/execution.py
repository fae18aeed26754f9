"""Execution of a run: its event loop, rows and checkpoints."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any

from torch import Tensor

from channels.notes import Notes
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.files import reading
from wirelessfl.base.guard import title_of
from wirelessfl.base.rows import has_diverged
from wirelessfl.base.signals import ended_by, handled_by
from wirelessfl.base.torch_state import torch_settings
from wirelessfl.engine.events import Event, Reached, Report, Stop
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.scheduler_checks import refuse
from wirelessfl.runs.engine import Engine, check_finite, drop_exploded
from wirelessfl.runs.folder.about import NUMERICS
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.observers import EndOfTask, Observer, Running
from wirelessfl.runs.observers.watching import Observers, monitor_of
from wirelessfl.runs.targets import Monitor
from wirelessfl.training.workers.processes import freed_memory_kept

RowCallback = Callable[[Row], None]


class Execution:
    """Executes a run, and writes its rows and checkpoints.

    If several processes share the clients, only the first one evaluates, writes, and has observers.
    """

    def __init__(
        self,
        engine: Engine,
        directory: RunFolder,
        on_row: RowCallback | None,
        on_note: Callable[[str], None] | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.engine = engine
        self.directory, self.on_row, self.on_note = directory, on_row, on_note
        self._notes = Notes(on_note)
        self.rows: list[Row] = []
        self.covered = 0
        """Number of rows that the last checkpoint covers."""
        self.reason: str | None = None
        """Why an observer has ended the run."""
        self.task_reasons: dict[str, str] = {}
        """Why observers have ended tasks, by task."""
        self.diverged: set[Any] = set()
        self.finished = False
        self.resumable = False
        """Whether there is progress beyond the start."""
        self.ending: BaseException | None = None
        """A signal, or the error of a callback: ends the run at its next checkpoint."""
        self.wall_before = 0.0
        self.started = self.saved = time.monotonic()
        self.save_seconds = 0.0
        self.saved_at = 0.0  # simulated seconds
        self.shards = engine.setup.shards
        self.leads = self.shards.rank == 0
        self.observers = Observers(observers if self.leads else (), self._running())
        ends = any(goal.target is not None for goal in engine.setup.goals)
        ends = ends or bool(self.observers.of_rows)
        self.rows_end_runs = self.shards.from_first(ends)
        engine.attach(directory.path, self.rows)
        self.fingerprint = directory.fingerprint() if self.leads else ""
        checkpoint = self.shards.by_first(self._load)
        if checkpoint is not None:
            self._restore(*checkpoint)
        else:
            engine.start()
            if self.leads:
                self.write_checkpoint()

    def _load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Load the checkpoint, and remove later rows."""
        checkpoint = self.directory.load()
        if checkpoint is None:
            self.directory.log.cut(0)
            return None
        _, state = checkpoint
        self.rows += self.directory.rows(state)
        self.covered = len(self.rows)
        self.directory.log.cut(state["rows_bytes"])
        return checkpoint

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        self.resumable = True
        self.task_reasons = dict(state.get("task_reasons", {}))
        with reading(self.directory.checkpoint_file, self.directory.remedy):
            self.wall_before, self.finished = state["wall_seconds"], state["finished"]
            self.engine.restore(tensors, state)
        self.saved_at = self.engine.setup.clock.now

    def run(self) -> None:
        """Continue from the current state to the end.

        A signal that asks the process to end, or an error of a callback, ends the run with a
        checkpoint as soon as the state allows one. A second Ctrl-C ends it at once.
        """
        setup = self.engine.setup
        with (
            handled_by(self._signalled),
            torch_settings(setup.limits.threads),
            freed_memory_kept,
            self.observers.watching(),
        ):
            simulate(
                setup.schedule,
                setup.handler,
                setup.clock,
                self.report,
                self.save,
                tick_seconds=setup.limits.tick_seconds,
            )
            if self.leads and not self.rows:
                raise ConfigError(
                    f"scheduler {title_of(setup.schedule)!r}: decide returned Stop before any "
                    "Report, so the run has no rows. Return Report on Started."
                )
            self.finished = True
            if self.leads:
                self.write_checkpoint()
        if self.ending is not None:
            raise self.ending

    @property
    def _up_to_date(self) -> bool:
        """Whether the last checkpoint has all progress; unknown if others share the clients."""
        return self.shards.count == 1 and self.engine.setup.clock.now == self.saved_at

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        """End at once, or at the next checkpoint; torchrun repeats the signals that it gets."""
        again = self.ending is not None
        if self.ending is None:
            self.ending = ended_by(number)
        if self._up_to_date or (again and number == signal.SIGINT and self.shards.count == 1):
            raise self.ending
        if not again:
            self._call(self.on_note, "interrupted: a checkpoint follows; Ctrl-C ends at once")

    def _call(self, callback: Callable[[Any], Any] | None, argument: Any) -> Any:
        """Call a callback of the caller; its error ends the run, at once or at a checkpoint.

        Returns:
            Its result; None after an error.
        """
        try:
            return None if callback is None else callback(argument)
        except BaseException as error:
            if error is self.ending:  # a signal that ends the run at once
                raise
            if self.ending is None:
                self.ending = error
            if self._up_to_date:
                raise self.ending from None
            return None

    def _running(self) -> Running:
        config = self.engine.setup.config

        def params() -> dict[str, Tensor]:
            return {name: value.clone() for name, value in self.engine.params().items()}

        return Running(
            config=config,
            directory=self.directory.path,
            rows=self.rows,
            params=params,
            covered=lambda: self.covered,
            monitor=partial(monitor_of, config),
            note=self.note,
        )

    def note(self, text: str) -> None:
        """Give a note on the run, and store it."""
        self.directory.note(text)
        self._notes(text)

    def wall_seconds(self) -> float:
        """Wall-clock seconds of the run, without interruptions."""
        return self.wall_before + time.monotonic() - self.started

    def report(self, report: Report) -> Event | Stop | None:
        """Evaluate a model and write its row; return an event for the schedule, or the end."""
        if self.rows_end_runs:  # in all processes
            return self.shards.by_first(lambda: self._report(report))
        return self._report(report) if self.leads else None

    def _report(self, report: Report) -> Event | Stop | None:
        try:
            row, answer = self.engine.row(report)
        except Exception as error:
            refuse(self.engine.setup.schedule, str(report), error)
            raise
        check_finite(row)
        task = row.get("task")
        drop_exploded(
            row, next((observer for observer in self.rows if observer.get("task") == task), row)
        )
        goal = self.engine.setup.goals[report.task or 0]
        Monitor.of(goal.field, row).score(row)  # refuses a field of several values
        row |= {"numerics": NUMERICS, "wall_seconds": self.wall_seconds()}
        self.directory.append(row)
        self.rows.append(row)
        if has_diverged(row) and task not in self.diverged:
            self.diverged.add(task)
            whose = "" if task is None else f" of {task}"
            self._call(
                self.note,
                f"training{whose} has diverged by round {row['round']}. Lower --lr or "
                f"--server-lr{self._noisy}.",
            )
        self.resumable = self.resumable or row["round"] > 0
        self._call(self.on_row, row)
        reasons = [self._call(observer, row) for observer in self.observers.of_rows]
        several = len(self.engine.setup.models) > 1
        for reason in filter(None, reasons):
            if not (several and isinstance(reason, EndOfTask)):
                self.reason = str(reason)
                return Stop()
            assert report.task is not None
            self.task_reasons.setdefault(row["task"], str(reason))
            answer = answer or Reached(report.task)
        return answer

    @property
    def _noisy(self) -> str:
        """The remedy for noise of sums over the air."""
        return ", or raise the SNR" if self.engine.setup.config.uplink.gives == "sum" else ""

    @property
    def ended(self) -> str | None:
        """Why the run, or some of its tasks, have ended early; None if they have not."""
        if self.reason is not None or not self.task_reasons:
            return self.reason or self.engine.ended()
        return "; ".join(f"{task}: {reason}" for task, reason in self.task_reasons.items())

    def save(self) -> None:
        """Write a checkpoint unless one is recent; checkpoints take at most 1/20 of the time.

        Raises:
            BaseException: what ends the run, after a checkpoint.
        """
        ending = self._ended()
        interval = self.engine.setup.limits.checkpoint_seconds
        pause = max(interval, 20 * self.save_seconds) if interval and ending is None else 0.0
        if self.leads and time.monotonic() - self.saved >= pause:
            self.write_checkpoint()
            self.resumable = True
        if ending is not None:
            raise ending

    def _ended(self) -> BaseException | None:
        """What ends the run, in this process or in another one that shares the clients."""
        ended = self.shards.all(self.ending is not None)
        if self.ending is None and any(ended):
            self.ending = TrainingError(
                f"process {ended.index(True)} of {len(ended)} has ended the run: see its message."
            )
        return self.ending

    def write_checkpoint(self) -> None:
        """Write a checkpoint that covers all current rows."""
        begun = time.monotonic()
        state = {
            **self.engine.snapshot(),
            "ended": self.ended,
            **({"task_reasons": self.task_reasons} if self.task_reasons else {}),
            "wall_seconds": self.wall_seconds(),
            "finished": self.finished,
            "fingerprint": self.fingerprint,
        }
        self.directory.save(self.engine.tensors(), state)
        self.engine.saved()
        self.covered = len(self.rows)
        self.saved, self.saved_at = time.monotonic(), self.engine.setup.clock.now
        self.save_seconds = self.saved - begun
