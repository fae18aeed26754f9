"""Nested tables of settings: from TOML, from flags, and where each flag belongs."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from wirelessfl.algorithms import Algorithm, find_algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.sections import SECTIONS
from wirelessfl.task_tables import parse_task
from wirelessfl.uplinks import Uplink, find_uplink
from wirelessfl.warm_starts import WarmStart, find_warm_start, warm_start_classes

WARM_START = "previous"
"""What sessions begin with, unless the settings say."""
NAMED = ("uplink", "task", "warm_start")
"""Flags that give a whole table, or its name."""


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"configuration {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration {path} is not TOML: {error}.") from error


def tables_from_flags(tables: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """``tables`` with the flat settings ``flags`` put into their sections.

    Raises:
        ConfigError: a flag that no section, algorithm or uplink has.
    """
    tables = {**tables, **{key: flags[key] for key in NAMED if key in flags}}
    merged = named_tables(tables)
    if flags.get("sessions") is not None:
        merged.setdefault("warm_start", {"name": WARM_START})
    if "local" in flags:
        merged["algorithm"]["local"] = flags["local"]
    uplink = merged["uplink"]["name"]
    warm_start = merged.get("warm_start")
    homes = flag_homes(
        class_of(merged["algorithm"]),
        find_uplink(uplink),
        find_warm_start(warm_start["name"]) if warm_start else None,
    )
    for flag, value in flags.items():
        if flag in NAMED:
            continue
        if flag not in homes:
            hint = _hint(flag, homes)
            start = f" with warm start {warm_start['name']!r}" if warm_start else ""
            raise ConfigError(
                f"algorithm {title_of(merged['algorithm'])} over uplink {uplink!r}{start} has no "
                f"setting {flag!r}.{hint}"
            )
        section, key = homes[flag]
        table = merged.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{section} is {table!r}: a table of settings is needed.")
        table[key] = value
    return merged


def _hint(flag: str, homes: Mapping[str, Any]) -> str:
    """What may have been meant by a flag that there is not."""
    starts = warm_start_classes().items()
    having = [name for name, cls in starts if flag in {entry.name for entry in fields(cls)}]
    if having:
        return f" It is one of warm_start {' and '.join(having)}: choose it with --warm-start."
    near = difflib.get_close_matches(flag, homes, n=1)
    return f" Do you mean {near[0]!r}?" if near else ""


def named_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``tables`` in which algorithm and uplink are tables with a name.

    Raises:
        ConfigError: one of them is no name and no table with a name.
    """
    copy = {key: dict(v) if isinstance(v, Mapping) else v for key, v in tables.items()}
    tasks = copy.get("task")
    if isinstance(tasks, dict) or tasks == []:
        what = "an empty list" if tasks == [] else "one table"
        raise ConfigError(f"task is {what}: begin each task with [[task]], in double brackets.")
    if isinstance(tasks, str | list | tuple):
        listed = [tasks] if isinstance(tasks, str) else tasks
        copy["task"] = [parse_task(own) if isinstance(own, str) else own for own in listed]
    if copy.get("uplink") is None:
        copy["uplink"] = "tdma"
    if copy.get("algorithm") is None:
        raise ConfigError('no algorithm: name one, e.g. [algorithm] name = "hist".')
    sessions = copy.get("sessions")
    if copy.get("warm_start") is None:
        copy.pop("warm_start", None)
        if isinstance(sessions, dict) and sessions.get("sessions") is not None:
            copy["warm_start"] = WARM_START
    for key in ("algorithm", "uplink", "warm_start"):
        if key not in copy:
            continue
        if isinstance(copy[key], str):
            copy[key] = {"name": copy[key]}
        if not isinstance(copy[key], dict) or not isinstance(copy[key].get("name"), str):
            raise ConfigError(f'{key} is {copy[key]!r}: give a name, e.g. [{key}] name = "...".')
    return copy


def flag_homes(
    algorithm: type[Algorithm], uplink: type[Uplink], warm_start: type[WarmStart] | None = None
) -> dict[str, tuple[str, str]]:
    """Where each flat name belongs: flag -> (section, key).

    A setting of an algorithm, uplink or warm start whose name another section has gets its owner's
    as prefix.
    """
    homes = {
        name: (section, name) for section, model in SECTIONS.items() for name in model.model_fields
    }
    owners: list[tuple[str, type[Any]]] = [("uplink", uplink), ("algorithm", algorithm)]
    if warm_start is not None:
        owners.append(("warm_start", warm_start))
    for section, owner in owners:
        for entry in fields(owner):
            flag = entry.name
            if flag in homes:
                flag = f"{owner.name.replace('-', '_')}_{flag}"
            homes[flag] = (section, entry.name)
    return homes


def class_of(table: Mapping[str, Any]) -> type[Algorithm]:
    """The algorithm that a table names, with what it runs in its cells."""
    local = table.get("local")
    if local is not None and not isinstance(local, str):
        raise ConfigError(f"local is {local!r}: give the name of an algorithm.")
    return find_algorithm(table["name"], local)


def title_of(table: Mapping[str, Any]) -> str:
    """What a table names, with what it runs in its cells."""
    local = f" with local {table['local']!r}" if "local" in table else ""
    return f"{table['name']!r}{local}"
