"""A run of several tasks, asynchronous or in rounds with a common end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from channels import Network
from channels.streams import Stream
from solvers import allocate_requests
from wirelessfl.config import Config
from wirelessfl.runs.build_tasks import TaskParts, build_delays
from wirelessfl.runs.directory import Row
from wirelessfl.runs.marks import data_mark, digest, model_mark, network_mark
from wirelessfl.runs.rounds import finite
from wirelessfl.schedules import Buffered, Clock, Simultaneous, TaskPlan
from wirelessfl.schedules.base import Deadline, Reached, Report, Started
from wirelessfl.simulation.asynchronous import Asynchronous, Merged, Model
from wirelessfl.simulation.requests import Requests, Span
from wirelessfl.simulation.shards import Shards
from wirelessfl.simulation.task_rounds import RoundModel, TaskRounds
from wirelessfl.uplinks.base import BITS_PER_ELEMENT

EVAL_EVERY = 20
"""Merges of a task between rows where updates come one by one, unless the settings say."""
MIB = BITS_PER_ELEMENT / 8 / 2**20


class TaskModel(Model, RoundModel, Protocol):
    """A model for either kind of work."""


class Times:
    """Schedule and work of several tasks on one clock, for models that train or do not.

    Args:
        config: the run's settings.
        tasks: by name, what each is trained with.
        network: cells and clients.
        elements: [tasks], numbers in an update.
        models: of each task.
        stream: the run's.
        spans: gets a line for every piece of work that is over; None: nobody wants them.
        merges: gets a line for every merge; likewise.
    """

    def __init__(
        self,
        config: Config,
        tasks: dict[str, Config],
        network: Network,
        elements: list[int],
        models: Sequence[TaskModel],
        stream: Stream,
        *,
        spans: list[Span] | None = None,
        merges: list[Merged] | None = None,
    ) -> None:
        self.clock = Clock()
        delays = build_delays(tasks, network, elements, stream)
        evaluation, settings = config.evaluation, config.network
        ticks = evaluation.eval_seconds is not None
        rounds = [own.training.rounds for own in tasks.values()]
        algorithms = [own.build_algorithm() for own in tasks.values()]
        rule: Any = algorithms[0]
        self.schedule: Buffered | Simultaneous
        self.work: Asynchronous | TaskRounds
        if rule.timing == "buffered":
            plans = [
                TaskPlan(own.requests, own.buffer, versions, own.buffer_scales)  # type: ignore[attr-defined]
                for own, versions in zip(algorithms, rounds, strict=True)
            ]
            self.schedule = Buffered(
                plans,
                period=rule.reallocation.period,
                floor=rule.reallocation.floor,
                report_every=evaluation.eval_every or (None if ticks else EVAL_EVERY),
                ticks=ticks,
            )
            requests = Requests(
                self.clock,
                delays,
                network.clients,
                stream.child("requests"),
                busy_clients=settings.busy_clients,
                drop_out=settings.drop_out,
                spans=spans,
            )
            self.work = Asynchronous(models, requests, merges)
            return
        available = round(settings.availability * network.clients)
        self.schedule = Simultaneous(
            rounds, report_every=evaluation.eval_every or (None if ticks else 1), ticks=ticks
        )
        self.work = TaskRounds(
            models,
            self.clock,
            delays,
            rule.assignment(network.clients, len(tasks), stream.child("assignment")),
            shares=_shares([own.training.clients_per_round for own in tasks.values()], available),
            clients=network.clients,
            available=available,
            first=rule.first,
            drop_out=settings.drop_out,
            stream=stream.child("requests"),
            spans=spans,
            merges=merges,
        )

    def start(self, limit: float | None) -> None:
        """Begin, or go on behind the last round; end after ``limit`` seconds."""
        self.clock.after(0.0, Started())
        if limit is not None:
            self.clock.at(max(limit, self.clock.now), Deadline())


def _shares(given: Sequence[int | None], available: int) -> list[int]:
    """Clients of each task in a round: those given, and the rest evenly among the others."""
    left = available - sum(share or 0 for share in given)
    open_ = [place for place, share in enumerate(given) if share is None]
    shares = [share or 0 for share in given]
    if open_:
        dealt = allocate_requests([1.0] * len(open_), left, floor=1).value
        assert dealt is not None, "checked with the configuration"
        for place, count in zip(open_, dealt, strict=True):
            shares[place] = int(count)
    return shares


class TasksEngine:
    """Several tasks, as ``Progress`` drives them."""

    def __init__(self, parts: TaskParts) -> None:
        self.parts = parts
        self.times = Times(
            parts.config,
            parts.tasks,
            parts.network,
            parts.elements,
            parts.learners,
            parts.stream,
        )
        self.schedule, self.work = self.times.schedule, self.times.work
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
        work, clients = self.work, self.parts.network.clients
        sizes = self.parts.elements
        up = sum(count * size for count, size in zip(work.returned, sizes, strict=True))
        down = sum(count * size for count, size in zip(work.sent, sizes, strict=True))
        status = {**report.status, **self.work.status(number)}
        row = {
            "round": report.round,
            "task": name,
            "sim_seconds": self.clock.now,
            **status,
            "uplink_mib": MIB * up / clients,
            "downlink_mib": MIB * down / clients,
            "backhaul_mib": 0.0,
            "joules": self.work.joules / clients,
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
        return found | self.work.tensors()

    def snapshot(self) -> dict[str, Any]:
        """Everything else."""
        return {
            "schedule": self.schedule.snapshot(),
            "work": self.work.snapshot(),
            "learners": [learner.snapshot() for learner in self.parts.learners],
            "reached": sorted(self.reached),
            "task_shapes": {
                name: basis.task.spec.shapes
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
        self.work.restore(tensors, state["work"])
        if self.work.starts_again:
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
                *(model_mark(basis.task) for basis in bases)
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
            own = basis.task.spec.views(learner.state["params"].cpu())
            found |= named_params(own, name if self.config.task else None)
        return found

    def close(self) -> None:
        """Give back the executors' memory."""
        for learner in self.parts.learners:
            learner.executor.close()


def named_params(params: dict[str, Tensor], task: str | None) -> dict[str, Tensor]:
    """Parameters by name, with the task's name in front where there are several."""
    return params if task is None else {f"{task}.{name}": v for name, v in params.items()}
