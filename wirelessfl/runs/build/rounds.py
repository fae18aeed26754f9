"""Builds a run of one model in rounds, or of cells that the cloud merges asynchronously."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from channels.streams import Stream
from wirelessfl.air.links import Links
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.engine.rounds.asynchronous_cells import AsynchronousCells
from wirelessfl.engine.rounds.model_rounds import ModelRounds
from wirelessfl.engine.rounds.redesign import Redesign, Redesigns
from wirelessfl.engine.schedules import Clock, Rounds, Scope
from wirelessfl.engine.server.learner import Learner
from wirelessfl.engine.sessions.attendance import Churn
from wirelessfl.engine.sessions.traces import Trace, read_trace
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.build.network import build_network
from wirelessfl.runs.build.planners import Untrained, UntrainedModel, make_planner
from wirelessfl.runs.build.setups import ModelParts, Setup, ledger_of, server_of
from wirelessfl.training.workers.shards import Shards


def build_rounds(
    config: Config, objects: GivenObjects, shards: Shards, untrained: Untrained | None = None
) -> Setup:
    """Build a run of one model in rounds; arguments and errors as for ``build_parts``."""
    parts = build_parts(config, objects, shards, untrained)
    redesigns = None
    if objects.redesign is not None:
        links_of = _links_of(config, parts.planner.links)
        redesigns = Redesigns(objects.redesign, parts.planner, links_of, shards)
    return parts.setup(
        config.schedule.scheduler([config.schedule], _scope(config, untrained)),
        ModelRounds(
            parts.planner,
            parts.learner,
            parts.clock,
            parts.ledger,
            redesigns,
            availability_of(config, parts),
        ),
    )


def availability_trace(config: Config, clients: int) -> Trace | None:
    """When clients are available; None for always.

    Raises:
        ConfigError: the trace cannot be read.
    """
    training = config.training
    if training.availability_trace is None:
        return None
    return read_trace(training.availability_trace, clients, training.availability_period)


def availability_of(config: Config, parts: ModelParts) -> Churn | None:
    """Which clients are available in the course of a run; None for all."""
    trace, training = availability_trace(config, parts.network.clients), config.training
    if trace is None:
        return None
    return Churn(trace, training.availability_unit, training.rounds, parts.clock)


def check_redesign(config: Config, redesign: Redesign) -> None:
    """Refuse runs whose rounds cannot be redesigned.

    Raises:
        ConfigError: a setting conflicts with redesigns; the message names it.
    """
    every = getattr(redesign, "every", None)  # users may have left it out
    period, title = config.evaluation.eval_every or 1, redesign.title
    if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
        raise ConfigError(f"redesign {title!r}: every is {shown(every)}: give an integer >= 1.")
    if not config.regime.common_rounds or type(config.schedule) is not Rounds:
        what = f"schedule={config.named('schedule')}"
        if config.regime.in_sessions:
            what = f"sessions={config.sessions.sessions}"
        raise ConfigError(
            f"redesign={title} conflicts with {what}: only synchronous rounds of one model can be "
            'redesigned. Choose schedule "rounds" without sessions, or leave redesign out.'
        )
    passes = config.training.local_epochs
    if passes is not None:
        raise ConfigError(
            f"redesign={title} conflicts with local_epochs={passes:g}: it decides local_steps, the "
            "same number for all clients. Give local_steps instead."
        )
    if config.used_assigner.plans_ahead:
        raise ConfigError(
            f'redesign={title} conflicts with algorithm "{config.named("algorithm")}", which plans '
            "its rounds in advance with these settings: choose other values (budget, min_coverage, "
            "masks), or leave redesign out."
        )
    if every % period:
        raise ConfigError(
            f"redesign={title} conflicts with eval_every={period}: it decides from rows, and each "
            f"row must have rounds of one design. Choose a multiple of {period} rounds, or another "
            "eval_every."
        )
    held = config.data.validation_fraction
    if any(field.startswith("validation_") for field in redesign.reads) and not held:
        raise ConfigError(
            f"redesign={title} reads {', '.join(redesign.reads)}: set validation_fraction, the "
            "fraction of training samples that are held out."
        )


def _links_of(config: Config, configured: Links) -> Callable[[Mapping[str, Any]], Links]:
    """Links with changed settings of the uplink; each is built once."""

    @cache
    def changed(settings: tuple[tuple[str, Any], ...]) -> Links:
        name, chosen = config.named("uplink"), dict(settings)
        if chosen.get("name", name) == name:
            chosen = {"name": name, **config.given_settings("uplink"), **chosen}
        uplink = config.changed(uplink=chosen).uplink
        if uplink.gives != config.uplink.gives:
            raise ConfigError(
                f"the redesign has chosen uplink {uplink.title!r}, which conflicts with uplink "
                f"{name!r} of the run: choose one that also gives {config.uplink.gives!r}."
            )
        coherence = config.network.coherence or uplink.coherence
        return replace(configured, uplink=uplink, coherence=coherence)

    return lambda settings: changed(tuple(sorted(settings.items())))


def build_parts(
    config: Config, objects: GivenObjects, shards: Shards, untrained: Untrained | None = None
) -> ModelParts:
    """Build the parts of a run of one model; as a check, its first round is planned.

    Args:
        config: the settings, resolved, with the given objects marked.
        objects: Python objects that replace settings.
        shards: the processes that share the clients.
        untrained: how a run is built that is not trained; None to train it.

    Raises:
        ConfigError: settings conflict.
        DataError: the data are missing, or cannot be split as requested.
    """
    stream = Stream(config.run.seed)
    network = objects.network or build_network(config.network, stream, config)
    if untrained is None:
        from wirelessfl.runs.build.trained_parts import trained_parts  # loads PyTorch

        return trained_parts(config, objects, network, shards)
    model = untrained.model or UntrainedModel.of(config, objects)
    planner = make_planner(config, network, model)
    start = model.start if config.regime.in_sessions else None  # warm starts get it
    server = server_of(config, planner, "memory", 1, start)
    return ModelParts(
        config=config,
        stream=planner.stream,
        model=model,
        planner=planner,
        learner=Learner(server, None, model.spec, planner.stream),
        clock=Clock(),
        ledger=ledger_of(planner, joules=untrained.joules),
        shards=shards,
        notes=model.notes,
    )


def _scope(config: Config, untrained: Untrained | None, cells: int | None = None) -> Scope:
    """Facts for the scheduler: without training, rows are written after each round."""
    if untrained is not None:
        return Scope([untrained.rounds or config.training.rounds], 1, cells=cells)
    ticks = config.evaluation.eval_seconds is not None
    every = config.evaluation.eval_every or (None if ticks else 1)
    return Scope([config.training.rounds], every, ticks, cells=cells)


def build_cells(
    config: Config, objects: GivenObjects, shards: Shards, untrained: Untrained | None = None
) -> Setup:
    """Build a run with asynchronous cells; most parts are those of a run in rounds.

    Args:
        config: the settings; ``rounds`` is the number of merges.
        objects: Python objects that replace settings.
        shards: the processes that share the clients; must be one.
        untrained: as in ``build_parts``.

    Raises:
        ConfigError: as in ``build_parts``, or there are several processes.
    """
    if shards.count > 1:
        raise ConfigError(
            f"torchrun has started {shards.count} processes, but algorithm "
            f'"{config.named("algorithm")}" with schedule "{config.named("schedule")}" needs one. '
            "Start it without torchrun."
        )
    parts = build_parts(config, objects, shards, untrained)
    scope = _scope(config, untrained, parts.network.cells)
    return parts.setup(
        config.schedule.scheduler([config.schedule], scope),
        AsynchronousCells(
            parts.planner,
            parts.learner,
            parts.clock,
            parts.ledger,
            availability_of(config, parts),
        ),
    )
