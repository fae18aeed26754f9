"""Settings of each task, and checks of what several tasks share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from wirelessfl.algorithms import HFedAvg, find_algorithm
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import suggestion
from wirelessfl.config.choices import KINDS, TASK_CHOICES, TASK_SETTINGS
from wirelessfl.config.kinds import chosen_classes, owners_of, section_homes
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.settings import Place, Settings
from wirelessfl.engine.tasks.clients import check_gathering

INHERITED = "dataset"
"""The kind of choices of which another one in a task has the run's settings."""
OF_ALGORITHMS = (("run", "padding"), ("run", "client_states"))
"""Settings of the whole run that have an effect if the algorithm of any task uses them."""


def of_tasks(settings: Settings, place: Place) -> bool:
    """Whether tasks may override a setting."""
    section, key = place
    per_task = settings.schedule.per_task
    if section == "schedule":
        return key in per_task
    return section in TASK_CHOICES or key in TASK_SETTINGS.get(section, ())


def by_tasks(settings: Settings, place: Place) -> bool:
    """Whether a setting has an effect as soon as it affects any task."""
    return of_tasks(settings, place) or place in OF_ALGORITHMS


def _homes(tables: Mapping[str, Any], per_task: tuple[str, ...]) -> dict[str, Place]:
    """Table and key of each setting that a task may override, given the choices in ``tables``."""
    homes = {key: (section, key) for section, keys in TASK_SETTINGS.items() for key in keys}
    homes |= {key: ("schedule", key) for key in per_task}
    classes = chosen_classes(tables)
    for kind in TASK_CHOICES:
        homes |= {kind: (kind, "name")}
        homes |= {entry.name: (kind, entry.name) for entry in fields(classes[kind])}
    return homes


def typed_table(table: Mapping[str, Any], name: str, task: Settings) -> dict[str, Any]:
    """A task's table with its name and parsed values, so that equal settings compare equal.

    Args:
        table: the table as given.
        name: name of the task.
        task: settings of the task.
    """
    homes = _homes(task.all_tables(), task.schedule.per_task)
    places = {key: homes[key] for key in table if key != "name"}
    return {"name": name} | {key: task.table(home)[entry] for key, (home, entry) in places.items()}


def inherited(settings: Settings, table: Mapping[str, Any], task: Settings) -> dict[str, Any]:
    """The run's values of the settings that a task's table overrides, by key.

    Args:
        settings: settings of the run.
        table: the task's table; settings of choices that differ from the run's are skipped.
        task: settings of the task.
    """
    homes = _homes(task.all_tables(), task.schedule.per_task)
    anew = dict(_chosen(table, settings.all_tables()))
    values: dict[str, Any] = {}
    for key in table:
        section, field = homes.get(key, ("", ""))
        if section and (section not in anew or section == INHERITED):
            values[key] = settings.table(section).get(field)
    return values


def _check_algorithm(algorithm: str, task: str) -> None:
    try:
        choice = find_algorithm(algorithm)
    except ConfigError as error:
        raise ConfigError(f"task {task!r}: {error}") from error
    if issubclass(choice, HFedAvg):
        raise ConfigError(
            f'task {task!r}: algorithm "{algorithm}" has cells, and each task has one server. '
            "Choose an algorithm without cells."
        )


def _takes_several(tables: Mapping[str, Any], place: Place) -> bool:
    """Whether a setting is a tuple; a string without a comma is then its only entry."""
    section, key = place
    if section in SECTIONS:
        return "tuple" in str(get_type_hints(SECTIONS[section])[key])
    if key == "name":
        return False
    return "tuple" in str(get_type_hints(chosen_classes(tables)[section])[key])


def _chosen(table: Mapping[str, Any], tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Kind and new table of each choice in which a task differs from the run."""
    for kind in TASK_CHOICES:
        if kind not in table or (kind != "algorithm" and tables[kind]["name"] == table[kind]):
            continue
        kept = {} if kind != INHERITED else dict(tables[kind])
        names = {entry.name for entry in fields(KINDS[kind].find(table[kind]))} if kept else set()
        yield kind, {key: kept[key] for key in kept if key in names} | {"name": table[kind]}


def with_table(
    settings: Settings, table: Mapping[str, Any], name: str
) -> tuple[dict[str, Any], set[Place]]:
    """The tables of a run that trains only this task, and the settings that the task overrides.

    Raises:
        ConfigError: the table has a setting that a task cannot override, or sets
            ``cycles_per_step`` although ``step_seconds`` is set.
    """
    tables: dict[str, Any] = {k: dict(v) for k, v in settings.all_tables().items() if k != "task"}
    tables["network"] = settings.given_settings("network")
    tables["given"] |= {"model": None, "data": None}
    if "algorithm" in table:
        _check_algorithm(table["algorithm"], name)
    try:
        tables |= dict(_chosen(table, tables))
        homes = _homes(tables, settings.schedule.per_task)
    except ConfigError as error:
        raise ConfigError(f"task {name!r}: {error}") from error
    for key, value in table.items():
        if key == "name" or key in TASK_CHOICES:
            continue
        if key not in homes:
            classes = chosen_classes(tables).values()
            whole = {entry.name for owner in classes for entry in fields(owner)} | set(KINDS)
            if key in whole or key in section_homes():
                raise ConfigError(
                    f"task {name!r} has {key!r}, which is a setting of the whole run. Remove it "
                    "from the task."
                )
            merged = (
                owners_of(key) or suggestion(key, homes) or f" Choose {', '.join(sorted(homes))}."
            )
            raise ConfigError(f"unknown setting {key!r} of task {name!r}.{merged}")
        section, field = homes[key]
        alone = isinstance(value, str) and _takes_several(tables, homes[key])
        tables[section][field] = (value,) if alone else value
    step = tables["network"].get("step_seconds")
    if "cycles_per_step" in table and step is not None:
        raise ConfigError(
            f"task {name!r}: cycles_per_step={table['cycles_per_step']} conflicts with "
            f"step_seconds={step}: both set the cost of a step. Leave one out."
        )
    return tables, {homes[key] for key in table if key != "name"}


def check_tasks(tasks: Mapping[str, Settings]) -> None:
    """Raise if tasks conflict with each other, or with the latency model.

    Args:
        tasks: settings of each task, by name.

    Raises:
        ConfigError: they conflict; the message names the setting.
    """
    for task in tasks.values():
        if task.delays is not None:
            task.delays.check(task.dataset.name, task.network.step_seconds)
    first = next(iter(tasks.values()))
    if not first.clients_known:
        return
    if first.schedule.work == "task rounds":
        _check_shares(tasks, first)
    elif first.uplink.gives == "sum":
        _check_gathering(tasks, first)


def _check_gathering(tasks: Mapping[str, Settings], first: Settings) -> None:
    """Refuse buffers that may never fill if the updates of a merge are sent simultaneously."""
    schedules = [task.schedule for task in tasks.values()]
    try:
        check_gathering(
            [schedule.merged or 1 for schedule in schedules],
            [schedule.active or 1 for schedule in schedules],
            first.network.clients,
            first.network.busy_clients,
        )
    except ConfigError as error:
        raise ConfigError(
            f'uplink "{first.named("uplink")}" under schedule "{first.named("schedule")}": {error}'
        ) from None


def _check_shares(tasks: Mapping[str, Settings], first: Settings) -> None:
    """Refuse tasks that need more clients per round than are available."""
    shares = [task.training.clients_per_round for task in tasks.values()]
    clients = first.network.clients
    available = round(first.network.availability * clients)
    total = sum(share or 0 for share in shares)
    if total + sum(share is None for share in shares) > available:
        raise ConfigError(
            f"the tasks need {total} clients per round (the sum of clients_per_round), plus one "
            f"for each task without it, but {available} of {clients} clients are available. "
            "Lower clients_per_round, or raise availability."
        )


def check_end(settings: Settings) -> None:
    """Refuse decaying step sizes in a run with an unlimited number of rounds.

    Raises:
        ConfigError: step sizes decay.
    """
    if not settings.lr_schedule.constant:
        raise ConfigError(
            f'lr_schedule="{settings.named("lr_schedule")}" decays step sizes over rounds, '
            f'whose number is unlimited under schedule "{settings.named("schedule")}" with '
            'max_seconds or target: give rounds, or choose lr_schedule "constant".'
        )
