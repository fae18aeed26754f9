"""What each of several tasks is trained with: the run's settings, and its own table's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from wirelessfl.algorithms import find_algorithm
from wirelessfl.config.kinds import KINDS, chosen_classes, owners_of
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.settings import Settings
from wirelessfl.config.task_tables import TASK_SETTINGS
from wirelessfl.errors import ConfigError
from wirelessfl.wording import suggestion

ALGORITHM = "algorithm"
"""Key of a task's table: the task's algorithm, where it is not the run's."""


def _homes(settings: Settings) -> dict[str, str]:
    """The section of each setting that a task may have."""
    homes = {key: section for section, keys in TASK_SETTINGS.items() for key in keys}
    homes |= dict.fromkeys(settings.choices.schedule.per_task, "schedule")
    return homes | dict.fromkeys((k for k in settings.algorithm if k != "name"), "algorithm")


def typed_table(table: Mapping[str, Any], name: str, task: Settings) -> dict[str, Any]:
    """A table with its name, and its values as they were read: equal settings, equal tables.

    Args:
        table: as given.
        name: of the task.
        task: what it is trained with.
    """
    homes, typed = _homes(task), {"name": name}
    for key in table:
        if key == ALGORITHM:
            typed[key] = task.algorithm["name"]
        elif key != "name":
            section = getattr(task, homes[key])
            typed[key] = section[key] if isinstance(section, Mapping) else getattr(section, key)
    return typed


def _fields_of(algorithm: str, task: str) -> set[str]:
    """The settings of a task's algorithm.

    Raises:
        ConfigError: it is unknown, or has cells; the message names the task.
    """
    try:
        found = find_algorithm(algorithm)
    except ConfigError as error:
        raise ConfigError(f"task {task!r}: {error}") from error
    if found.topology != "star":
        raise ConfigError(
            f'task {task!r}: algorithm "{algorithm}" has cells, and tasks have one server each. '
            "Choose an algorithm without cells."
        )
    return {entry.name for entry in fields(found)}


def _takes_several(tables: Mapping[str, Any], section: str, key: str) -> bool:
    """Whether a setting is a tuple, of which a flag without a comma gives one entry."""
    if section in SECTIONS:
        return "tuple" in str(SECTIONS[section].model_fields[key].annotation)
    choice = chosen_classes(tables)[section]
    return "tuple" in str(get_type_hints(choice)[key])


def with_table(settings: Settings, table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The tables of the run that trains this task alone.

    Raises:
        ConfigError: the table has a setting that is no task's own, or two costs of a step.
    """
    tables: dict[str, Any] = settings.model_dump(exclude={"task"})
    tables["network"] = settings.network.model_dump(exclude_unset=True)
    homes = _homes(settings)
    if ALGORITHM in table:  # with its own defaults: the run's settings are of another one
        tables["algorithm"] = {"name": table[ALGORITHM]}
        homes = {key: home for key, home in homes.items() if home != "algorithm"}
        homes |= dict.fromkeys(_fields_of(table[ALGORITHM], name) - set(homes), "algorithm")
    for key, value in table.items():
        if key in ("name", ALGORITHM):
            continue
        if key not in homes:
            whole = (*settings.schedule, *(settings.assignment or ()), *KINDS)
            if key in whole or any(key in section.model_fields for section in SECTIONS.values()):
                raise ConfigError(
                    f"task {name!r} has {key!r}, which is a setting of the whole run. Take it out "
                    "of the task."
                )
            found = owners_of(key) or suggestion(key, homes)
            raise ConfigError(f"unknown setting {key!r} of task {name!r}.{found}")
        section = homes[key]
        alone = isinstance(value, str) and _takes_several(tables, section, key)
        tables[section][key] = (value,) if alone else value
    step = tables["network"].get("step_seconds")
    if "cycles_per_step" in table and step is not None:
        raise ConfigError(
            f"task {name!r}: cycles_per_step={table['cycles_per_step']} conflicts with "
            f"step_seconds={step}: a step costs the one or the other. Leave one out."
        )
    return tables
