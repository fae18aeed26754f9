"""Progress of a run: its event loop, rows and checkpoints."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from torch import Tensor

from wirelessfl.allocator import freed_memory_kept
from wirelessfl.divergence import has_diverged
from wirelessfl.errors import ConfigError, TrainingError
from wirelessfl.guard import title_of
from wirelessfl.runs.about import CHECKPOINT_LAYOUT, NUMERICS, ROWS_SCHEMA
from wirelessfl.runs.directory import Row, RunDirectory
from wirelessfl.runs.fingerprints import check_fingerprint, settings_fingerprint
from wirelessfl.schedules.events import Event, Report
from wirelessfl.schedules.loop import refuse, simulate
from wirelessfl.setup import Setup
from wirelessfl.signals import ended_by, handled_by
from wirelessfl.training.torch_settings import torch_settings

RowCallback = Callable[[Row], None]


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

    def attach(self, folder: Path) -> None:
        """Set the run's folder."""

    def saved(self) -> None:
        """Note that a checkpoint has been written."""

    def fingerprint(self) -> dict[str, str]:
        """Short hashes of model, data and network, keyed by their names in error messages."""

    def params(self) -> dict[str, Tensor]:
        """The current parameters, by name."""

    def ended(self) -> str | None:
        """Why the run ends before its last round, if energy does not suffice for it."""


class Progress:
    """Executes a run, and writes its rows and checkpoints.

    If several processes share the clients, only the first one evaluates and writes.
    """

    def __init__(
        self,
        engine: Engine,
        directory: RunDirectory,
        on_row: RowCallback | None,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        self.engine = engine
        self.directory, self.on_row, self.on_note = directory, on_row, on_note
        self.reported = False
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
        engine.attach(directory.path)
        self.fingerprint = (
            settings_fingerprint(directory) | engine.fingerprint() if self.leads else {}
        )
        checkpoint = self.shards.by_first(self._load)
        if checkpoint is not None:
            self._restore(*checkpoint)
        else:
            engine.start()
            if self.leads:
                self.write_checkpoint()

    def _load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Load the checkpoint, check that it belongs to this run, and remove later rows."""
        checkpoint = self.directory.load()
        if checkpoint is None:
            self.directory.cut_rows(0)
            return None
        _, state = checkpoint
        check_fingerprint(self.directory, state, self.fingerprint)
        self.directory.check_rows(state)
        self.directory.cut_rows(state["rows_bytes"])
        return checkpoint

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        self.resumable = True
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
            freed_memory_kept(),
        ):
            simulate(
                setup.schedule,
                setup.regime,
                setup.clock,
                self.report,
                self.save,
                tick_seconds=setup.limits.tick_seconds,
            )
            if self.leads and not (self.reported or self.directory.rows()):
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

    def _call(self, callback: Callable[[Any], None] | None, told: Any) -> None:
        """Call a callback of the caller; its error ends the run, at once or at a checkpoint."""
        try:
            if callback is not None:
                callback(told)
        except BaseException as error:
            if error is self.ending:  # a signal that ends the run at once
                raise
            if self.ending is None:
                self.ending = error
            if self._up_to_date:
                raise self.ending from None

    def wall_seconds(self) -> float:
        """Wall-clock seconds of the run, without interruptions."""
        return self.wall_before + time.monotonic() - self.started

    def report(self, report: Report) -> Event | None:
        """Evaluate a model and write its row; return an event for the schedule, if any."""
        if self.engine.setup.limits.target is not None:  # the row may end the run in all processes
            return self.shards.by_first(lambda: self._report(report))
        return self._report(report) if self.leads else None

    def _report(self, report: Report) -> Event | None:
        try:
            row, answer = self.engine.row(report)
        except Exception as error:
            refuse(self.engine.setup.schedule, str(report), error)
            raise
        self.reported = True
        _check_finite(row)
        row |= {"numerics": NUMERICS, "wall_seconds": self.wall_seconds()}
        self.directory.append(row)
        task = row.get("task")
        if has_diverged(row) and task not in self.diverged:
            self.diverged.add(task)
            whose = "" if task is None else f" of {task}"
            self._call(
                self.on_note,
                f"training{whose} has diverged by round {row['round']}. Lower --lr or --server-lr.",
            )
        self.resumable = self.resumable or row["round"] > 0
        self._call(self.on_row, row)
        return answer

    def save(self) -> None:
        """Write a checkpoint unless one is recent; checkpoints take at most 1/20 of the time.

        Raises:
            BaseException: what ends the run, after a checkpoint.
        """
        ending = self._ended()
        wanted = self.engine.setup.limits.checkpoint_seconds
        pause = max(wanted, 20 * self.save_seconds) if wanted and ending is None else 0.0
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
            "wall_seconds": self.wall_seconds(),
            "finished": self.finished,
            "schema": ROWS_SCHEMA,
            "layout": CHECKPOINT_LAYOUT,
            "numerics": NUMERICS,
            "fingerprint": self.fingerprint,
        }
        self.directory.save(self.engine.tensors(), state)
        self.engine.saved()
        self.saved, self.saved_at = time.monotonic(), self.engine.setup.clock.now
        self.save_seconds = self.saved - begun


def _check_finite(row: Row) -> None:
    """Check that sums over rounds have not overflowed; JSON has no infinity.

    Raises:
        TrainingError: simulated seconds or joules are infinite.
    """
    for name, remedy in (
        ("sim_seconds", "Raise bandwidth_hz, snr_db or cpu_hz"),
        ("joules", "Lower transmit_power_w or cycles_per_step, or raise bandwidth_hz"),
    ):
        if not math.isfinite(row[name]):
            raise TrainingError(
                f"{name} is {row[name]} in round {row['round']}: the sum over the rounds exceeds "
                f"the largest number. {remedy}."
            )
