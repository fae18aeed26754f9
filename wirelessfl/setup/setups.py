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
    """When a run reports, saves and ends.

    Args:
        max_seconds: simulated seconds after which it ends; None: no limit.
        tick_seconds: simulated seconds between reports by the clock.
        checkpoint_seconds: minimum wall-clock seconds between checkpoints.
        threads: CPU threads of a process.
    """

    max_seconds: float | None
    tick_seconds: float
    checkpoint_seconds: float
    threads: int

    @classmethod
    def of(cls, config: Config, threads: int) -> Limits:
        """Those of settings."""
        return cls(
            max_seconds=config.training.max_seconds,
            tick_seconds=config.evaluation.eval_seconds or 1.0,
            checkpoint_seconds=config.run.checkpoint_seconds,
            threads=threads,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Setup:
    """What every run has.

    Args:
        config: its settings, as they are stored: nothing automatic is left.
        stream: all its randomness.
        network: cells and clients.
        models: that it trains: one, or one for each task.
        clock: virtual seconds.
        schedule: when things happen.
        regime: carries out what the schedule decides.
        limits: when it reports, saves and ends.
        shards: the processes that share the clients.
        notes: what the user should know, a line each.
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
        """Start the executors' processes: what fails here leaves no folder behind."""
        for model in self.models:
            model.executor.start()

    def close(self) -> None:
        """Give back the executors' processes and memory."""
        for model in self.models:
            model.executor.close()


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundsSetup(Setup):
    """A run of one model in rounds.

    Args:
        planner: plans rounds.
        training: trains them.
        tested: the part of the model that is evaluated; None: all of it.
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
        only_present_labels: whether test samples are those with labels of clients present.
        trace: file of recorded joins and leaves; None: no trace.
    """

    regime: SessionRounds
    only_present_labels: bool
    trace: Path | None


@dataclass(frozen=True, eq=False, kw_only=True)
class CellsSetup(RoundsSetup):
    """A run of one model whose cloud merges cells as they come."""

    regime: AsynchronousCells


@dataclass(frozen=True, eq=False, kw_only=True)
class TasksSetup(Setup):
    """A run of several tasks, or of one model that is trained as a task.

    Args:
        names: of the tasks.
        titled: whether the tasks have tables of their own, so that parameters carry their names.
        learners: their models in training.
        elements: [tasks], numbers that cross the air for a whole model.
        targets: [tasks], accuracy at which each ends; None: no target.
    """

    names: Sequence[str]
    titled: bool
    learners: Sequence[Learner]
    regime: Asynchronous | TaskRounds
    elements: Sequence[Elements]
    targets: Sequence[float | None]
