"""Builds the redesigns of a run, and refuses settings whose rounds cannot be redesigned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from wirelessfl.algorithms.algorithm import check_participation
from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.planner import Planner
from wirelessfl.rounds.redesign import Redesign, RoundSettings
from wirelessfl.rounds.redesigns import Redesigns
from wirelessfl.schedules import Rounds
from wirelessfl.training.shards import Shards
from wirelessfl.training.step_counts import MOST_STEPS
from wirelessfl.uplinks import Uplink
from wirelessfl.wording import shown


def check_redesign(config: Config, redesign: Redesign) -> None:
    """Refuse runs whose rounds cannot be redesigned.

    Args:
        config: the settings, resolved.
        redesign: decides about their rounds.

    Raises:
        ConfigError: a setting conflicts with redesigns; the message names it.
    """
    every, each, title = redesign.every, config.evaluation.eval_every or 1, redesign.title
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
    if every % each:
        raise ConfigError(
            f"redesign={title} conflicts with eval_every={each}: it decides from rows, and each "
            f"row must have rounds of one design. Choose a multiple of {each} rounds, or another "
            "eval_every."
        )
    held = config.data.validation_fraction
    if any(field.startswith("validation_") for field in redesign.reads) and not held:
        raise ConfigError(
            f"redesign={title} reads {', '.join(redesign.reads)}: set validation_fraction, the "
            "fraction of training samples that are held out."
        )


def make_redesigns(
    config: Config, redesign: Redesign, planner: Planner, shards: Shards
) -> Redesigns:
    """The redesigns of a run.

    Args:
        config: the settings, resolved.
        redesign: decides about the rounds.
        planner: planner of the rounds as configured.
        shards: the processes that share the clients.
    """
    training = config.training
    first = RoundSettings(training.local_steps, training.edge_rounds or 1)
    return Redesigns(redesign, first, _planner_of(config, planner), shards)


def _planner_of(config: Config, planner: Planner) -> Callable[[RoundSettings], Planner]:
    """A function that returns the planner of rounds with given settings."""
    network, training = planner.network, config.training

    @lru_cache(maxsize=64)
    def uplink_of(settings: tuple[tuple[str, Any], ...]) -> Uplink:
        return _uplink(config, dict(settings))

    def planner_of(settings: RoundSettings) -> Planner:
        _check_numbers(settings, planner)
        wanted = settings.clients_per_round
        if wanted is not None:
            tracking = training.tracking_clients
            check_participation(planner.algorithm, network.clients, network.cells, wanted, tracking)
        participation = planner.participation
        if wanted is not None:
            participation = replace(participation, per_round=wanted)
        links = planner.links
        if settings.uplink:
            uplink = uplink_of(tuple(sorted(settings.uplink.items())))
            coherence = config.network.coherence or uplink.coherence
            links = replace(links, uplink=uplink, coherence=coherence)
        return replace(
            planner,
            settings=replace(
                planner.settings,
                local_steps=settings.local_steps,
                edge_rounds=settings.edge_rounds,
            ),
            links=links,
            participation=participation,
        )

    return planner_of


def _check_numbers(settings: RoundSettings, planner: Planner) -> None:
    """Refuse numbers of steps, rounds and clients that are no such numbers.

    Raises:
        ConfigError: a number is wrong; the message names it.
    """
    for name in ("local_steps", "edge_rounds", "clients_per_round"):
        value = getattr(settings, name)
        if name == "clients_per_round" and value is None:
            continue
        integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not integer or not 1 <= value <= MOST_STEPS:
            raise ConfigError(
                f"the redesign has chosen {name}={shown(value)}: choose an integer from 1 to "
                f"{MOST_STEPS:.0e}."
            )
    if settings.edge_rounds > 1 and not planner.hierarchical:
        raise ConfigError(
            f"the redesign has chosen edge_rounds={settings.edge_rounds}, but algorithm "
            f"{planner.algorithm.title!r} has no cells: choose 1."
        )


def _uplink(config: Config, changed: Mapping[str, Any]) -> Uplink:
    """The uplink with some settings changed.

    Raises:
        ConfigError: a wrong setting, settings that conflict, or the sums would have other errors.
    """
    tables = config.given_tables()
    same = changed.get("name", config.named("uplink")) == config.named("uplink")
    before = {"name": config.named("uplink"), **tables.get("uplink", {})} if same else {}
    found = Config.of(tables | {"uplink": {**before, **changed}})
    uplink = found.uplink
    if uplink.gives != config.uplink.gives:
        raise ConfigError(
            f"the redesign has chosen uplink {uplink.title!r}, which conflicts with uplink "
            f"{config.named('uplink')!r} of the run: choose one that also gives "
            f"{config.uplink.gives!r}."
        )
    return uplink
