"""A run under way: its event loop, rows and checkpoints, and what tells it from another run."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wirelessfl.config import read_toml
from wirelessfl.errors import ConfigError
from wirelessfl.runs.build import Parts
from wirelessfl.runs.directory import Row, RunDirectory
from wirelessfl.runs.executors import computing
from wirelessfl.schedules import Clock, Synchronous
from wirelessfl.simulation.loop import simulate
from wirelessfl.training.evaluate import evaluate

RowCallback = Callable[[Row], None]


class Progress:
    """A run under way: where it stands, its rows and its checkpoints.

    Where several processes share the clients, the first one evaluates and writes.
    """

    def __init__(
        self,
        parts: Parts,
        given: list[str],
        directory: RunDirectory,
        on_row: RowCallback | None,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        self.parts, self.given = parts, given
        self.directory, self.on_row, self.on_note = directory, on_row, on_note
        self.diverged = False
        training, evaluation = parts.config.training, parts.config.evaluation
        self.schedule = Synchronous(training.rounds, evaluation.eval_every)
        self.clock = Clock()
        self.finished = False
        self.wall_before = 0.0
        self.started = self.saved = time.monotonic()
        self.shards = parts.world.shards
        self.leads = self.shards.rank == 0
        parts.world.states.attach(directory.path)
        self.marks = fingerprint(parts, directory) if self.leads else {}
        checkpoint = self.shards.by_first(self._load)
        if checkpoint is not None:
            self._restore(*checkpoint)
        elif self.leads:
            self.write_checkpoint()

    def _load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The checkpoint, if it is this run's, with no rows behind it."""
        checkpoint = self.directory.load()
        if checkpoint is None:
            self.directory.cut_rows(0)
            return None
        _, state = checkpoint
        check_marks(self.directory, state, self.marks)
        if not state["finished"]:
            self.directory.cut_rows(state["rows_bytes"])
        return checkpoint

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        self.parts.world.restore(tensors, state["totals"])
        self.schedule.restore(state["schedule"])
        self.clock.now, self.wall_before = state["sim_seconds"], state["wall_seconds"]
        self.finished = state["finished"]

    def run(self) -> None:
        """To the end, from wherever it stands."""
        parts = self.parts
        with computing(parts.config.run.threads or torch.get_num_threads()):
            simulate(self.schedule, parts.planner, parts.world, self.clock, self.report, self.save)
        self.finished = True
        if self.leads:
            self.write_checkpoint()

    def wall_seconds(self) -> float:
        """Since the start of the run, stops not counted."""
        return self.wall_before + time.monotonic() - self.started

    def report(self, number: int) -> None:
        """Evaluate the model and write its row."""
        if not self.leads:
            return
        parts, world = self.parts, self.parts.world
        params = world.cloud["params"]
        accuracy, loss = evaluate(parts.task, params, parts.test_inputs, parts.test_labels)
        row = {
            "round": number,
            "sim_seconds": self.clock.now,
            **asdict(world.totals),
            **{name: _finite(value) for name, value in world.metrics.items()},
            "accuracy": accuracy,
            "loss": _finite(loss),
            "wall_seconds": self.wall_seconds(),
        }
        self.directory.append(row)
        if not (self.diverged or math.isfinite(loss)):
            self.diverged = True
            if self.on_note is not None:
                self.on_note(f"training has diverged by round {number}: lower --lr or --server-lr.")
        if self.on_row is not None:
            self.on_row(row)

    def save(self) -> None:
        """Write a checkpoint, if the last one is old enough."""
        if self.leads and time.monotonic() - self.saved >= self.parts.config.run.checkpoint_seconds:
            self.write_checkpoint()

    def write_checkpoint(self) -> None:
        """Write a checkpoint that covers all rows so far."""
        state = {
            "schedule": self.schedule.snapshot(),
            "totals": asdict(self.parts.world.totals),
            "sim_seconds": self.clock.now,
            "wall_seconds": self.wall_seconds(),
            "finished": self.finished,
            "given": self.given,
            "shapes": self.parts.task.spec.shapes,
            "fingerprint": self.marks,
        }
        self.directory.save(self.parts.world.tensors(), state)
        self.parts.world.states.saved()
        self.saved = time.monotonic()


def _finite(value: float) -> float | None:
    """None for what JSON cannot hold."""
    return value if math.isfinite(value) else None


def check_marks(directory: RunDirectory, state: dict[str, Any], marks: dict[str, str]) -> None:
    """Refuse to go on with anything but what a checkpoint's run began with.

    Raises:
        ConfigError: one of ``marks`` differs; the message says of what.
    """
    for name, mark in marks.items():
        if state["fingerprint"][name] != mark:
            raise ConfigError(
                f"{directory.path}: {name} not those that the run began with. Restore them, or "
                "begin a new run."
            )


def settings_mark(directory: RunDirectory) -> dict[str, str]:
    """The hash of ``config.toml`` as it is stored, wherever the folder is now."""
    tables = read_toml(directory.path / "config.toml")
    tables.get("run", {}).pop("out", None)
    return {"the settings in config.toml are": _digest(tables)}


def fingerprint(parts: Parts, directory: RunDirectory) -> dict[str, str]:
    """Short hashes of what a run is made of, by what to say of them when they differ."""
    data, network, module = parts.data, parts.planner.network, parts.task.module
    owned = parts.world.parts  # that are dealt on demand are not all worked out for this
    frozen = [p for p in module.parameters() if not p.requires_grad]
    keys = parts.task.dropout_keys  # they change with every step
    buffers = [value for name, value in module.named_buffers() if name not in keys]
    plain = [getattr(network, f.name) for f in fields(network) if f.name != "fading"]
    block = network.draw(parts.planner.stream.child("fingerprint"))
    return settings_mark(directory) | {
        "the model's layers and frozen parameters are": _digest(
            str(module), parts.task.spec.shapes, *map(_array, [*frozen, *buffers])
        ),
        "the data are": _digest(
            _array(_some(data.train_inputs)),
            _array(_some(data.test_inputs)),
            data.train_labels.numpy(),
            data.test_labels.numpy(),
            *getattr(owned, "identity", owned),
        ),
        "the network's values are": _digest(*plain, block.h),
    }


def _some(samples: Tensor) -> Tensor:
    return samples[:: max(1, len(samples) // 1000)]


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().numpy()


def _digest(*things: Any) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for thing in things:
        array = isinstance(thing, np.ndarray)
        digest.update(thing.tobytes() if array else repr(thing).encode())
    return digest.hexdigest()
