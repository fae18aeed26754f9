"""Reads nested tables of settings from TOML and flags, and finds the table of each flag."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from channels.notes import Notes
from wirelessfl.algorithms import LOCAL, HFedAvg, find_algorithm
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import TEXT_BYTES, read_stored, why
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.wording import nearest, shown, suggestion
from wirelessfl.config.choices import CHOSEN, DEFAULTS, KINDS, OPTIONAL, parse_task, preset_of
from wirelessfl.config.kinds import (
    Frame,
    algorithm_settings,
    chosen_classes,
    flag_homes,
    listed,
    owners,
    owners_of,
    section_homes,
    title_of,
    words,
)
from wirelessfl.config.named import (
    Trust,
    absolute_name,
    check_resolved,
    check_text,
    check_trust,
    with_absolute_paths,
)
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.synonyms import RENAMED, synonym, with_new_names

NAMED = ("algorithm", *KINDS, "task")
"""Flags that set a whole table, or its name."""
QUOTED = '"{}"'
"""Format of names in messages that may be copied to a file."""
OF_FRAME = (("sessions", "sessions"), ("network", "channel"))
"""Settings of sections that decide which kinds of choices a run has."""
OnIdle = Literal["refuse", "drop"]
"""What happens to a setting without effect."""


def read_toml(path: Path, trust: Trust, *, stored: bool = False) -> dict[str, Any]:
    """The tables of a TOML file.

    Args:
        path: the file.
        trust: whether it may name code to import, see ``named.Trust``.
        stored: whether it is that of a run's folder, which must not be a link.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or names code without being trusted.
    """
    if not isinstance(path, str | PathLike):
        raise ConfigError(f"configuration is {shown(path)}: give the path of a TOML file.")
    try:
        path = expanded(path)
        content = read_stored(path, TEXT_BYTES) if stored else path.read_bytes()
        # utf-8-sig removes the byte order mark that some editors write.
        tables = tomllib.loads(re.sub(r"\r\n?", "\n", content.decode("utf-8-sig")))
    except OSError as error:
        if stored:
            raise ConfigError(f"{path} cannot be read: {why(error)}. Restore it.") from error
        flags = "" if path.suffix else f", or wirelessfl.Config.from_flags({str(path)!r})"
        raise ConfigError(
            f"configuration {path}: {error.strerror}. Give the path of a TOML file{flags}."
        ) from error
    except (ValueError, RecursionError) as error:  # not TOML, not text, or too large
        raise ConfigError(f"configuration {path} is not TOML: {why(error)}. Correct it.") from error
    new = with_new_names(tables)
    check_trust(new, path, trust)
    return tables if stored else new  # hashes of stored settings are those of the file


def tables_from_flags(
    tables: Mapping[str, Any], flags: Mapping[str, Any], on_idle: OnIdle = "refuse"
) -> tuple[dict[str, Any], set[tuple[str, str]]]:
    """A copy of ``tables`` with the flat settings ``flags``, and table and key of each flag.

    A flag that names another choice drops the settings of the previous one.

    Args:
        tables: settings by table.
        flags: settings by flat name; None for those that are not given.
        on_idle: whether flags that belong to no section and no chosen table are refused or dropped.

    Raises:
        ConfigError: a flag is refused, or an entry of ``tables`` is not a table.
    """
    old = [flag for flag in flags if flag in RENAMED and flags[flag] is not None]
    Notes()(*(f"--{flag} is now --{RENAMED[flag]}.".replace("_", "-") for flag in old))
    tables, flags = with_new_names(tables), with_new_names(flags)
    tables = {**tables, **{key: _renamed(tables, key, flags[key]) for key in NAMED if key in flags}}
    if "local" in flags and tables.get("algorithm") is not None:
        algorithm = _named("algorithm", tables["algorithm"])
        if on_idle == "refuse" or _has_cells(algorithm["name"]):
            tables["algorithm"] = _with_local(algorithm, flags["local"])
    for section, key in OF_FRAME:
        if flags.get(key) is not None and isinstance(tables.get(section, {}), Mapping):
            tables[section] = {**tables.get(section, {}), key: flags[key]}
    named = named_tables(tables)
    homes = flag_homes(chosen_classes(named))
    merged = {key: dict(v) if isinstance(v, Mapping) else v for key, v in tables.items()}
    places = set()
    for flag, value in flags.items():
        if flag in NAMED:
            places.add((flag, "name"))
            continue
        if flag not in homes:
            if on_idle == "drop":
                continue
            elsewhere = _of_another(named, flag, value)
            if elsewhere and value is None:  # not given
                continue
            raise ConfigError(
                elsewhere
                or f"unknown setting {flag!r} of {_chosen(named)}.{hint(flag, homes, homes)}"
            )
        section, key = homes[flag]
        table = merged.get(section)
        if table is not None and not isinstance(table, str | Mapping):
            raise ConfigError(f"{section} is {shown(table)}: give a table of settings.")
        table = {"name": table} if isinstance(table, str) else dict(table or {})
        table.pop(key, None)
        merged[section] = table if value is None else table | {key: value}
        places.add((section, key))
    return merged, places


def _renamed(tables: Mapping[str, Any], kind: str, name: Any) -> Any:
    """The given table of a choice if it already has this name; otherwise only the name."""
    table = tables.get(kind)
    if not isinstance(table, Mapping) or kind == "task":
        return name
    return (
        table
        if absolute_name(kind, table.get("name", DEFAULTS.get(kind))) == absolute_name(kind, name)
        else name
    )


def _with_local(table: Mapping[str, Any], local: Any) -> dict[str, Any]:
    """The table of an algorithm with another one inside its cells, without settings it lacks."""
    changed = {key: value for key, value in table.items() if key != "local"}
    changed |= {} if local is None else {"local": local}
    lost = {*algorithm_settings(table)} - {*algorithm_settings(changed)}
    return {key: value for key, value in changed.items() if key not in lost}


def _of_another(tables: Mapping[str, Any], flag: str, value: object) -> str:
    """The message for a flag of a choice that is not selected; empty if no choice has the flag."""
    excluded, required, present = "", [], []
    lacking = Frame.of(tables).lacking
    for kind, having in owners(flag):
        taken, title = tables.get(kind), words(kind)
        if taken is None and kind in OPTIONAL:
            taken = {"name": DEFAULTS[kind]}
        reason = lacking.get(kind)
        if reason is not None:
            excluded = excluded or f"is a setting of {title} and {reason}"
        elif taken is not None:
            if kind == "algorithm" and _has_cells(taken["name"]):
                local = [name for name in having if not _has_cells(name)]
                if local == having:  # a setting of algorithms inside cells
                    kind = title = "local"
                    taken = {"name": taken.get("local", LOCAL)}
            required.append(f"{title} {listed(having, 'or', QUOTED)}")
            present.append(f'{kind} is "{taken["name"]}"')
    several = len(required) > 1
    remedy = "one of these" if several else "".join(required)
    reason = f"is a setting of {', and of '.join(required)}{';' if several else ', and'} "
    reason += f"{' and '.join(present)}: choose {remedy}"
    reason = reason if required else excluded
    stated = shown(value)
    if isinstance(value, tuple) and all(isinstance(part, str) for part in value):
        stated = ",".join(value)  # as the command line has it
    return f"{flag}={stated} {reason}, or leave {flag} out." if reason else ""


def _has_cells(name: str) -> bool:
    """Whether an algorithm has cells, and so the setting ``local``."""
    return issubclass(find_algorithm(name), HFedAvg)


def _chosen(tables: Mapping[str, Any]) -> str:
    """Describe algorithm, uplink and schedule for a message."""
    text = f"algorithm {title_of(tables['algorithm'])} over uplink {tables['uplink']['name']!r}"
    text += f" under schedule {tables['schedule']['name']!r}"
    return text


def hint(key: str, names: Iterable[str], homes: Mapping[str, tuple[str, str]] | None = None) -> str:
    """Say where an unknown setting belongs, or suggest a similar one.

    Args:
        key: the setting's name in a table.
        names: names of the settings in that table.
        homes: table and key of every setting of the run; None for settings of sections only.
    """
    homes = section_homes() if homes is None else homes
    if key in RENAMED:
        return f" It is the old name of {RENAMED[key]!r}: give one of them."
    if key in KINDS:
        return f' It is a table: [{key}] name = "...".'
    if key in homes and key not in names:
        return f" It belongs to [{homes[key][0]}]."
    owners = owners_of(key)
    meant = None if owners else synonym(key, {*homes, *names, *KINDS})
    if meant is not None:
        elsewhere = meant.setting in homes and meant.setting not in names
        return meant.sentence("", f", in [{homes[meant.setting][0]}]" if elsewhere else "")
    owners = owners or suggestion(key, names)
    if owners:
        return owners
    near = nearest(key, homes)
    return "" if near is None else f" Do you mean {near!r}, in [{homes[near][0]}]?"


def settings_in(tables: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Every setting in ``tables`` that has a value, by table and key."""
    values: dict[tuple[str, str], Any] = {}
    for section, table in tables.items():
        if isinstance(table, str) and section in CHOSEN:
            values[section, "name"] = table
        elif isinstance(table, Mapping) and section != "given":
            values |= {(section, key): v for key, v in table.items() if v is not None}
    return values


def unknown_setting(tables: Mapping[str, Any], section: str, key: str, value: object) -> str:
    """The message for an unknown setting or table.

    Args:
        tables: all tables; those of choices have a name.
        section: the table that has the setting; "" outside a table.
        key: name of the setting or table.
        value: the given value.
    """
    homes: Mapping[str, tuple[str, str]]
    try:
        homes = flag_homes(chosen_classes(tables))
    except ConfigError:  # an unknown name is reported later
        homes = section_homes()
    if section:
        # The table [given] is neither a section nor a choice.
        names = [key for key, (home, _) in section_homes().items() if home == section]
        return f"unknown setting {key!r} in [{section}].{hint(key, names, homes)}"
    if isinstance(value, Mapping):
        return f"unknown table [{key}].{suggestion(key, (*SECTIONS, *NAMED))}"
    return f"unknown setting {key!r} outside a table.{hint(key, (), homes)}"


def checked_tables(tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``tables`` unchanged after checking that they are a mapping with string keys.

    Raises:
        ConfigError: they are not, or OmegaConf has not resolved them.
    """
    if type(tables).__module__.partition(".")[0] == "omegaconf":
        raise ConfigError(
            f"settings are a {type(tables).__name__}: give "
            "Config.of(OmegaConf.to_container(cfg, resolve=True))."
        )
    if isinstance(tables, Mapping) and all(isinstance(key, str) for key in tables):
        check_resolved(tables)
        return tables
    raise ConfigError(
        f"settings are {shown(tables)}: give tables by name, such as "
        '{"algorithm": {"name": "hist"}}.'
    )


def named_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``tables`` in which each choice of the run has a table with a name.

    Raises:
        ConfigError: a choice is neither a name nor a table with a name, or a task is not a table.
    """
    tables = with_new_names(checked_tables(tables))
    copy = {
        key: dict(v) if isinstance(v, Mapping) else v
        for key, v in tables.items()
        if v is not None or key not in (*SECTIONS, *NAMED)  # an empty table of YAML
    }
    tasks = copy.get("task")
    if isinstance(tasks, dict) or (isinstance(tasks, list) and not tasks):
        what = "one table" if isinstance(tasks, dict) else "an empty list"
        raise ConfigError(f"task is {what}: begin each task with [[task]], in double brackets.")
    if tasks is not None and not isinstance(tasks, str | list | tuple):
        raise ConfigError(f"task is {shown(tasks)}: give a list of tables of settings.")
    if isinstance(tasks, str | list | tuple):
        listed = [tasks] if isinstance(tasks, str) else tasks
        for place, task in enumerate(listed):
            if not isinstance(task, str | Mapping):
                raise ConfigError(f"task[{place}] is {shown(task)}: give a table of settings.")
        copy["task"] = tuple(
            with_absolute_paths(parse_task(task) if isinstance(task, str) else task)
            for task in listed
        )
    if copy.get("algorithm") is None:
        raise ConfigError('no algorithm: name one, e.g. [algorithm] name = "hist".')
    copy["algorithm"] = _named("algorithm", copy["algorithm"])
    check_text(copy)
    preset = preset_of(copy["algorithm"]["name"])
    defaults = {**DEFAULTS, "schedule": preset.schedule, "assignment": preset.assignment}
    for kind in KINDS:
        if isinstance(copy.get(kind), dict) and not copy[kind]:  # an empty table equals no table
            copy[kind] = None
        if copy.get(kind) is not None:
            copy[kind] = _named(kind, copy[kind], defaults[kind])
    for kind in ("uplink", "schedule"):
        copy[kind] = copy.get(kind) or {"name": defaults[kind]}
    if copy["schedule"]["name"] == preset.schedule:
        copy["schedule"] = {"name": preset.schedule, **preset.settings, **copy["schedule"]}
    lacking = Frame.of(copy).lacking
    for kind in KINDS:
        usual = kind in OPTIONAL and copy.get(kind) == {"name": defaults[kind]}
        if copy.get(kind) is not None and not (usual and kind not in lacking):
            continue
        copy.pop(kind, None)
        if kind not in lacking and kind not in OPTIONAL:
            copy[kind] = {"name": defaults[kind]}
    return copy


def _named(key: str, table: Any, default: str | None = None) -> dict[str, Any]:
    """A table with a name, from a given table or name."""
    if isinstance(table, str):
        return {"name": absolute_name(key, table)}
    if isinstance(table, dict) and "name" not in table and default is not None:
        return {"name": default, **table}
    if isinstance(table, dict) and isinstance(table.get("name"), str):
        return with_absolute_paths(table, key)
    name = table.get("name") if isinstance(table, dict) else table
    path = "module:Class"
    if isinstance(name, type):
        path = f"{name.__module__}:{name.__qualname__}"
    raise ConfigError(
        f'{key} is {shown(table)}: give a name, e.g. [{key}] name = "...", or an '
        f'import path, "{path}".'
    )
