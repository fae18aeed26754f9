"""A run of one model in synchronous rounds."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from wirelessfl.build.rounds import Parts
from wirelessfl.config import Config
from wirelessfl.rounds.rounds import Rounds
from wirelessfl.runs.directory import Row
from wirelessfl.runs.marks import data_mark, model_mark, network_mark
from wirelessfl.schedules import Clock, Synchronous
from wirelessfl.schedules.base import Deadline, Report, Schedule, Started
from wirelessfl.schedules.loop import Regime
from wirelessfl.submodels import Submodels
from wirelessfl.training.evaluate import evaluate
from wirelessfl.training.objective import Objective
from wirelessfl.training.shards import Shards


class RoundsEngine:
    """Rounds of one model, as ``Progress`` drives them."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        training, evaluation = parts.config.training, parts.config.evaluation
        self.clock = Clock()
        self.schedule: Schedule = Synchronous(training.rounds, evaluation.eval_every or 1)
        self.regime: Regime = Rounds(parts.planner, parts.training, self.clock)

    @property
    def config(self) -> Config:
        """The settings."""
        return self.parts.config

    @property
    def notes(self) -> list[str]:
        """What the user should know."""
        return self.parts.notes

    @property
    def shards(self) -> Shards:
        """The processes that share the clients."""
        return self.parts.training.shards

    def start(self) -> None:
        """Rounds begin now; from a checkpoint, the one that was under way is given out again."""
        self.clock.after(0.0, Started())
        limit = self.config.training.max_seconds
        if limit is not None:
            self.clock.at(max(limit, self.clock.now), Deadline())

    def row(self, report: Report) -> tuple[Row, None]:
        """Evaluate the cloud's model."""
        training = self.parts.training
        accuracy, loss = evaluate(*self._deployed(), *self.test_samples())
        row = {
            "round": report.round,
            "sim_seconds": self.clock.now,
            **asdict(training.totals),
            **{name: finite(value) for name, value in training.metrics.items()},
            "accuracy": accuracy,
            "loss": finite(loss),
        }
        return row, None

    def _deployed(self) -> tuple[Objective, Tensor]:
        """The model that is evaluated, and its parameters: the cloud's, or a part of it."""
        objective, params = self.parts.objective, self.parts.training.server.cloud["params"]
        if self._part is None:
            return objective, params
        return replace(objective, spec=self._part.spec), self._part.gather(params)[0]

    @cached_property
    def _part(self) -> Submodels | None:
        planner = self.parts.planner
        own = planner.algorithm.tested(planner.model.neurons)
        return None if own is None else own.of(np.zeros(1, dtype=np.int64))

    def test_samples(self) -> tuple[Tensor, Tensor]:
        """What it is evaluated on: inputs and labels."""
        return self.parts.test_inputs, self.parts.test_labels

    def tensors(self) -> dict[str, Tensor]:
        """Model, server and client state."""
        return self.parts.training.tensors()

    def snapshot(self) -> dict[str, Any]:
        """Rounds done, and what they cost."""
        return {
            "schedule": self.schedule.snapshot(),
            "totals": asdict(self.parts.training.totals),
            "sim_seconds": self.clock.now,
            "shapes": self.parts.objective.spec.shapes,
            "ties": self.parts.objective.spec.ties,
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on behind the last round."""
        self.parts.training.restore(tensors, state["totals"])
        self.schedule.restore(state["schedule"])
        self.clock.now = state["sim_seconds"]
        self.start()

    def attach(self, folder: Path) -> None:
        """Client states may lie in the run's folder."""
        self.parts.training.server.states.attach(folder)

    def saved(self) -> None:
        """Client states on disk up to here count."""
        self.parts.training.server.states.saved()

    def fingerprint(self) -> dict[str, str]:
        """Of model, data and network."""
        parts, planner = self.parts, self.parts.planner
        return {
            "the model's layers and frozen parameters are": model_mark(parts.objective),
            "the data are": data_mark(parts.data, parts.training.client_samples),
            "the network's values are": network_mark(planner.network, planner.stream),
        }

    def params(self) -> dict[str, Tensor]:
        """The cloud's."""
        return self.parts.objective.spec.named(self.parts.training.server.cloud["params"].cpu())

    def prepare(self) -> None:
        """Start the executor's processes."""
        self.parts.training.executor.start()

    def close(self) -> None:
        """Give back the executor's processes and memory."""
        self.parts.training.executor.close()


def finite(value: float) -> float | None:
    """None for what JSON cannot hold."""
    return value if math.isfinite(value) else None
