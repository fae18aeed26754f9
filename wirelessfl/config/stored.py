"""Settings of stored runs by the names of their flags, without importing the code they name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import is_import_path, short
from wirelessfl.base.wording import shown
from wirelessfl.config.choices import DEFAULTS, KINDS, OPTIONAL
from wirelessfl.config.kinds import algorithm_settings, owners, prefix_of, section_homes
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.synonyms import with_new_names
from wirelessfl.data.files import dataset_title

ALGORITHM = ("algorithm", "local")


def plain(value: Any) -> Any:
    """A value as ``config.toml`` has it: without None, tuples as lists, paths as strings."""
    if isinstance(value, Mapping):
        return {key: plain(v) for key, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value


def of_today(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of a stored run, whatever version wrote them, with the names of today.

    Kinds that have no table if their default is chosen have none.
    """
    named = with_new_names(tables)
    kept = {
        name: table
        for name, table in named.items()
        if name not in OPTIONAL or table != {"name": DEFAULTS[name]}
    }
    if isinstance(kept.get("tasks"), Mapping):
        kept["tasks"] = {name: of_today(task) for name, task in kept["tasks"].items()}
    return kept


def check_stored(tables: Mapping[str, Any], file: Path) -> None:
    """Check that tables can be those of a stored run, whatever version of the package wrote them.

    Args:
        tables: the tables of its ``config.toml``.
        file: the file, for the message.

    Raises:
        ConfigError: a table or a setting has another type, or a number is not finite.
    """
    for where, table in tables.items():
        tasks = table if where == "task" and isinstance(table, list) else [table]
        for one in tasks:
            if not isinstance(one, Mapping) or not isinstance(one.get("name", ""), str):
                raise ConfigError(f"{file}: {where} is {shown(one)}: it is no table of settings.")
            _check_values(one, file)


def _check_values(table: Mapping[str, Any], file: Path) -> None:
    """Check that the settings of sections in a table are numbers if their fields are."""
    for key, value in table.items():
        kind = _hints().get(key)
        kinds = set(get_args(kind) or (kind,)) - {type(None)}
        number = type(value) is int or (type(value) is float and float in kinds)
        if not _is_plain(value) or (kinds and kinds <= {int, float} and not number):
            raise ConfigError(f"{file}: {key} is {shown(value)}, which cannot be its value.")


@cache
def _hints() -> dict[str, Any]:
    """Types of the settings of sections, by key."""
    return {key: hint for s in SECTIONS.values() for key, hint in get_type_hints(s).items()}


def _is_plain(value: Any) -> bool:
    """Whether a value of TOML has only finite numbers that fit into 64 bits."""
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) < 1 << 63


def settings_by_flag(tables: Mapping[str, Any], task: str | None = None) -> dict[str, Any]:
    """The settings in the tables of a ``config.toml``, by flag name.

    Nothing is imported. A setting of a user's class whose name is also that of another setting has
    the class's name as prefix, as its flag has.

    Args:
        tables: the tables; they hold the settings with an effect.
        task: a task with a table of its own, whose settings replace those of the run.

    Returns:
        Settings with an effect, as TOML has them. Names of given objects stand for the settings
        that they replace.
    """
    tables = of_today(plain(tables))
    settings: dict[str, Any] = {}
    homes = section_homes()
    for section in SECTIONS:
        table = tables.get(section)
        settings |= dict(table) if isinstance(table, Mapping) else {}
    taken = set(homes)
    for kind in (*KINDS, "algorithm"):
        table = tables.get(kind)
        if not isinstance(table, Mapping) or "name" not in table:
            continue
        name = str(table["name"])
        settings[kind] = name
        for key in _settings_of(kind, table):
            flag = prefix_of(kind) + key
            flag = flag if flag not in taken else f"{short(name).replace('-', '_')}_{flag}"
            taken.add(flag)
            if key in table:
                settings[flag] = table[key]
    settings |= _given(tables)
    for table in tables.get("task", ()):
        if isinstance(table, Mapping) and table.get("name") == task:
            settings |= {key: value for key, value in table.items() if key != "name"}
    settings.pop("task", None)
    return settings


def _given(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The names of given objects, as the settings that they replace."""
    marks = tables.get("given")
    if not isinstance(marks, Mapping):
        return {}
    flags = {"model": "model", "data": "dataset", "loss": "loss", "augment": "augment"}
    objects = {flag: marks[name] for name, flag in flags.items() if marks.get(name) is not None}
    network = marks.get("network")
    return objects | (dict(network) if isinstance(network, Mapping) else {})


def _settings_of(kind: str, table: Mapping[str, Any]) -> list[str]:
    """Names of the settings of a choice; those in its table if its class is not known."""
    names = [table["name"], *([table["local"]] if "local" in table else [])]
    listed = [key for key in table if key != "name"]
    if any(not isinstance(name, str) or ":" in name for name in names):  # an import path
        return listed
    try:
        if kind == "algorithm":
            keys = algorithm_settings(table)
        else:
            keys = [entry.name for entry in fields(KINDS[kind].find(table["name"]))]
    except ConfigError:  # of another version of the package
        return listed
    return keys + [key for key in listed if key not in keys]


def is_setting(name: str) -> bool:
    """Whether a flag of this name exists, of any choice."""
    return (
        name in (*KINDS, *ALGORITHM)
        or name in section_homes()
        or any(having for _, having in owners(name))
    )


def dataset_of(settings: Mapping[str, Any]) -> str:
    """The title of the data set in settings by flag name; of a path only the last part."""
    name = str(settings.get("dataset", ""))
    if is_import_path(name):
        return short(name)
    return dataset_title(name) if Path(name).is_absolute() else name
