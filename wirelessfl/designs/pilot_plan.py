"""The pilots to train: arguments of ``wirelessfl.pilot``, and a configuration for each pilot."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from channels import Network
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.config.named import GivenSection
from wirelessfl.designs.points import (
    EDGE_ROUNDS,
    LOCAL_STEPS,
    PilotChoices,
    Point,
    chosen_points,
    levels,
    ramp,
)
from wirelessfl.runs.build.given import check_objects
from wirelessfl.runs.build.network import build_network
from wirelessfl.runs.pricing.radio import NETWORK, TABLES, dependences

VALIDATION = 0.1
"""Fraction of the training data held out if the settings hold out none."""
EVALUATIONS = 100
"""Evaluations of a pilot, about."""
UP_TO_TARGET = 4
"""Rounds of a pilot over those that it is expected to need to its target."""
FEWEST_ROUNDS = 5
OF_MASKS = ("mask_sizes", "mask_shares", "size_cap")
OWN = (
    *("out", "client_log", "keep_best", "track"),
    *("eval_every", "eval_first", "stop_at_target", "patience", "min_delta", "metric"),
    *("rounds", "local_steps", "edge_rounds", "clients_per_round"),
)
"""Settings that a pilot has of its own, or does not need; they are replaced."""


def check_pilots(config: Config) -> None:
    """Refuse settings whose rounds the learning curve does not describe."""
    if not config.regime.common_rounds:
        what = f"schedule {config.named('schedule')!r}"
        if config.regime.in_sessions:
            what = "sessions"
        raise ConfigError(
            f"pilots have common rounds of one model, and the settings have {what}: choose "
            'schedule "rounds" without tasks and sessions.'
        )
    if config.task:
        raise ConfigError(
            "pilots train one model, and the settings have tables of tasks: leave them out."
        )
    if config.training.local_epochs is not None:
        raise ConfigError(
            f"local_epochs={config.training.local_epochs:g} conflicts with pilots, which differ in "
            "local_steps: leave it out."
        )
    monitor = config.evaluation.monitor
    if monitor not in (None, "accuracy", "validation_accuracy"):
        raise ConfigError(
            f"monitor={monitor} conflicts with pilots, whose target is a validation accuracy: "
            "leave it out."
        )


def of_pilot(
    config: Config,
    point: Point,
    steps: int,
    plain: Mapping[str, Any] | None,
    clients: int,
    most_rounds: float = math.inf,
) -> Config:
    """The settings of a pilot.

    Args:
        config: settings of the run to design.
        point: settings of the pilot.
        steps: local steps of a client up to the last round.
        plain: settings of the network without a radio; None to keep those of the run.
        clients: number of clients of the network.
        most_rounds: limit on its rounds.
    """
    affordable = steps / (point.local_steps * point.edge_rounds)
    rounds = max(math.ceil(min(affordable, most_rounds)), FEWEST_ROUNDS)
    flags: dict[str, Any] = dict.fromkeys((*OWN, *OF_MASKS, "handover"))
    flags |= {"local_steps": point.local_steps, "rounds": rounds}
    if config.hierarchical:
        flags["edge_rounds"] = point.edge_rounds
    senders = point.clients or config.training.clients_per_round
    if senders is not None and senders != clients:
        flags["clients_per_round"] = senders
    elif config.training.clients_per_round is not None:
        flags["select"] = None
    expected = rounds
    if config.evaluation.target is not None:
        flags["stop_at_target"] = True
        expected = rounds // UP_TO_TARGET
    flags["eval_every"] = max(expected // EVALUATIONS, 1)
    flags["validation_fraction"] = config.data.validation_fraction or VALIDATION
    if point.shares is not None:
        flags |= {"mask_sizes": "fixed", "mask_shares": point.shares}
    unmarked = GivenSection()  # objects are marked again when pilots train
    if point.snr_db is not None:  # with the other settings of the radio
        return config.changed(given=unmarked, **flags, uplink="aircomp", snr_db=point.snr_db)
    pilot = config.changed(given=unmarked, **{**flags, "uplink": None, **(plain or {})})
    for reason in dependences(pilot):
        raise ConfigError(f"pilots train without a radio, but {reason}. Leave it out for pilots.")
    return pilot


def plain_network(config: Config, network: Network | None = None) -> dict[str, Any] | None:
    """Settings of the network without a radio, so that pilots of other networks are the same runs.

    Args:
        config: settings of the run to design.
        network: the network, if it replaces that of the settings.

    Returns:
        Flags; None if clients are in other cells than those of the default network.
    """
    stream = Stream(config.run.seed)
    if network is None:
        network = build_network(config.network, stream, config)
    flags: dict[str, Any] = dict.fromkeys((*TABLES, *NETWORK))
    flags["clients"] = network.clients
    if config.hierarchical:
        flags["cells"] = network.cells
    plain = config.changed(given=GivenSection(), **flags)
    default = build_network(plain.network, stream, plain)
    return flags if np.array_equal(default.cell_of, network.cell_of) else None


def submodel_table(tables: Mapping[str, Any]) -> str:
    """The table with the settings of submodels: that of the assigner, if one is chosen."""
    return "assigner" if tables.get("assigner") is not None else "algorithm"


STEPS = 4000
"""Local steps of a client up to the last round of a pilot."""
COUNT = 8
FEWEST = 3
"""A curve is fitted to three settings at least."""
LARGEST = 1.5
"""Largest submodel of pilots with unequal masks, relative to equal ones: HIST's default cap."""


@dataclass(frozen=True)
class PilotRequest:
    """Which pilots to train; fields as the arguments of ``wirelessfl.pilot``."""

    local_steps: Sequence[int] | None = None
    edge_rounds: Sequence[int] | None = None
    clients: Sequence[int] = ()
    masks: bool | Sequence[Sequence[float]] = False
    snr_db: Sequence[float] = ()
    count: int = COUNT
    steps: int = STEPS
    most_rounds: Callable[[int, int], float] | None = None


@dataclass(frozen=True)
class PilotPlan:
    """Pilots to train.

    Args:
        points: their settings that differ.
        configs: all their settings.
        plain: whether the settings describe the network, so that none is given.
    """

    points: list[Point]
    configs: list[Config]
    plain: bool


def planned(
    config: Config, request: PilotRequest | None = None, network: Network | None = None
) -> PilotPlan:
    """The pilots that ``wirelessfl.pilot`` trains with these arguments."""
    if not isinstance(config, Config):
        raise ConfigError(f"config is {shown(config)}: give a wirelessfl.Config.")
    check_objects(network=network)
    check_pilots(config)
    request = PilotRequest() if request is None else request
    count = whole("number of pilots", request.count, FEWEST)
    steps = whole("steps", request.steps, 1)
    size = config.network if network is None else network
    choices = PilotChoices(
        _numbers("local_steps", request.local_steps, LOCAL_STEPS),
        _edge_rounds(config, request.edge_rounds),
        _participants(request.clients, size.clients),
        _shares(config, request.masks, size.cells or 1),
        _snr_db(request.snr_db, network),
    )
    points = chosen_points(choices, count)
    if len(points) < FEWEST:
        raise ConfigError(
            f"local_steps and edge_rounds have {len(points)} combinations, and a curve needs "
            f"{FEWEST} at least: give more values."
        )
    plain = plain_network(config, network)
    configs = []
    for point in points:
        most = math.inf
        if request.most_rounds is not None:
            most = request.most_rounds(point.local_steps, point.edge_rounds)
        configs.append(of_pilot(config, point, steps, plain, size.clients, most))
    return PilotPlan(points, configs, plain is not None)


def whole(name: str, value: object, least: int) -> int:
    """A whole number."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ConfigError(f"{name} is {shown(value)}: give a whole number >= {least}.")
    return number


def _list(name: str, values: object) -> list[Any]:
    if isinstance(values, Sequence | np.ndarray) and not isinstance(values, str):
        return list(values)
    raise ConfigError(f"{name} is {shown(values)}: give a list of numbers.")


def _numbers(name: str, values: object, default: tuple[int, int, int]) -> tuple[int, ...]:
    """Different whole numbers >= 1 in increasing order."""
    if values is None:
        return levels(*default)
    numbers = sorted({whole(name, value, 1) for value in _list(name, values)})
    if not numbers:
        raise ConfigError(f"{name} has no values: give at least one.")
    return tuple(numbers)


def _edge_rounds(config: Config, values: object) -> tuple[int, ...]:
    if config.hierarchical:
        return _numbers("edge_rounds", values, EDGE_ROUNDS)
    if values is not None:
        raise ConfigError(
            f'edge_rounds conflicts with algorithm "{config.named("algorithm")}", which is a star '
            'with one server: leave it out, or choose "hfedavg" or "hist".'
        )
    return (1,)


def _participants(values: object, clients: int) -> tuple[int, ...]:
    counts = sorted({whole("clients", value, 1) for value in _list("clients", values)})
    if counts and counts[-1] > clients:
        raise ConfigError(
            f"clients is {counts[-1]}, and the network has {clients}: give at most {clients}."
        )
    return tuple(counts)


def _shares(
    config: Config, masks: bool | Sequence[Sequence[float]], cells: int
) -> tuple[tuple[float, ...], ...]:
    """Unequal shares of the cells; none without ``masks``."""
    if masks is False:
        return ()
    table = submodel_table(config.tables)
    if not config.used_assigner.of_cells or cells == 1:
        what = f'{table} "{config.named(table)}"' if cells > 1 else "cells=1"
        raise ConfigError(
            f'unequal masks conflict with {what}: only the cells of algorithm "hist", or with '
            'assigner "partition", have submodels. Leave them out.'
        )
    if masks is True:
        fixed = config.tables[table].get("mask_shares")
        return (tuple(fixed) if fixed else ramp(cells, LARGEST),)
    return tuple(tuple(_list("masks", shares)) for shares in _list("masks", masks))


def _snr_db(values: object, network: Network | None) -> tuple[float, ...]:
    numbers = _list("snr_db", values)
    if numbers and network is not None:
        raise ConfigError(
            "snr_db conflicts with network=..., whose gains are given: leave one out."
        )
    for value in numbers:
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise ConfigError(f"snr_db is {shown(value)}: give numbers in dB.")
    return tuple(float(value) for value in numbers)
