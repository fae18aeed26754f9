"""Builds a run in sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import described
from wirelessfl.config import Config
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.data.labels import class_remedy, is_one_class
from wirelessfl.engine.rounds.model_rounds import ModelRounds
from wirelessfl.engine.schedules import Clock, SessionsScheduler
from wirelessfl.engine.sessions.attendance import Attendance
from wirelessfl.engine.sessions.presence import PresenceScene
from wirelessfl.engine.sessions.session_model import HeldLabels, PresentOnly
from wirelessfl.engine.sessions.session_rounds import SessionRounds
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.build.planners import Untrained, UntrainedModel
from wirelessfl.runs.build.rounds import build_parts
from wirelessfl.runs.build.samples import configured_model
from wirelessfl.runs.build.setups import Setup
from wirelessfl.training.workers.shards import Shards

if TYPE_CHECKING:
    from wirelessfl.runs.build.trained_model import TrainedModel


def build_sessions(
    config: Config, objects: GivenObjects, shards: Shards, untrained: Untrained | None = None
) -> Setup:
    """Build a run of one model in sessions; arguments as in ``build_parts``.

    Raises:
        ConfigError: as in ``build_parts``, or the warm start draws new models although the model
            is a given object.
    """
    parts = build_parts(config, objects, shards, untrained)
    warm_start, sessions = config.warm_start, config.sessions.sessions
    assert warm_start is not None
    assert sessions is not None
    model, evaluation, stream = parts.model, config.evaluation, parts.stream
    draw: Callable[[int], torch.Tensor]
    if isinstance(model, UntrainedModel):
        start, classes, every, first = model.start, range(model.classes), 1, 0
        draw, labels = lambda number: start, HeldLabels(lambda client: classes, classes)
    else:
        check_tested_labels(config, model)
        draw, labels = drawn_models(config, model, stream), held_labels(model)
        tested_labels = labels if config.sessions.tested_labels == "present" else None
        tested = PresentOnly(model.data, parts.learner.server, tested_labels)
        parts.learner.evaluation = replace(parts.learner.evaluation, tested=tested)
        every, first = evaluation.eval_every or 1, evaluation.eval_first
    return parts.setup(
        SessionsScheduler(sessions, config.training.rounds, warm_start.trials, every, first),
        SessionRounds(
            ModelRounds(parts.planner, parts.learner, parts.clock, parts.ledger),
            build_attendance(config, parts.network.clients, parts.clock, model.groups, stream),
            warm_start,
            draw=draw,
            labels=labels,
            keep_momentum=config.sessions.server_momentum == "keep",
        ),
    )


def check_tested_labels(config: Config, model: TrainedModel) -> None:
    """Refuse tests of the labels of present clients if labels are no classes.

    Raises:
        ConfigError: they are not.
    """
    if config.sessions.tested_labels == "present" and not is_one_class(model.data.train_labels):
        raise ConfigError(
            f"tested_labels=present needs one class per sample, int64 labels [n], but those of "
            f"data set {model.data.name!r} are {described(model.data.train_labels)}"
            f"{class_remedy(model.data.train_labels)} tested_labels all."
        )


def drawn_models(
    config: Config, model: TrainedModel, stream: Stream
) -> Callable[[int], torch.Tensor]:
    """A function that maps a number to a new model [P].

    Args:
        config: settings of the model.
        model: the model.
        stream: random stream of the run, or of the task.
    """

    def draw(number: int) -> torch.Tensor:
        """Random parameters, drawn in the same way as the initial parameters."""
        weights = stream.child("session weights", number)
        module = configured_model(config.model, model.data, weights)
        return model.objective.spec.from_module(module).to(model.start.device)

    return draw


def build_attendance(
    config: Config, clients: int, clock: Clock, groups: LabelGroups | None, stream: Stream
) -> Attendance:
    """The clients present in each session, according to the availability model.

    Args:
        config: the settings.
        clients: number of registered clients.
        clock: virtual clock.
        groups: groups of clients with different labels; None if there are none.
        stream: random stream of the run.

    Raises:
        ConfigError: the trace cannot be read, or a session has no client.
    """
    presence, sessions = config.presence, config.sessions.sessions
    assert presence is not None
    assert sessions is not None
    return presence.attendance(
        PresenceScene(
            clients, sessions, config.training.rounds, clock, groups, stream.child("presence")
        )
    )


def held_labels(model: TrainedModel) -> HeldLabels:
    """The labels of present clients, which are looked up in the data of few clients.

    Samples without a class have none.
    """
    if not is_one_class(model.data.train_labels):
        return HeldLabels(lambda client: (), ())
    labels, classes = model.data.train_labels, model.data.classes
    counts = np.bincount(labels.numpy(), minlength=classes)
    if model.validation is not None:
        counts -= np.bincount(model.validation.labels.cpu().numpy(), minlength=classes)

    def labels_of(client: int) -> list[int]:
        # A new array in each call: worker processes move the tensor, and older arrays dangle.
        label_list: list[int] = labels.numpy()[model.client_samples[client]].tolist()
        return label_list

    return HeldLabels(labels_of, np.flatnonzero(counts).tolist())
