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

from wirelessfl.errors import ConfigError
from wirelessfl.runs.build import Parts
from wirelessfl.runs.directory import Row, RunDirectory
from wirelessfl.runs.executors import computing
from wirelessfl.schedules import Clock, Synchronous
from wirelessfl.simulation.loop import simulate
from wirelessfl.training.evaluate import evaluate

RowCallback = Callable[[Row], None]


class Progress:
    """A run under way: where it stands, its rows and its checkpoints."""

    def __init__(
        self, parts: Parts, given: list[str], directory: RunDirectory, on_row: RowCallback | None
    ) -> None:
        self.parts, self.given = parts, given
        self.directory, self.on_row = directory, on_row
        training, evaluation = parts.config.training, parts.config.evaluation
        self.schedule = Synchronous(training.rounds, evaluation.eval_every)
        self.clock = Clock()
        self.finished = False
        self.wall_before = 0.0
        self.started = self.saved = time.monotonic()
        self.marks = fingerprint(parts)
        checkpoint = directory.load()
        if checkpoint is None:
            directory.cut_rows(0)
            self.write_checkpoint()
        else:
            self._restore(*checkpoint)

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        for name, mark in self.marks.items():
            if state["fingerprint"][name] != mark:
                raise ConfigError(
                    f"{self.directory.path}: {name} not those that the run began with. Restore "
                    "them, or begin a new run."
                )
        self.parts.world.restore(tensors, state["totals"])
        self.schedule.restore(state["schedule"])
        self.clock.now, self.wall_before = state["sim_seconds"], state["wall_seconds"]
        self.finished = state["finished"]
        if not self.finished:
            self.directory.cut_rows(state["rows_bytes"])

    def run(self) -> None:
        """To the end, from wherever it stands."""
        parts = self.parts
        with computing(parts.config.run.threads or torch.get_num_threads()):
            simulate(self.schedule, parts.planner, parts.world, self.clock, self.report, self.save)
        self.finished = True
        self.write_checkpoint()

    def wall_seconds(self) -> float:
        """Since the start of the run, stops not counted."""
        return self.wall_before + time.monotonic() - self.started

    def report(self, number: int) -> None:
        """Evaluate the model and write its row."""
        parts, world = self.parts, self.parts.world
        params = world.cloud["params"]
        accuracy, loss = evaluate(parts.task, params, parts.test_inputs, parts.test_labels)
        row = {
            "round": number,
            "sim_seconds": self.clock.now,
            **asdict(world.totals),
            **world.metrics,
            "accuracy": accuracy,
            "loss": loss if math.isfinite(loss) else None,
            "wall_seconds": self.wall_seconds(),
        }
        self.directory.append(row)
        if self.on_row is not None:
            self.on_row(row)

    def save(self) -> None:
        """Write a checkpoint, if the last one is old enough."""
        if time.monotonic() - self.saved >= self.parts.config.run.checkpoint_seconds:
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
            "fingerprint": self.marks,
        }
        self.directory.save(self.parts.world.tensors(), state)
        self.saved = time.monotonic()


def fingerprint(parts: Parts) -> dict[str, str]:
    """Short hashes of what a run is made of, by what to say of them when they differ."""
    config, data, network = parts.config, parts.data, parts.planner.network
    settings = config.model_copy(update={"run": config.run.model_copy(update={"out": None})})
    some = data.train_inputs[:: max(1, len(data.train_inputs) // 1000)]
    return {
        "the settings in config.toml are": _digest(settings.to_toml()),
        "the model's layers are": _digest(str(parts.task.module), parts.task.spec.shapes),
        "the data are": _digest(
            some.numpy(), data.train_labels.numpy(), data.test_labels.numpy(), *parts.world.parts
        ),
        "the network's values are": _digest(*(getattr(network, f.name) for f in fields(network))),
    }


def _digest(*things: Any) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for thing in things:
        array = isinstance(thing, np.ndarray)
        digest.update(thing.tobytes() if array else repr(thing).encode())
    return digest.hexdigest()
