"""The models, schedule and handler of a run as one: rows, checkpoints and parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.guard import of_project
from wirelessfl.base.wording import shown
from wirelessfl.engine.events import Event, Reached, Report
from wirelessfl.engine.loop import begin
from wirelessfl.engine.server.learner import Learner
from wirelessfl.models.metrics import Measures
from wirelessfl.models.metrics.built_in import VALIDATION as HELD
from wirelessfl.runs.build.setups import Goal, Setup
from wirelessfl.runs.folder.client_log import ClientLogFile
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.folder.parameters import named_params, tensor_mark
from wirelessfl.runs.folder.run_folder import CLIENT_LOG
from wirelessfl.runs.targets import Monitor
from wirelessfl.training.evaluation import Evaluated

VALIDATION = ("validation_accuracy", "validation_loss")
"""Fields of rows that exist only if training samples are held out."""
LOSSES = ("loss", "validation_loss")
EXPLODED = 1e4
"""A loss this many times that of the initial model, or of 1 if that is larger, has exploded."""


def finite(value: float) -> float | None:
    """``value``, or None if it is not finite, which JSON cannot represent."""
    return value if math.isfinite(value) else None


def reached(goal: Goal, row: Row) -> bool:
    """Whether a row has reached the target of its model; it has not if there is none."""
    return goal.target is not None and Monitor.of(goal.field, row).reached(row, goal.target)


def evaluation_fields(
    params: torch.Tensor, test: Evaluated, validation: Evaluated | None = None
) -> Row:
    """Fields of a row; losses are None if they or the model's parameters are not finite.

    There is no accuracy if outputs are neither right nor wrong, as in regression.

    Args:
        params: parameters [P] of the full model.
        test: accuracy, loss and metrics on test samples.
        validation: the same on validation samples, if any.
    """
    whole = bool(params.isfinite().all())
    row: Row = {}
    for prefix, evaluated in (("", test), (HELD, validation)):
        if evaluated is None:
            continue
        if evaluated.accuracy is not None:
            row[f"{prefix}accuracy"] = evaluated.accuracy
        row[f"{prefix}loss"] = finite(evaluated.loss) if whole else None
        row |= {f"{prefix}{name}": value for name, value in evaluated.metrics.items()}
    return row


def drop_exploded(row: Row, first: Row) -> None:
    """Replace losses that have exploded by None: the model has diverged.

    Args:
        row: the row, which is changed.
        first: the first row of the same model.
    """
    for name in LOSSES:
        value = row.get(name)
        if value is not None and value > EXPLODED * max(first.get(name) or 0.0, 1.0):
            row[name] = None


def check_apart(uplink: Mapping[str, float], measures: Measures) -> None:
    """Check that no metric has the name of a field that the uplink or clients add to rows.

    Raises:
        ConfigError: one has.
    """
    for metric in measures.metrics:
        if metric.field in uplink:
            raise ConfigError(
                f"a metric is called {metric.field!r}, and so is a measurement of the uplink or a "
                "report of clients, which is a field of rows already: give another name."
            )


def check_finite(row: Row) -> None:
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


class Engine:
    """What ``Execution`` executes, for rounds, sessions, asynchronous cells and tasks alike."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.reached: set[int] = set()
        """Models whose rows have reached their target."""
        self.log: ClientLogFile | None = None

    def start(self) -> None:
        """Put the first events on the clock, or after a checkpoint restart the interrupted work."""
        begin(self.setup.clock, self.setup.limits.max_seconds)
        self.setup.handler.start()

    def row(self, report: Report) -> tuple[Row, Event | None]:
        """Evaluate a model; return its row, and ``Reached`` if it reaches its target."""
        setup, number = self.setup, report.task or 0
        learner = setup.learners[number]
        check_apart(learner.metrics, learner.evaluation.measures)
        fields, params = setup.handler.fields(report), learner.server.cloud["params"]
        row = {
            **fields.head,
            "sim_seconds": setup.clock.now,
            **fields.costs,
            **{name: finite(value) for name, value in learner.metrics.items()},
            **evaluation_fields(params, *learner.evaluation.of(params, learner.server.version)),
            **fields.tail,
        }
        if number in self.reached or not reached(setup.goals[number], row):
            return row, None
        self.reached.add(number)
        return row, Reached(number)

    def tensors(self) -> dict[str, Tensor]:
        """State of the models, and tensors of the work in progress."""
        tensors = {
            f"{mark}{name}": value
            for mark, learner in self._marked()
            for name, value in learner.tensors().items()
        }
        return tensors | self.setup.handler.tensors()

    def snapshot(self) -> dict[str, Any]:
        """The rest of the state, as numbers, strings, lists and dicts."""
        setup = self.setup
        return {
            "schedule": setup.schedule.snapshot(),
            "handler": setup.handler.snapshot(),
            "learners": [learner.snapshot() for learner in setup.learners],
            "tasks": setup.tasks,
            "reached": sorted(self.reached),
            "sim_seconds": setup.clock.now,
            "client_log": None if self.log is None else self.log.snapshot(),
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Continue from a checkpoint, and put the next events on the clock.

        Raises:
            ValueError, LookupError, TypeError: the checkpoint is not one of such a run.
        """
        setup = self.setup
        for name, fresh in self.snapshot().items():
            if name != "schedule" or of_project(type(setup.schedule)):
                _check_like(state[name], fresh, name)
        for (mark, learner), snapshot in zip(self._marked(), state["learners"], strict=True):
            part = {n.removeprefix(mark): v for n, v in tensors.items() if n.startswith(mark)}
            learner.restore(part, snapshot)
        if self.log is not None:
            self.log.restore(state["client_log"])
        self.reached = set(state["reached"])
        setup.schedule.restore(state["schedule"])
        setup.clock.now = state["sim_seconds"]
        setup.handler.restore(tensors, state["handler"])
        if setup.handler.starts_again:
            self.start()

    def _marked(self) -> Iterator[tuple[str, Learner]]:
        """The learners, each with the prefix of its tensors in a checkpoint."""
        for number, learner in enumerate(self.setup.learners):
            yield tensor_mark(None if self.setup.tasks is None else number), learner

    def attach(self, folder: Path, rows: list[Row]) -> None:
        """Set the run's folder, for client states on disk and the client log, and its rows."""
        setup = self.setup
        setup.handler.attach(rows)
        for number, learner in enumerate(setup.learners):
            learner.attach(folder, f"task{number}-" if setup.titled else "")
        if setup.config.run.client_log and setup.shards.rank == 0:
            learner = setup.learner
            radio = learner.server.uplink.radio
            self.log = ClientLogFile(folder / CLIENT_LOG, radio, lambda: learner.local.steps)
            setup.one_model.ledger.log = self.log.add

    def saved(self) -> None:
        """Mark the client states on disk as covered by a checkpoint."""
        for learner in self.setup.learners:
            learner.saved()

    def ended(self) -> str | None:
        """Why the run ends before its last round; None if it does not."""
        return self.setup.handler.ended

    def params(self) -> dict[str, Tensor]:
        """Current parameters by name; if tasks have tables, names start with the task's name."""
        names = self.setup.tasks if self.setup.titled else None
        params: dict[str, Tensor] = {}
        for number, learner in enumerate(self.setup.learners):
            params |= named_params(learner.params, None if names is None else names[number])
        return params


def _check_like(value: Any, fresh: Any, name: str) -> None:
    """Check that an entry of a checkpoint has the type of that of a new run, where both have it."""
    if isinstance(fresh, dict) and isinstance(value, dict):
        for key in fresh.keys() & value.keys():
            _check_like(value[key], fresh[key], str(key))
        return
    if isinstance(fresh, list | tuple) and isinstance(value, list | tuple):
        for one, other in zip(value, fresh, strict=False):
            _check_like(one, other, name)
        return
    number = isinstance(value, int | float) and abs(value) < 1 << 63
    same = number if isinstance(fresh, int | float) else isinstance(value, type(fresh))
    if fresh is not None and not same:
        raise ValueError(f"{name} is {shown(value)} in its state")
