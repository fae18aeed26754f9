"""Nested tables of settings: from TOML, from flags, and where each flag belongs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from wirelessfl.config.kinds import (
    KINDS,
    chosen_classes,
    flag_homes,
    owners_of,
    section_homes,
    title_of,
)
from wirelessfl.config.presets import preset_of
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.task_tables import parse_task
from wirelessfl.errors import ConfigError
from wirelessfl.schedules import SCHEDULES
from wirelessfl.wording import nearest, shown, suggestion

UPLINK = "tdma"
"""How updates cross the air, unless the settings say."""
WARM_START = "previous"
"""What sessions begin with, unless the settings say."""
NAMED = (*KINDS, "task")
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
        ConfigError: a flag that neither a section nor what is chosen has.
    """
    tables = {**tables, **{key: flags[key] for key in NAMED if key in flags}}
    merged = named_tables(tables)
    if flags.get("sessions") is not None:
        merged.setdefault("warm_start", {"name": WARM_START})
    if flags.get("local") is not None:
        merged["algorithm"]["local"] = flags["local"]
    homes = flag_homes(chosen_classes(merged))
    for flag, value in flags.items():
        if flag in NAMED:
            continue
        if flag not in homes:
            raise ConfigError(
                f"unknown setting {flag!r} of {_chosen(merged)}.{hint(flag, homes, homes)}"
            )
        section, key = homes[flag]
        table = merged.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{section} is {shown(table)}: a table of settings is needed.")
        table[key] = value
    set_by_flags = {homes[flag][0] for flag in flags if flag not in NAMED}
    for kind in ("schedule", "assignment"):  # filled in again, with what goes with the algorithm
        if tables.get(kind) is None and kind not in set_by_flags:
            merged.pop(kind, None)
    return merged


def _chosen(tables: Mapping[str, Any]) -> str:
    """What named tables choose, in words."""
    text = f"algorithm {title_of(tables['algorithm'])} over uplink {tables['uplink']['name']!r}"
    text += f" under schedule {tables['schedule']['name']!r}"
    for kind in ("assignment", "warm_start"):
        if tables.get(kind) is not None:
            text += f" with {kind.replace('_', ' ')} {tables[kind]['name']!r}"
    return text


def hint(key: str, known: Iterable[str], homes: Mapping[str, tuple[str, str]] | None = None) -> str:
    """Where a setting that does not exist belongs, or what may have been meant by it.

    Args:
        key: what it is called, as in a table.
        known: the settings that there are.
        homes: section and key of every setting of the run; None: those of sections alone.
    """
    homes = section_homes() if homes is None else homes
    if key in homes and key not in known:
        return f" It belongs to [{homes[key][0]}]."
    found = owners_of(key) or suggestion(key, known)
    if found:
        return found
    near = nearest(key, homes, 0.75)  # what belongs elsewhere must be nearer to be meant
    return "" if near is None else f" Do you mean {near!r}, in [{homes[near][0]}]?"


def unknown_setting(tables: Mapping[str, Any], section: str, key: str, value: object) -> str:
    """What to say of a setting, or a table, that does not exist.

    Args:
        tables: all of them, those of choices with a name.
        section: where it stands; "" outside of all.
        key: what it is called.
        value: what was given.
    """
    try:
        homes = flag_homes(chosen_classes(tables))
    except ConfigError:  # said once this is mended
        homes = section_homes()
    if section:
        # [given] is no choice.
        known = SECTIONS[section].model_fields if section in SECTIONS else ()
        return f"unknown setting {key!r} in [{section}].{hint(key, known, homes)}"
    if isinstance(value, Mapping):
        return f"unknown table [{key}].{suggestion(key, (*SECTIONS, 'algorithm', *NAMED))}"
    return f"unknown setting {key!r} outside a table.{hint(key, (), homes)}"


def named_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``tables`` in which each choice is a table with a name, schedule included.

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
    if copy.get("algorithm") is None:
        raise ConfigError('no algorithm: name one, e.g. [algorithm] name = "hist".')
    copy["algorithm"] = _named("algorithm", copy["algorithm"])
    copy["uplink"] = _named("uplink", UPLINK if copy.get("uplink") is None else copy["uplink"])
    _fill_schedule(copy)
    sessions = copy.get("sessions")
    if copy.get("warm_start") is None:
        copy.pop("warm_start", None)
        if isinstance(sessions, dict) and sessions.get("sessions") is not None:
            copy["warm_start"] = WARM_START
    if "warm_start" in copy:
        copy["warm_start"] = _named("warm_start", copy["warm_start"])
    return copy


def _fill_schedule(tables: dict[str, Any]) -> None:
    """Put in the schedule and assignment that go with the algorithm, where none are given.

    Raises:
        ConfigError: a schedule is unknown.
    """
    preset = preset_of(tables["algorithm"]["name"])
    schedule = tables.get("schedule")
    if schedule is None or (isinstance(schedule, dict) and "name" not in schedule):
        schedule = {"name": preset.schedule, **(schedule or {})}
    schedule = _named("schedule", schedule)
    if schedule["name"] == preset.schedule:
        schedule = {"name": preset.schedule, **preset.settings, **schedule}
    tables["schedule"] = schedule
    assignment = tables.get("assignment")
    if isinstance(assignment, dict) and "name" not in assignment:
        assignment = {"name": preset.assignment, **assignment}
    if assignment is not None:
        tables["assignment"] = _named("assignment", assignment)
    elif SCHEDULES.find(schedule["name"]).work == "task rounds":
        tables["assignment"] = {"name": preset.assignment}
    else:
        tables.pop("assignment", None)


def _named(key: str, table: Any) -> dict[str, Any]:
    """``table``, or the table with a name alone that ``table`` is.

    Raises:
        ConfigError: it is neither a name nor a table with one.
    """
    if isinstance(table, str):
        return {"name": table}
    if isinstance(table, dict) and isinstance(table.get("name"), str):
        return table
    found = table.get("name") if isinstance(table, dict) else table
    path = "module:Class"
    if isinstance(found, type):
        path = f"{found.__module__}:{found.__qualname__}"
    raise ConfigError(
        f'{key} is {shown(table)}: give a name, e.g. [{key}] name = "...", or an '
        f'import path, "{path}".'
    )
