"""The parts of a run, built once from its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from channels import Network
from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.rounds.one_model import OneModel
from wirelessfl.rounds.planner import Planner
from wirelessfl.rounds.training import RoundTraining
from wirelessfl.schedules import Clock
from wirelessfl.schedules.events import Scheduler
from wirelessfl.schedules.loop import RegimeHandler
from wirelessfl.sessions.session_rounds import SessionRounds
from wirelessfl.sessions.task_sessions import TaskSessions
from wirelessfl.setup.trained_model import TrainedModel
from wirelessfl.submodels import Submodels
from wirelessfl.tasks.asynchronous import Asynchronous
from wirelessfl.tasks.delays import Elements
from wirelessfl.tasks.learner import Learner
from wirelessfl.tasks.task_rounds import TaskRounds
from wirelessfl.training.shards import Shards


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
    """The parts of every run.

    Args:
        config: settings as stored, with every automatic value resolved.
        stream: randomness of the run.
        network: cells and clients.
        models: trained models, one per task.
        clock: virtual clock, in seconds.
        schedule: decides when clients get work and servers merge.
        regime: carries out the schedule's decisions.
        limits: when the run evaluates, saves and ends.
        goals: goal of each model.
        shards: the processes that share the clients.
        notes: messages for the user, one line each.
    """

    config: Config
    stream: Stream
    network: Network
    models: Sequence[TrainedModel]
    clock: Clock
    schedule: Scheduler
    regime: RegimeHandler
    limits: Limits
    goals: Sequence[Goal]
    shards: Shards
    notes: Sequence[str]

    def start_workers(self) -> None:
        """Start the executors' processes; call it before creating the run directory."""
        for model in self.models:
            model.executor.start()

    def close(self) -> None:
        """End the executors' processes and release their memory."""
        for model in self.models:
            model.executor.close()


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundsSetup(Setup):
    """A run of one model in rounds, of all nodes or of cells that are merged asynchronously.

    Args:
        planner: plans rounds.
        training: trains the planned rounds.
        tested: submodel to evaluate; None for the whole model.
    """

    planner: Planner
    training: RoundTraining
    regime: OneModel
    tested: Submodels | None

    @property
    def model(self) -> TrainedModel:
        """The model of the run."""
        return self.models[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class SessionsSetup(RoundsSetup):
    """A run of one model in sessions.

    Args:
        only_present_labels: whether models are evaluated only on labels of present clients.
    """

    regime: SessionRounds
    only_present_labels: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class TasksSetup(Setup):
    """A run of several tasks, or of one model trained as a task.

    Args:
        names: task names.
        titled: whether tasks have tables; names of parameters then begin with the task's name.
        learners: training state of each task's model.
        elements: [tasks], number of transmitted values per whole model.
    """

    names: Sequence[str]
    titled: bool
    learners: Sequence[Learner]
    regime: Asynchronous | TaskRounds | TaskSessions
    elements: Sequence[Elements]
