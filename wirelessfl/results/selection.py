"""Settings in which stored runs differ, and selection and groups by settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wirelessfl.config.sections import PLACES
from wirelessfl.config.stored import is_setting, plain
from wirelessfl.errors import ConfigError
from wirelessfl.import_paths import short
from wirelessfl.results import archive
from wirelessfl.runs.result import RunResult
from wirelessfl.wording import suggestion

MACHINE = (*archive.MACHINE, "padding", "client_states")
"""Settings that say where and how a run is computed, not what."""
PLAIN = ("algorithm", "model", "dataset")
"""Settings whose values need no name in a label."""
FIRST = ("algorithm", "local", "dataset", "model", "split", "uplink", "schedule")
"""Settings that come first among those that differ."""


def matches(value: Any, wanted: Any) -> bool:
    """Whether a setting has a wanted value, or one of those in a list or set."""
    if plain(wanted) == value:
        return True
    some = wanted if isinstance(wanted, list | set | frozenset | range) else ()
    return any(plain(one) == value for one in some)


def check_names(names: Iterable[str], every: Iterable[Mapping[str, Any]]) -> None:
    """Refuse names that are neither settings of runs nor known flags.

    Args:
        names: the names.
        every: the settings of all runs, by flag name.

    Raises:
        ConfigError: a name is unknown.
    """
    known = list(dict.fromkeys(key for settings in every for key in settings))
    for name in names:
        if name not in known and not is_setting(name):
            raise ConfigError(
                f"unknown setting {name!r}.{suggestion(name, known)} Name settings as their flags, "
                "such as algorithm, cells or lr."
            )


def check_types(settings: Mapping[str, Any], every: Sequence[Mapping[str, Any]]) -> None:
    """Refuse strings for settings that are numbers: they would select nothing.

    Args:
        settings: the wanted values, by flag name.
        every: the settings of all runs, by flag name.

    Raises:
        ConfigError: a value is a string, but those of the runs are numbers.
    """
    for name, wanted in settings.items():
        values = [each[name] for each in every if each.get(name) is not None]
        numbers = values and all(isinstance(value, int | float) for value in values)
        if isinstance(wanted, str) and numbers:
            raise ConfigError(
                f"{name} is {wanted!r}, a string, but runs have numbers such as {values[0]}: give "
                "a number."
            )


def varied(every: Sequence[Mapping[str, Any]]) -> list[str]:
    """Settings in which runs differ, except seeds, paths, and how runs are computed.

    Args:
        every: the settings of each run, by flag name.
    """
    ignored = {"seed", *PLACES, *MACHINE}
    names = dict.fromkeys([*FIRST, *(key for settings in every for key in settings)])
    return [
        name
        for name in names
        if name not in ignored
        and any(settings.get(name) != every[0].get(name) for settings in every)
    ]


def telling(every: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first settings that tell all groups of equal settings apart; others follow from them."""
    found: list[str] = []
    groups: list[Any] = [None] * len(every)
    for name in varied(every):
        finer = [(group, repr(s.get(name))) for group, s in zip(groups, every, strict=True)]
        if len(set(finer)) > len(set(groups)):
            found.append(name)
            groups = finer
    return found


def value_text(value: Any) -> str:
    """A value of a setting in a table; a dash for a setting without effect."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(one) for one in value)
    return short(value) if isinstance(value, str) else str(value)


def order_key(value: Any) -> tuple[int, float, str]:
    """A key that orders values of a setting: none, numbers by size, others by their text."""
    if isinstance(value, int | float):
        return 1, float(value), ""
    return (0, 0.0, "") if value is None else (2, 0.0, str(value))


def label_text(names: Sequence[str], values: Sequence[Any]) -> str:
    """The label of a group, e.g. "hist, cells 2"."""
    words = [
        value_text(value) if name in PLAIN else f"{name.replace('_', ' ')} {value_text(value)}"
        for name, value in zip(names, values, strict=True)
        if value is not None
    ]
    return ", ".join(words)


def seeds_of(runs: Iterable[RunResult]) -> list[int]:
    """The seeds of runs, in order."""
    return [int(run.settings["seed"]) for run in runs]
