"""What each of several tasks is trained with: the run's settings, and those of its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from wirelessfl.algorithms import find_algorithm
from wirelessfl.config.kinds import KINDS, chosen_classes, owners_of
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.settings import Settings
from wirelessfl.config.task_tables import TASK_CHOICES, TASK_SETTINGS
from wirelessfl.errors import ConfigError
from wirelessfl.wording import suggestion

Place = tuple[str, str]
"""Table and key of a setting."""
OF_ALGORITHMS = (("run", "padding"), ("run", "client_states"))
"""Settings of the whole run that matter if the algorithm of any task uses them."""


def of_tasks(settings: Settings, place: Place) -> bool:
    """Whether each of several tasks may have a setting of its own."""
    section, key = place
    per_task = settings.choices.schedule.per_task
    if section == "schedule":
        return key in per_task
    return section in TASK_CHOICES or key in TASK_SETTINGS.get(section, ())


def by_tasks(settings: Settings, place: Place) -> bool:
    """Whether a setting has an effect if it has one on any of several tasks."""
    return of_tasks(settings, place) or place in OF_ALGORITHMS


def _homes(tables: Mapping[str, Any], per_task: tuple[str, ...]) -> dict[str, Place]:
    """Table and key of each setting that a task may have, with the choices in ``tables``."""
    homes = {key: (section, key) for section, keys in TASK_SETTINGS.items() for key in keys}
    homes |= {key: ("schedule", key) for key in per_task}
    classes = chosen_classes(tables)
    for kind in TASK_CHOICES:
        homes |= {kind: (kind, "name")}
        homes |= {entry.name: (kind, entry.name) for entry in fields(classes[kind])}
    return homes


def _value(settings: Settings, place: Place) -> Any:
    section = getattr(settings, place[0])
    return section[place[1]] if isinstance(section, Mapping) else getattr(section, place[1])


def typed_table(table: Mapping[str, Any], name: str, task: Settings) -> dict[str, Any]:
    """A table with its name, and its values as they were read: equal settings, equal tables.

    Args:
        table: as given.
        name: of the task.
        task: what it is trained with.
    """
    homes = _homes(dict(task), task.choices.schedule.per_task)
    return {"name": name} | {key: _value(task, homes[key]) for key in table if key != "name"}


def inherited(settings: Settings, table: Mapping[str, Any], task: Settings) -> dict[str, Any]:
    """What a task would have of the run instead of the settings in its table, by key.

    Args:
        settings: of the run.
        table: of the task; settings of its own choices have nothing to inherit.
        task: what it is trained with.
    """
    homes = _homes(dict(task), task.choices.schedule.per_task)
    anew = dict(_chosen(table, dict(settings)))
    found: dict[str, Any] = {}
    for key in table:
        section, field = homes.get(key, ("", ""))
        if section and section not in anew:
            values = getattr(settings, section)
            found[key] = dict(values).get(field)
    return found


def table_places(
    settings: Settings, tables: Mapping[str, Any], table: Mapping[str, Any]
) -> set[Place]:
    """Where the settings of a task's table stand in the tables of its run, see ``with_table``."""
    homes = _homes(tables, settings.choices.schedule.per_task)
    return {homes[key] for key in table if key != "name"}


def _check_algorithm(algorithm: str, task: str) -> None:
    """Refuse a task's algorithm that is unknown or has cells.

    Raises:
        ConfigError: it is; the message names the task.
    """
    try:
        found = find_algorithm(algorithm)
    except ConfigError as error:
        raise ConfigError(f"task {task!r}: {error}") from error
    if found.topology != "star":
        raise ConfigError(
            f'task {task!r}: algorithm "{algorithm}" has cells, and each task has one server. '
            "Choose an algorithm without cells."
        )


def _takes_several(tables: Mapping[str, Any], place: Place) -> bool:
    """Whether a setting is a tuple, of which a flag without a comma gives one entry."""
    section, key = place
    if section in SECTIONS:
        return "tuple" in str(SECTIONS[section].model_fields[key].annotation)
    if key == "name":
        return False
    return "tuple" in str(get_type_hints(chosen_classes(tables)[section])[key])


def _chosen(table: Mapping[str, Any], tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Tables of the choices that a task makes and that differ from the run's."""
    for kind in TASK_CHOICES:
        if kind in table and (kind == "algorithm" or tables[kind]["name"] != table[kind]):
            yield kind, {"name": table[kind]}


def with_table(settings: Settings, table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The tables of the run that trains this task alone.

    Raises:
        ConfigError: the table has a setting that a task cannot have, or two costs of a step.
    """
    tables: dict[str, Any] = settings.model_dump(exclude={"task": True, "given": {"model", "data"}})
    tables["network"] = settings.network.model_dump(exclude_unset=True)
    if "algorithm" in table:
        _check_algorithm(table["algorithm"], name)
    tables |= dict(_chosen(table, tables))
    try:
        homes = _homes(tables, settings.choices.schedule.per_task)
    except ConfigError as error:
        raise ConfigError(f"task {name!r}: {error}") from error
    for key, value in table.items():
        if key == "name" or key in TASK_CHOICES:
            continue
        if key not in homes:
            classes = chosen_classes(tables).values()
            whole = {entry.name for owner in classes for entry in fields(owner)} | set(KINDS)
            if key in whole or any(key in section.model_fields for section in SECTIONS.values()):
                raise ConfigError(
                    f"task {name!r} has {key!r}, which is a setting of the whole run. Remove it "
                    "from the task."
                )
            found = owners_of(key) or suggestion(key, homes)
            raise ConfigError(f"unknown setting {key!r} of task {name!r}.{found}")
        section, field = homes[key]
        alone = isinstance(value, str) and _takes_several(tables, homes[key])
        tables[section][field] = (value,) if alone else value
    step = tables["network"].get("step_seconds")
    if "cycles_per_step" in table and step is not None:
        raise ConfigError(
            f"task {name!r}: cycles_per_step={table['cycles_per_step']} conflicts with "
            f"step_seconds={step}: a step costs one or the other. Leave one out."
        )
    return tables
