"""Nested tables of settings: from TOML, from flags, and where each flag belongs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from wirelessfl.algorithms import Algorithm, algorithm_classes, find_algorithm
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.task_tables import parse_task
from wirelessfl.errors import ConfigError
from wirelessfl.uplinks import Uplink, find_uplink, uplink_classes
from wirelessfl.warm_starts import WarmStart, find_warm_start, warm_start_classes
from wirelessfl.wording import nearest, shown, suggestion

WARM_START = "previous"
"""What sessions begin with, unless the settings say."""
MAX_OWNERS = 3
"""Choices that a message names as those that have a setting; of more it gives the number."""
NAMED = ("uplink", "task", "warm_start")
"""Flags that give a whole table, or its name."""


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        ConfigError: it cannot be read.
    """
    if not isinstance(path, str | PathLike):
        raise ConfigError(f"configuration is {shown(path)}: give the path of a TOML file.")
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
    if flags.get("local") is not None:
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
            start = f" with warm start {warm_start['name']!r}" if warm_start else ""
            raise ConfigError(
                f"unknown setting {flag!r} of algorithm {title_of(merged['algorithm'])} over "
                f"uplink {uplink!r}{start}.{hint(flag, homes, homes)}"
            )
        section, key = homes[flag]
        table = merged.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{section} is {shown(table)}: a table of settings is needed.")
        table[key] = value
    return merged


def hint(key: str, known: Iterable[str], homes: Mapping[str, tuple[str, str]] | None = None) -> str:
    """Where a setting that does not exist belongs, or what may have been meant by it.

    Args:
        key: what it is called, as in a table.
        known: the settings that there are.
        homes: section and key of every setting of the run; None: those of sections alone.
    """
    homes = _section_homes() if homes is None else homes
    if key in homes and key not in known:
        return f" It belongs to [{homes[key][0]}]."
    found = owners_of(key) or suggestion(key, known)
    if found:
        return found
    near = nearest(key, homes, 0.75)  # what belongs elsewhere must be nearer to be meant
    return "" if near is None else f" Do you mean {near!r}, in [{homes[near][0]}]?"


def owners_of(key: str) -> str:
    """Which algorithms, uplinks or warm starts have a setting; empty where none has."""
    owners: dict[str, Mapping[str, type[Any]]] = {
        "algorithm": algorithm_classes(),
        "uplink": uplink_classes(),
        "warm_start": warm_start_classes(),
    }
    for kind, classes in owners.items():
        having = [name for name, cls in classes.items() if key in {f.name for f in fields(cls)}]
        if having:
            shown_names = " and ".join(having)
            if len(having) > MAX_OWNERS:
                rest = len(having) - MAX_OWNERS
                shown_names = f"{', '.join(having[:MAX_OWNERS])} and {rest} more"
            return f" It is a setting of {kind} {shown_names}."
    return ""


def unknown_setting(tables: Mapping[str, Any], section: str, key: str, value: object) -> str:
    """What to say of a setting, or a table, that does not exist.

    Args:
        tables: all of them, algorithm and uplink with a name.
        section: where it stands; "" outside of all.
        key: what it is called.
        value: what was given.
    """
    try:
        warm_start = tables.get("warm_start")
        homes = flag_homes(
            class_of(tables["algorithm"]),
            find_uplink(tables["uplink"]["name"]),
            find_warm_start(warm_start["name"]) if warm_start else None,
        )
    except ConfigError:  # said once this is mended
        homes = _section_homes()
    if section:
        # [given] is no choice.
        known = SECTIONS[section].model_fields if section in SECTIONS else ()
        return f"unknown setting {key!r} in [{section}].{hint(key, known, homes)}"
    if isinstance(value, Mapping):
        return f"unknown table [{key}].{suggestion(key, (*SECTIONS, 'algorithm', *NAMED))}"
    return f"unknown setting {key!r} outside a table.{hint(key, (), homes)}"


def named_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``tables`` in which algorithm and uplink are tables with a name.

    Raises:
        ConfigError: one of them is no name and no table with a name.
    """
    if not isinstance(tables, Mapping) or not all(isinstance(key, str) for key in tables):
        raise ConfigError(
            f"settings are {shown(tables)}: give tables by name, such as "
            '{"algorithm": {"name": "hist"}}.'
        )
    copy = {key: dict(v) if isinstance(v, Mapping) else v for key, v in tables.items()}
    tasks = copy.get("task")
    if isinstance(tasks, dict) or tasks == []:
        what = "an empty list" if tasks == [] else "one table"
        raise ConfigError(f"task is {what}: begin each task with [[task]], in double brackets.")
    if tasks is not None and not isinstance(tasks, str | list | tuple):
        raise ConfigError(f"task is {shown(tasks)}: a list of tables of settings is needed.")
    if isinstance(tasks, str | list | tuple):
        listed = [tasks] if isinstance(tasks, str) else tasks
        for place, task in enumerate(listed):
            if not isinstance(task, str | Mapping):
                raise ConfigError(f"task[{place}] is {shown(task)}: a table of settings is needed.")
        copy["task"] = tuple(parse_task(task) if isinstance(task, str) else task for task in listed)
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
            found = copy[key].get("name") if isinstance(copy[key], dict) else copy[key]
            path = "module:Class"
            if isinstance(found, type):
                path = f"{found.__module__}:{found.__qualname__}"
            raise ConfigError(
                f'{key} is {shown(copy[key])}: give a name, e.g. [{key}] name = "...", or an '
                f'import path, "{path}".'
            )
    return copy


def flag_homes(
    algorithm: type[Algorithm], uplink: type[Uplink], warm_start: type[WarmStart] | None = None
) -> dict[str, tuple[str, str]]:
    """Where each flat name belongs: flag -> (section, key).

    A setting of an algorithm, uplink or warm start whose name another section has gets its owner's
    as prefix.
    """
    homes = _section_homes()
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


def _section_homes() -> dict[str, tuple[str, str]]:
    return {
        name: (section, name) for section, model in SECTIONS.items() for name in model.model_fields
    }


def class_of(table: Mapping[str, Any]) -> type[Algorithm]:
    """The algorithm that a table names, with what it runs in its cells."""
    local = table.get("local")
    if local is not None and not isinstance(local, str):
        raise ConfigError(f"local is {shown(local)}: give the name of an algorithm.")
    return find_algorithm(table["name"], local)


def title_of(table: Mapping[str, Any]) -> str:
    """What a table names, with what it runs in its cells."""
    local = f" with local {table['local']!r}" if "local" in table else ""
    return f"{table['name']!r}{local}"
