"""The parts of a run, built once from its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from channels import Network
from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.engine.events import Scheduler
from wirelessfl.engine.loop import Handler
from wirelessfl.engine.rounds.model_rounds import OneModel
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.client_states import make_states
from wirelessfl.engine.server.learner import Learner
from wirelessfl.engine.server.ledger import Ledger, Totals
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.server.weights import Weights
from wirelessfl.runs.build.planners import Model, UntrainedModel
from wirelessfl.training.workers.shards import Shards

if TYPE_CHECKING:  # what only counts costs needs no PyTorch
    from torch import Tensor

    from wirelessfl.runs.build.trained_model import TrainedModel


@dataclass(frozen=True)
class Limits:
    """When a run evaluates, saves and ends.

    Args:
        max_seconds: limit on simulated seconds; None for no limit.
        tick_seconds: simulated seconds between evaluations.
        checkpoint_seconds: minimum wall-clock seconds between checkpoints.
        threads: CPU threads per process.
    """

    max_seconds: float | None
    tick_seconds: float
    checkpoint_seconds: float
    threads: int

    @classmethod
    def of(cls, config: Config, threads: int) -> Limits:
        """The limits in the settings."""
        return cls(
            max_seconds=config.training.max_seconds,
            tick_seconds=config.evaluation.eval_seconds or 1.0,
            checkpoint_seconds=config.run.checkpoint_seconds,
            threads=threads,
        )


@dataclass(frozen=True)
class Goal:
    """The field of a model's rows that is monitored, and the value that ends its training.

    Args:
        field: name of the field; None for the default of ``runs.monitor``.
        target: the value that ends the training; None for no such end.
    """

    field: str | None
    target: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Setup:
    """The parts of a run.

    Args:
        config: settings as stored, with every automatic value resolved.
        stream: randomness of the run.
        network: cells and clients.
        models: models, one per task; one without tasks.
        clock: virtual clock, in seconds.
        schedule: decides when clients get work and servers merge.
        handler: carries out the schedule's decisions.
        limits: when the run evaluates, saves and ends.
        goals: goal of each model.
        shards: the processes that share the clients.
        notes: messages for the user, one line each.
        tasks: name of the task of each model; None for a run of one model that is no task.
        titled: whether tasks have tables; names of parameters then begin with the task's name.
    """

    config: Config
    stream: Stream
    network: Network
    models: Sequence[Model]
    clock: Clock
    schedule: Scheduler
    handler: Handler
    limits: Limits
    goals: Sequence[Goal]
    shards: Shards
    notes: Sequence[str]
    tasks: Sequence[str] | None = None
    titled: bool = False

    @property
    def trained(self) -> Sequence[TrainedModel]:
        """The models of a run that trains."""
        return [model for model in self.models if not isinstance(model, UntrainedModel)]

    @property
    def model(self) -> TrainedModel:
        """The model of a run that trains one."""
        [model] = self.trained
        return model

    @property
    def learners(self) -> Sequence[Learner]:
        """The learner of each model."""
        return self.handler.learners

    @property
    def learner(self) -> Learner:
        """The learner of a run of one model."""
        return self.one_model.learner

    @property
    def planner(self) -> Planner:
        """The planner of a run of one model."""
        return self.one_model.planner

    @property
    def one_model(self) -> OneModel:
        """What carries out the decisions of a run of one model."""
        assert isinstance(self.handler, OneModel), "the run has tasks"
        return self.handler

    def start_workers(self) -> None:
        """Start the executors' processes; call it before creating the run directory."""
        for model in self.trained:
            model.executor.start()

    def close(self) -> None:
        """End the executors' processes and release their memory."""
        for model in self.trained:
            model.executor.close()


@dataclass(frozen=True, eq=False)
class ModelParts:
    """The parts of a run of one model, without its schedule.

    Args:
        config: settings as stored, with every automatic value resolved.
        stream: randomness of the run.
        model: the model.
        planner: plans rounds.
        learner: trains the planned rounds.
        clock: virtual clock, in seconds.
        ledger: costs of the rounds.
        shards: the processes that share the clients.
        notes: messages for the user, one line each.
    """

    config: Config
    stream: Stream
    model: Model
    planner: Planner
    learner: Learner
    clock: Clock
    ledger: Ledger
    shards: Shards
    notes: Sequence[str]

    @property
    def network(self) -> Network:
        """Cells and clients."""
        return self.planner.network

    def setup(self, schedule: Scheduler, handler: OneModel) -> Setup:
        """The run with a schedule, and what carries out its decisions."""
        evaluation = self.config.evaluation
        target = evaluation.target if evaluation.stop_at_target else None
        return Setup(
            config=self.config,
            stream=self.stream,
            network=self.network,
            models=[self.model],
            clock=self.clock,
            schedule=schedule,
            handler=handler,
            limits=Limits.of(self.config, self.model.threads),
            goals=[Goal(evaluation.monitor, target)],
            shards=self.shards,
            notes=self.notes,
        )


def ledger_of(planner: Planner, *, joules: bool = True) -> Ledger:
    """The ledger of a run in rounds, before the first.

    Args:
        planner: plans the rounds.
        joules: whether energy is counted.
    """
    totals = Totals.of(planner.links.uplink, planner.settings, joules=joules)
    return Ledger(planner.network.clients, totals)


def server_of(
    config: Config, planner: Planner, states: str, processes: int, start: Tensor | None
) -> Server:
    """The server of a run of one model.

    Args:
        config: the settings.
        planner: plans the rounds.
        states: where client states are kept.
        processes: number of processes that share the clients.
        start: initial parameters [P]; None if nothing is trained.
    """
    names, clients = config.client_vectors, planner.network.clients
    return Server(
        config.algorithm,
        config.uplink,
        Weights(planner.network.cell_of, planner.weights),
        make_states(states, names, planner.model.spec.size, clients, processes),
        start,
        planner.links.pilot_symbols,
    )
