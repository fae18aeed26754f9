"""Builds schedule, clock and handler of tasks in sessions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from channels import Network
from channels.streams import Stream
from wirelessfl.config import Config
from wirelessfl.schedules import Clock, TaskSessionsScheduler
from wirelessfl.sessions.attendance import GroupsInTurn
from wirelessfl.sessions.present_only import PresentOnly
from wirelessfl.sessions.session_model import SessionModel
from wirelessfl.sessions.task_sessions import TaskSessions
from wirelessfl.setup.build_sessions import (
    build_attendance,
    check_tested_labels,
    drawn_models,
    held_labels,
)
from wirelessfl.setup.given_objects import GivenObjects
from wirelessfl.setup.task_schedules import Times, build_task_rounds
from wirelessfl.setup.trained_model import TrainedModel
from wirelessfl.tasks.delays import Delays
from wirelessfl.tasks.learner import TaskLearner
from wirelessfl.tasks.task_rounds import TaskRounds
from wirelessfl.tasks.traffic import Traffic


@dataclass(frozen=True, eq=False)
class TrainedTasks:
    """The tasks of a run.

    Args:
        models: [tasks], the models.
        learners: [tasks], train them.
        traffic: what models and updates transmit.
    """

    models: Sequence[TrainedModel]
    learners: Sequence[TaskLearner]
    traffic: Traffic


def build_session_times(
    config: Config,
    network: Network,
    given: GivenObjects,
    tasks: TrainedTasks,
    delays: Delays,
    stream: Stream,
) -> Times:
    """Build clock, schedule and handler of tasks in sessions.

    Args:
        config: the run's settings.
        network: cells and clients.
        given: Python objects that replace settings.
        tasks: the tasks; their learners will evaluate on the labels of present clients.
        delays: latency model of the rounds.
        stream: the run's randomness.

    Raises:
        ConfigError: settings conflict with a model or its data, a trace cannot be read, or a
            session has no client.
    """
    warm_start, sessions = config.warm_start, config.sessions.sessions
    assert warm_start is not None
    assert sessions is not None
    clock, rounds, evaluation = Clock(), config.training.rounds, config.evaluation
    models, learners = tasks.models, tasks.learners
    in_sessions = [
        _session_model(task, given, model, learner)
        for task, model, learner in zip(config.tasks.values(), models, learners, strict=True)
    ]

    def trial_rounds(copies: Sequence[TaskLearner]) -> TaskRounds:
        return build_task_rounds(config, network, copies, clock, delays, stream, trial=True)

    handler = TaskSessions(
        build_task_rounds(config, network, learners, clock, delays, stream),
        in_sessions,
        clock,
        build_attendance(config, network.clients, clock, models[0].groups, stream),
        trial_rounds,
        tasks.traffic,
    )
    schedule = TaskSessionsScheduler(
        len(models),
        sessions,
        rounds,
        warm_start.trials,
        evaluation.eval_every or 1,
        evaluation.eval_first,
    )
    return Times(clock, schedule, handler)


def _session_model(
    task: Config, given: GivenObjects, model: TrainedModel, learner: TaskLearner
) -> SessionModel[TaskLearner]:
    """What the model of a task has in sessions."""
    warm_start, sessions = task.warm_start, task.sessions.sessions
    assert warm_start is not None
    assert sessions is not None
    check_tested_labels(task, model)
    labels = held_labels(model)
    tested = labels if task.sessions.tested_labels == "present" else None
    present = PresentOnly(model.data, learner.server, tested)
    learner.evaluation = replace(learner.evaluation, tested=present)
    return SessionModel(
        learner,
        warm_start,
        model.objective.spec,
        draw=drawn_models(task, model, learner.stream),
        labels=labels,
        possible=_possible(model, sessions),
        trial_stream=learner.stream.child("trial"),
    )


def _possible(model: TrainedModel, sessions: int) -> Callable[[int], Collection[int] | None]:
    """Maps a session to the labels that its clients can have in the data of a task."""
    if model.groups is None:
        return lambda session: None
    return GroupsInTurn(model.groups, sessions).labels
