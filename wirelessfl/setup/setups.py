"""Everything that a run needs, built once from the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from channels import Network
from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.rounds.cells import AsynchronousCells
from wirelessfl.rounds.plan import Planner
from wirelessfl.rounds.rounds import ModelRounds
from wirelessfl.rounds.training import RoundTraining
from wirelessfl.schedules import Clock
from wirelessfl.schedules.events import Scheduler
from wirelessfl.schedules.loop import Regime
from wirelessfl.sessions.rounds import SessionRounds
from wirelessfl.setup.trained_model import TrainedModel
from wirelessfl.submodels import Submodels
from wirelessfl.tasks.asynchronous import Asynchronous
from wirelessfl.tasks.delays import Elements
from wirelessfl.tasks.learner import Learner
from wirelessfl.tasks.rounds import TaskRounds
from wirelessfl.training.shards import Shards


@dataclass(frozen=True)
class Limits:
    """When a run evaluates, saves and ends.

    Args:
        max_seconds: simulated seconds until the run ends; None for no limit.
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Setup:
    """The parts of every run.

    Args:
        config: settings as they are stored, with every automatic value resolved.
        stream: randomness of the run.
        network: cells and clients.
        models: trained models, one per task.
        clock: virtual seconds.
        schedule: decides when clients get work and servers merge.
        regime: carries out the schedule's decisions.
        limits: when the run evaluates, saves and ends.
        shards: the processes that share the clients.
        notes: messages for the user, one line each.
    """

    config: Config
    stream: Stream
    network: Network
    models: Sequence[TrainedModel]
    clock: Clock
    schedule: Scheduler
    regime: Regime
    limits: Limits
    shards: Shards
    notes: Sequence[str]

    def start_workers(self) -> None:
        """Start the executors' processes, before a run directory exists."""
        for model in self.models:
            model.executor.start()

    def close(self) -> None:
        """Release the executors' processes and memory."""
        for model in self.models:
            model.executor.close()


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundsSetup(Setup):
    """A run of one model in rounds.

    Args:
        planner: plans rounds.
        training: trains them.
        tested: evaluated submodel; None for the whole model.
    """

    planner: Planner
    training: RoundTraining
    regime: ModelRounds | SessionRounds | AsynchronousCells
    tested: Submodels | None

    @property
    def model(self) -> TrainedModel:
        """The only model."""
        return self.models[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class SessionsSetup(RoundsSetup):
    """A run of one model in sessions.

    Args:
        only_present_labels: whether only test samples with labels of present clients count.
        trace: file of recorded joins and leaves; None without one.
    """

    regime: SessionRounds
    only_present_labels: bool
    trace: Path | None


@dataclass(frozen=True, eq=False, kw_only=True)
class CellsSetup(RoundsSetup):
    """A run of one model whose cloud merges cells asynchronously."""

    regime: AsynchronousCells


@dataclass(frozen=True, eq=False, kw_only=True)
class TasksSetup(Setup):
    """A run of several tasks, or of one model trained as a task.

    Args:
        names: task names.
        titled: whether tasks have tables, so that parameters carry task names.
        learners: each task's model in training.
        elements: [tasks], numbers that cross the air for a whole model.
        targets: [tasks], accuracy at which each task ends; None for no target.
    """

    names: Sequence[str]
    titled: bool
    learners: Sequence[Learner]
    regime: Asynchronous | TaskRounds
    elements: Sequence[Elements]
    targets: Sequence[float | None]
