"""Progress of a run: its event loop, rows and checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
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
        """Whether there is progress beyond the start, or an error of the caller."""
        self.wall_before = 0.0
        self.started = self.saved = time.monotonic()
        self.save_seconds = 0.0
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
        if not state["finished"]:
            self.directory.cut_rows(state["rows_bytes"])
        self.directory.rows()  # raises now if a row is damaged, not at the end
        return checkpoint

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        self.resumable = True
        self.wall_before, self.finished = state["wall_seconds"], state["finished"]
        self.engine.restore(tensors, state)

    def run(self) -> None:
        """Continue from the current state to the end."""
        setup = self.engine.setup
        with torch_settings(setup.limits.threads), freed_memory_kept():
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
                f"scheduler {title_of(setup.schedule)!r}: decide returned Stop before any Report, "
                "so the run has no rows. Return Report on Started."
            )
        self.finished = True
        if self.leads:
            self.write_checkpoint()

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
            if self.on_note is not None:
                whose = "" if task is None else f" of {task}"
                self.on_note(
                    f"training{whose} has diverged by round {row['round']}. Lower --lr or "
                    "--server-lr."
                )
        started, self.resumable = self.resumable or row["round"] > 0, True
        if self.on_row is not None:
            self.on_row(row)
        self.resumable = started
        return answer

    def save(self) -> None:
        """Write a checkpoint unless one is recent; checkpoints take at most 1/20 of the time."""
        if not self.leads:
            return
        wanted = self.engine.setup.limits.checkpoint_seconds
        pause = max(wanted, 20 * self.save_seconds) if wanted else 0.0
        if time.monotonic() - self.saved >= pause:
            self.write_checkpoint()
            self.resumable = True

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
        self.saved = time.monotonic()
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
