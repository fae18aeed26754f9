"""Arguments of ``wirelessfl.pilot``: their checks, and the settings of the pilots."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from channels import Network
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.designs.pilots.pilot_settings import (
    check_pilots,
    of_pilot,
    plain_network,
    submodel_table,
)
from wirelessfl.designs.pilots.points import (
    EDGE_ROUNDS,
    LOCAL_STEPS,
    PilotChoices,
    Point,
    chosen_points,
    levels,
    ramp,
)
from wirelessfl.runs.build.arguments import check_objects

STEPS = 4000
"""Local steps of a client up to the last round of a pilot."""
COUNT = 8
FEWEST = 3
"""A curve is fitted to three settings at least."""
LARGEST = 1.5
"""Largest submodel of pilots with unequal masks, relative to equal ones: HIST's default cap."""


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
    config: Config,
    *,
    local_steps: Sequence[int] | None = None,
    edge_rounds: Sequence[int] | None = None,
    clients: Sequence[int] = (),
    masks: bool | Sequence[Sequence[float]] = False,
    snr_db: Sequence[float] = (),
    count: int = COUNT,
    steps: int = STEPS,
    most_rounds: Callable[[int, int], float] | None = None,
    network: Network | None = None,
) -> PilotPlan:
    """The pilots that ``wirelessfl.pilot`` trains with these arguments.

    Raises:
        ConfigError: see ``wirelessfl.pilot``.
    """
    if not isinstance(config, Config):
        raise ConfigError(f"config is {shown(config)}: give a wirelessfl.Config.")
    check_objects(network=network)
    check_pilots(config)
    count = whole("number of pilots", count, FEWEST)
    steps = whole("steps", steps, 1)
    size = config.network if network is None else network
    choices = PilotChoices(
        _numbers("local_steps", local_steps, LOCAL_STEPS),
        _edge_rounds(config, edge_rounds),
        _participants(clients, size.clients),
        _shares(config, masks, size.cells or 1),
        _snr_db(snr_db, network),
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
        if most_rounds is not None:
            most = most_rounds(point.local_steps, point.edge_rounds)
        configs.append(of_pilot(config, point, steps, plain, size, most))
    return PilotPlan(points, configs, plain is not None)


def whole(name: str, value: object, least: int) -> int:
    """A whole number.

    Raises:
        ConfigError: it is not one, or too small.
    """
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
    found = sorted({whole(name, value, 1) for value in _list(name, values)})
    if not found:
        raise ConfigError(f"{name} has no values: give at least one.")
    return tuple(found)


def _edge_rounds(config: Config, values: object) -> tuple[int, ...]:
    if config.algorithm.topology != "star":
        return _numbers("edge_rounds", values, EDGE_ROUNDS)
    if values is not None:
        raise ConfigError(
            f'edge_rounds conflicts with algorithm "{config.named("algorithm")}", which is a star '
            'with one server: leave it out, or choose "hfedavg" or "hist".'
        )
    return (1,)


def _participants(values: object, clients: int) -> tuple[int, ...]:
    found = sorted({whole("clients", value, 1) for value in _list("clients", values)})
    if found and found[-1] > clients:
        raise ConfigError(
            f"clients is {found[-1]}, and the network has {clients}: give at most {clients}."
        )
    return tuple(found)


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
    found = _list("snr_db", values)
    if found and network is not None:
        raise ConfigError(
            "snr_db conflicts with network=..., whose gains are given: leave one out."
        )
    for value in found:
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise ConfigError(f"snr_db is {shown(value)}: give numbers in dB.")
    return tuple(float(value) for value in found)
