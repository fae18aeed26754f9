"""A run of several tasks, asynchronous or in rounds with a common end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from wirelessfl.build.tasks import TaskParts
from wirelessfl.build.times import make_times
from wirelessfl.config import Config
from wirelessfl.runs.directory import Row
from wirelessfl.runs.marks import data_mark, digest, model_mark, network_mark
from wirelessfl.runs.rounds import finite
from wirelessfl.schedules.base import Reached, Report
from wirelessfl.training.shards import Shards
from wirelessfl.units import MIB_PER_ELEMENT


class TasksEngine:
    """Several tasks, as ``Progress`` drives them."""

    def __init__(self, parts: TaskParts) -> None:
        self.parts = parts
        self.times = make_times(
            parts.config,
            parts.tasks,
            parts.network,
            parts.elements,
            parts.learners,
            parts.stream,
        )
        self.schedule, self.regime = self.times.schedule, self.times.regime
        self.clock = self.times.clock
        self.shards = Shards()
        self.names = list(parts.tasks)
        self.reached: set[int] = set()

    @property
    def config(self) -> Config:
        """The settings."""
        return self.parts.config

    @property
    def notes(self) -> list[str]:
        """What the user should know."""
        return self.parts.notes

    def start(self) -> None:
        """Everything begins now."""
        self.times.start(self.config.training.max_seconds)

    def row(self, report: Report) -> tuple[Row, Reached | None]:
        """Evaluate a task's model; one that reaches its target ends."""
        assert report.task is not None
        number, name = report.task, self.names[report.task]
        accuracy, loss = self.parts.learners[number].evaluate()
        regime, clients = self.regime, self.parts.network.clients
        sizes = self.parts.elements
        up = sum(count * size for count, size in zip(regime.returned, sizes, strict=True))
        down = sum(count * size for count, size in zip(regime.issued, sizes, strict=True))
        status = {**report.status, **self.regime.status(number)}
        row = {
            "round": report.round,
            "task": name,
            "sim_seconds": self.clock.now,
            **status,
            "uplink_mib": MIB_PER_ELEMENT * up / clients,
            "downlink_mib": MIB_PER_ELEMENT * down / clients,
            "backhaul_mib": 0.0,
            "joules": self.regime.joules / clients,
            "accuracy": accuracy,
            "loss": finite(loss),
        }
        target = self.parts.tasks[name].evaluation.target
        if target is None or accuracy < target or number in self.reached:
            return row, None
        self.reached.add(number)
        return row, Reached(number)

    def tensors(self) -> dict[str, Tensor]:
        """Models, and the updates that are under way."""
        found = {
            f"task{number}.{name}": value
            for number, learner in enumerate(self.parts.learners)
            for name, value in learner.tensors().items()
        }
        return found | self.regime.tensors()

    def snapshot(self) -> dict[str, Any]:
        """Everything else."""
        return {
            "schedule": self.schedule.snapshot(),
            "regime": self.regime.snapshot(),
            "learners": [learner.snapshot() for learner in self.parts.learners],
            "reached": sorted(self.reached),
            "task_specs": {
                name: [basis.objective.spec.shapes, basis.objective.spec.ties]
                for name, basis in zip(self.names, self.parts.bases, strict=True)
            },
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on from a checkpoint: with the requests that are out, or with the next round."""
        for number, (learner, own) in enumerate(
            zip(self.parts.learners, state["learners"], strict=True)
        ):
            mark = f"task{number}."
            learner.restore(
                {n.removeprefix(mark): v for n, v in tensors.items() if n.startswith(mark)}, own
            )
        self.schedule.restore(state["schedule"])
        self.reached = set(state["reached"])
        self.regime.restore(tensors, state["regime"])
        if self.regime.starts_again:
            self.start()

    def attach(self, folder: Path) -> None:
        """Nothing lies in the run's folder."""

    def saved(self) -> None:
        """Likewise."""

    def fingerprint(self) -> dict[str, str]:
        """Of models, data and network."""
        bases = self.parts.bases
        return {
            "the models' layers and frozen parameters are": digest(
                *(model_mark(basis.objective) for basis in bases)
            ),
            "the data are": digest(*(data_mark(basis.data, basis.parts) for basis in bases)),
            "the network's values are": network_mark(self.parts.network, self.parts.stream),
        }

    def params(self) -> dict[str, Tensor]:
        """Of the only task by name; of several with the task's name in front."""
        found: dict[str, Tensor] = {}
        for name, basis, learner in zip(
            self.names, self.parts.bases, self.parts.learners, strict=True
        ):
            own = basis.objective.spec.named(learner.server.cloud["params"].cpu())
            found |= named_params(own, name if self.config.task else None)
        return found

    def prepare(self) -> None:
        """Start the executors' processes."""
        for learner in self.parts.learners:
            learner.local.executor.start()

    def close(self) -> None:
        """Give back the executors' memory."""
        for learner in self.parts.learners:
            learner.local.executor.close()


def named_params(params: dict[str, Tensor], task: str | None) -> dict[str, Tensor]:
    """Parameters by name, with the task's name in front where there are several."""
    return params if task is None else {f"{task}.{name}": v for name, v in params.items()}
