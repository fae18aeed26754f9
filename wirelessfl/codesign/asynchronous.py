"""Designs with asynchronous cells: the numbers of cells per merge, and the settings of pilots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wirelessfl.codesign.goals import Curve, Goal
from wirelessfl.codesign.pilots.pilot_settings import ERROR_FREE
from wirelessfl.codesign.spaces import Space, numbers
from wirelessfl.codesign.ways import Way
from wirelessfl.config import Config
from wirelessfl.config.tables import given_places
from wirelessfl.errors import ConfigError
from wirelessfl.wording import shown

PARTS = (4, 2, 1)
"""By default, a merge has a quarter of the cells, half of them, or all."""
TURNS = {"name": "tdma", "order": "ready"}
"""Uplink of pilots for designs over time division only."""


def is_asynchronous(config: Config) -> bool:
    """Whether the cells of a run are merged asynchronously."""
    return config.regime.merges_cells


def check_arguments(config: Config, clients: Any, buffers: Any, goal: Goal) -> None:
    """Refuse arguments of ``wirelessfl.design`` without effect under the schedule.

    Raises:
        ConfigError: the message names the argument.
    """
    if buffers is not None and not is_asynchronous(config):
        raise ConfigError(
            f"buffers={shown(buffers)} needs asynchronous cells: choose schedule buffered, or "
            "leave buffers out."
        )
    if clients is not None and is_asynchronous(config):
        raise ConfigError(
            f"clients={shown(clients)} conflicts with schedule buffered, in which all clients of a "
            "cell train: leave it out, or choose schedule rounds."
        )
    if goal.quantile is not None and is_asynchronous(config):
        raise ConfigError(
            f"statistic={goal.quantile:g} conflicts with schedule buffered, whose simulated merges "
            "are means: leave it out, or choose schedule rounds."
        )


def given_buffer(config: Config) -> int | None:
    """Cells per merge that the settings state; None if they do not."""
    stated = ("schedule", "buffer") in given_places(config.given_tables())
    return int(config.tables["schedule"]["buffer"]) if stated else None


def with_buffer(config: Config, buffer: int) -> Config:
    """The settings with another number of cells per merge."""
    tables = config.given_tables()
    schedule = {**tables["schedule"], "buffer": buffer}
    return Config.of(tables | {"schedule": schedule}, loose=given_places(tables))


def merging_space(space: Space, buffers: Any, own: int | None, cells: int) -> Space:
    """The space of ``wirelessfl.design`` with numbers of cells per merge.

    Args:
        space: the other numbers.
        buffers: given ones; None for the default ones.
        own: that of the settings, which is always considered unless others are given.
        cells: N, number of cells.

    Raises:
        ConfigError: a number is wrong.
    """
    if buffers is None:
        several = {-(-cells // part) for part in PARTS}
        several |= set() if own is None else {own}
    else:
        several = numbers("buffers", buffers, "1,2,4")
        if max(several) > cells:
            raise ConfigError(
                f"buffers contains {max(several)}: the network has {cells} cells to merge."
            )
    return replace(space, buffers=tuple(sorted(several)))


def buffers_of(
    named: Mapping[str, Config], buffers: tuple[int, ...], cells: int
) -> dict[str, tuple[int, ...]]:
    """The numbers of cells per merge with which each algorithm works.

    Args:
        named: the settings of each algorithm.
        buffers: numbers to choose from.
        cells: N, number of cells.

    Raises:
        ConfigError: an algorithm works with none of them.
    """
    found = {}
    for name, config in named.items():
        kept, reason = [], ""
        for buffer in buffers:
            try:
                config.used_assigner.check_merged_cells(buffer, cells)
                kept.append(buffer)
            except ConfigError as error:
                reason = str(error)
        if not kept:
            raise ConfigError(reason)
        found[name] = tuple(kept)
    return found


def check_curve(curve: Curve, name: str, buffers: tuple[int, ...]) -> None:
    """Refuse a curve that says nothing about the number of cells per merge.

    Args:
        curve: the learning curve.
        name: its algorithm.
        buffers: numbers to choose from.

    Raises:
        ConfigError: see above.
    """
    if len(buffers) > 1 and "clients" not in getattr(curve, "varies", ("clients",)):
        raise ConfigError(
            f"the curve of {name} has pilots with one number of cells per merge: give that as "
            "buffers=... (--buffer), or fit pilots that differ in it, wirelessfl.pilot("
            "buffers=[...])."
        )


def reference(config: Config, buffers: tuple[int, ...], wanted: int) -> Config:
    """The settings with the number of cells per merge with which others are compared.

    Args:
        config: the settings.
        buffers: numbers to choose from.
        wanted: the number that should be compared with; the nearest one is taken.
    """
    return with_buffer(config, min(buffers, key=lambda b: (abs(b - wanted), b)))


def merging_pilots(config: Config, ways: Sequence[Way], air: Mapping[str, Any]) -> Config:
    """The settings of pilots, whose order of merges is that of their uplink.

    Args:
        config: settings of one algorithm.
        ways: uplinks of the design.
        air: ``[uplink]`` of a design over the air.
    """
    names = {way.name for way in ways}
    uplink: Mapping[str, Any] = ERROR_FREE if "ofdma" in names else TURNS
    if any(way.noise for way in ways):  # pilots without errors have an uplink of their own
        uplink = air
    return Config.of(config.given_tables() | {"uplink": dict(uplink)})
