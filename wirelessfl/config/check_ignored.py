"""Checks of settings that would change nothing under the schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from wirelessfl.config.sections import OF_REQUESTS, SECTIONS
from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError
from wirelessfl.registry import Choice


def check_given_schedule(given: Settings) -> None:
    """Refuse settings of requests to clients where cells are the requests.

    Args:
        given: settings as the user gave them.

    Raises:
        ConfigError: there are such; the message names the setting.
    """
    if given.regime != "cells":
        return
    name, schedule = given.algorithm["name"], given.schedule["name"]
    for key in given.choices.schedule.of_clients:
        if key in given.schedule:
            raise ConfigError(
                f'{key} is {given.schedule[key]!r}, and algorithm "{name}" has cells, each of '
                f'which is one request of schedule "{schedule}". Leave it out: cells says how many '
                "there are."
            )


def check_ignored(settings: Settings) -> None:
    """Refuse settings that change nothing under the schedule.

    Raises:
        ConfigError: one is set; the message names it.
    """
    requests = settings.choices.schedule.work == "requests"
    if not requests:
        _check_stale(settings)
    if settings.regime == "tasks":
        _check_uplink(settings)
        return
    if not requests:
        _check_row_times(settings)
    _check_requests(settings)


def _under(settings: Settings) -> str:
    """The schedule, as messages name it."""
    return f'under schedule "{settings.schedule["name"]}"'


def _changed(choice: Choice, keys: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Those of the settings ``keys`` of a choice that differ from their defaults."""
    defaults = {entry.name: entry.default for entry in fields(choice)}
    values = vars(choice)
    return ((key, values[key]) for key in keys if values[key] != defaults[key])


def _check_stale(settings: Settings) -> None:
    """Refuse settings of stale updates where none is stale.

    Raises:
        ConfigError: one is set.
    """
    algorithm = settings.choices.algorithm
    for key, value in _changed(algorithm, algorithm.of_staleness):
        raise ConfigError(
            f'{key} is {value!r}, and no update of algorithm "{settings.algorithm["name"]}" is '
            f'stale {_under(settings)}. Leave it out, or choose schedule "buffered".'
        )


def _check_uplink(settings: Settings) -> None:
    """Refuse settings of uploads that are awaited together, where each counts when it is done.

    Raises:
        ConfigError: one is set.
    """
    uplink = settings.choices.uplink
    for key, value in _changed(uplink, uplink.of_rounds):
        raise ConfigError(
            f"{key} is {value!r}, and {_under(settings)} each upload over uplink "
            f'"{settings.uplink["name"]}" ends by itself. Leave it out, or choose schedule '
            '"rounds".'
        )


def _check_row_times(settings: Settings) -> None:
    """Refuse rows at fixed simulated times, which rounds of one model do not write.

    Raises:
        ConfigError: they are wanted.
    """
    if settings.evaluation.eval_seconds is not None:
        raise ConfigError(
            f"eval_seconds is {settings.evaluation.eval_seconds}, and {_under(settings)} rows are "
            'written after whole rounds. Give eval_every, or choose schedule "buffered".'
        )


def _check_requests(settings: Settings) -> None:
    """Refuse settings of requests to clients and of rounds of tasks.

    Raises:
        ConfigError: one is set.
    """
    network, defaults = settings.network, SECTIONS["network"].model_fields
    star = settings.choices.algorithm.topology == "star"
    other = "" if star else " and an algorithm without cells"
    for key in OF_REQUESTS:
        value = getattr(network, key)
        if value != defaults[key].default:
            simultaneous = "" if key == "busy_clients" else ' or "simultaneous"'
            raise ConfigError(
                f'{key} is {value!r}, and algorithm "{settings.algorithm["name"]}" '
                f"{_under(settings)} has neither requests to clients nor rounds of tasks. Leave it "
                f'out, or choose schedule "buffered"{simultaneous}{other}.'
            )
