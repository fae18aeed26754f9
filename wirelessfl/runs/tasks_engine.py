"""A run of tasks: asynchronous, or in common rounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from wirelessfl.runs.directory import Row
from wirelessfl.runs.fingerprints import (
    data_fingerprint,
    digest,
    model_fingerprint,
    network_fingerprint,
)
from wirelessfl.runs.rows import evaluation_fields, finite, reached
from wirelessfl.runs.stored_params import named_params
from wirelessfl.schedules.events import Reached, Report
from wirelessfl.schedules.loop import begin
from wirelessfl.setup.setups import TasksSetup
from wirelessfl.units import MIB_PER_ELEMENT


class TasksEngine:
    """Engine for runs with one or more tasks; see ``Execution``."""

    def __init__(self, setup: TasksSetup) -> None:
        self.setup = setup
        self.reached: set[int] = set()

    def start(self) -> None:
        """Schedule the start of the run, and its end if there is a time limit."""
        begin(self.setup.clock, self.setup.limits.max_seconds)
        self.setup.regime.start()

    def row(self, report: Report) -> tuple[Row, Reached | None]:
        """Evaluate a task's model; return its row, and ``Reached`` if it reaches its target."""
        assert report.task is not None
        setup, regime, number = self.setup, self.setup.regime, report.task
        learner = setup.learners[number]
        clients, sizes = setup.network.clients, setup.elements
        beside = learner.server.uplink.side_elements
        up = sum(
            models * size.up + beside * len(model.algorithm.payloads) * count
            for models, size, model, count in zip(
                regime.up, sizes, setup.models, regime.returned, strict=True
            )
        )
        down = sum(models * size.down for models, size in zip(regime.down, sizes, strict=True))
        row = {
            "round": report.round,
            "task": setup.names[number],
            "sim_seconds": setup.clock.now,
            **report.status,
            **regime.status(number),
            "uplink_mib": MIB_PER_ELEMENT * up / clients,
            "downlink_mib": MIB_PER_ELEMENT * down / clients,
            "backhaul_mib": 0.0,
            "joules": regime.spent.total / clients,
            "joules_max": regime.spent.most,
            **{name: finite(value) for name, value in learner.metrics.items()},
            **evaluation_fields(
                learner.server.cloud["params"], learner.evaluate(), learner.validate()
            ),
        }
        if not reached(setup.goals[number], row) or number in self.reached:
            return row, None
        self.reached.add(number)
        return row, Reached(number)

    def tensors(self) -> dict[str, Tensor]:
        """State of the models, and tensors of the work in progress."""
        found = {
            f"task{number}.{name}": value
            for number, learner in enumerate(self.setup.learners)
            for name, value in learner.tensors().items()
        }
        return found | self.setup.regime.tensors()

    def snapshot(self) -> dict[str, Any]:
        """State of the schedule, regime and tasks, and the shapes of the models' parameters."""
        return {
            "schedule": self.setup.schedule.snapshot(),
            "regime": self.setup.regime.snapshot(),
            "learners": [learner.snapshot() for learner in self.setup.learners],
            "reached": sorted(self.reached),
            "task_specs": {
                name: [model.objective.spec.shapes, model.objective.spec.ties]
                for name, model in zip(self.setup.names, self.setup.models, strict=True)
            },
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Continue from a checkpoint, with the active requests or the next round."""
        for number, (learner, snapshot) in enumerate(
            zip(self.setup.learners, state["learners"], strict=True)
        ):
            mark = f"task{number}."
            found = {n.removeprefix(mark): v for n, v in tensors.items() if n.startswith(mark)}
            learner.restore(found, snapshot)
        self.setup.schedule.restore(state["schedule"])
        self.reached = set(state["reached"])
        self.setup.regime.restore(tensors, state["regime"])
        if self.setup.regime.starts_again:
            self.start()

    def attach(self, folder: Path, rows: Sequence[Row]) -> None:
        """Set the run's folder, for each task's client states on disk."""
        for number, learner in enumerate(self.setup.learners):
            mark = f"task{number}-" if self.setup.titled else ""
            learner.server.states.attach(folder, mark)

    def saved(self) -> None:
        """Mark the client states on disk as covered by a checkpoint."""
        for learner in self.setup.learners:
            learner.server.states.saved()

    def fingerprint(self) -> dict[str, str]:
        """Hashes of models, data and network."""
        models = self.setup.models
        return {
            "the models' layers and frozen parameters are": digest(
                *(model_fingerprint(model.objective) for model in models)
            ),
            "the data are": digest(
                *(data_fingerprint(model.data, model.client_samples) for model in models)
            ),
            "the network's values are": network_fingerprint(self.setup.network, self.setup.stream),
        }

    def ended(self) -> str | None:
        """None: tasks have no budgets of energy."""
        return None

    def params(self) -> dict[str, Tensor]:
        """Parameters by name; if tasks have tables, names start with the task's name."""
        found: dict[str, Tensor] = {}
        for name, model, learner in zip(
            self.setup.names, self.setup.models, self.setup.learners, strict=True
        ):
            params = model.objective.spec.named(learner.server.cloud["params"].cpu())
            found |= named_params(params, name if self.setup.titled else None)
        return found
