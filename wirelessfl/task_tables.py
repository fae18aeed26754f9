"""Several tasks in one configuration: ``[[task]]`` tables, or the flag ``--task`` repeated.

A task takes the settings of the run, and what its table says instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from wirelessfl.algorithms import Algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.sections import FOR_TASKS, SECTIONS
from wirelessfl.simulation.delays import PUBLISHED_STEP_SECONDS
from wirelessfl.uplinks import Uplink

if TYPE_CHECKING:
    from wirelessfl.config import Config

OWN = {
    "data": [name for name in SECTIONS["data"].model_fields if name != "data_dir"],
    "model": list(SECTIONS["model"].model_fields),
    "network": ["step_seconds", "cycles_per_step"],
    "training": ["local_steps", "batch_size", "rounds", "clients_per_round", "weighting"],
    "evaluation": ["target"],
    "run": ["executor", "chunk", "replay", "workers"],
}
"""What a task may have of its own, by section, beside the settings of its algorithm."""
SHARED = ("option", "spread_updates", "period", "floor", "first")
"""Settings of an algorithm that say what its server does with all tasks."""


def parse_task(words: str) -> dict[str, Any]:
    """The table of ``--task mnist,model=mlp,target=0.93``.

    The first word is the data set; a word without = goes on with the list before it.

    Raises:
        ConfigError: it cannot be read.
    """
    table: dict[str, Any] = {}
    last = ""
    for place, word in enumerate(words.split(",")):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals and place == 0:
            name, value = "dataset", name
        elif not equals:
            before = table[last]
            table[last] = (*before, name) if isinstance(before, tuple) else (before, name)
            continue
        name = name.replace("-", "_")
        if not name or not value:
            raise ConfigError(
                f"task is {words!r}: give DATASET,setting=value,..., such as "
                "mnist,model=mlp,target=0.93."
            )
        if name in table:
            raise ConfigError(f"task is {words!r}, which gives {name} twice.")
        table[name], last = value, name
    return table


def task_names(tables: Iterable[Mapping[str, Any]], default: str) -> list[str]:
    """What each task is called: its ``name``, or its data set, numbered where that is taken.

    Raises:
        ConfigError: two have the same name.
    """
    names: list[str] = []
    for table in tables:
        wanted = table.get("name") or table.get("dataset") or default
        if not isinstance(wanted, str):
            raise ConfigError(f"a task's name is {wanted!r}: give a text.")
        if table.get("name") and wanted in names:
            raise ConfigError(f"two tasks are called {wanted!r}: give them different names.")
        name, number = wanted, 2
        while name in names:
            name, number = f"{wanted}-{number}", number + 1
        names.append(name)
    return names


def with_table(config: Config, table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The tables of the run that trains this task alone.

    Raises:
        ConfigError: the table has a setting that is no task's own.
    """
    tables: dict[str, Any] = config.model_dump(exclude={"task"})
    algorithm = [key for key in config.algorithm if key != "name" and key not in SHARED]
    homes = {key: section for section, keys in OWN.items() for key in keys}
    homes |= dict.fromkeys(algorithm, "algorithm")
    for key, value in table.items():
        if key == "name":
            continue
        if key not in homes:
            near = difflib.get_close_matches(key, homes, n=1)
            hint = f" Do you mean {near[0]!r}?" if near else ""
            whole = any(key in section.model_fields for section in SECTIONS.values())
            kind = "it is the whole run's" if whole or key in SHARED else "there is no such setting"
            raise ConfigError(f"task {name!r} has {key!r}: {kind}.{hint}")
        section = homes[key]
        many = section in SECTIONS and "tuple" in str(
            SECTIONS[section].model_fields[key].annotation
        )
        tables[section][key] = (value,) if many and isinstance(value, str) else value
    return tables


def check_tasks(config: Config, algorithm: Algorithm, uplink: Uplink) -> None:
    """Refuse tasks, and settings of tasks, that the algorithm or uplink does not go with.

    Raises:
        ConfigError: there are such; the message names the settings.
    """
    name = config.algorithm["name"]
    if algorithm.timing == "rounds":
        if config.task:
            raise ConfigError(
                f'algorithm "{name}" trains one model, and there are {len(config.task)} task '
                'tables. Choose "fedast", "sync-st" or another one for tasks, or leave them out.'
            )
        for section, keys in FOR_TASKS.items():
            settings, model = getattr(config, section), SECTIONS[section]
            for key in keys:
                if getattr(settings, key) != model.model_fields[key].default:
                    raise ConfigError(
                        f'{key} is {getattr(settings, key)}, and algorithm "{name}" has '
                        'synchronous rounds of one model. Leave it out, or choose "fedast".'
                    )
        return
    if algorithm.most_tasks is not None and len(config.task) > algorithm.most_tasks:
        raise ConfigError(
            f'algorithm "{name}" trains {algorithm.most_tasks} task, and there are '
            f'{len(config.task)}. Choose "fedast" or "fedast-nobuffer".'
        )
    uplink_name = config.uplink["name"]
    if uplink.gives == "sum":
        raise ConfigError(
            f'algorithm "{name}" takes updates one by one, and uplink "{uplink_name}" needs '
            'simultaneous senders. Choose uplink "tdma", "ofdma" or "fixed".'
        )
    if config.network.delays != "shifted-exponential" and not uplink.shareable:
        raise ConfigError(
            f'algorithm "{name}" lets clients upload at any time, and uplink "{uplink_name}" does '
            "not say how they share the band then (shared_seconds_per_bit). Choose uplink "
            '"tdma", "ofdma" or "fixed", or delays "shifted-exponential".'
        )
    if algorithm.client_state:
        raise ConfigError(
            f'algorithm "{name}" keeps {", ".join(algorithm.client_state)} at its clients, and '
            "requests that wait in a client's queue would find it changed. Choose another one."
        )
    if config.network.busy_clients is not None and algorithm.timing != "buffered":
        raise ConfigError(
            f'busy_clients is {config.network.busy_clients}, and algorithm "{name}" has rounds. '
            "Leave it out: availability says who takes part."
        )


def check_together(tasks: Mapping[str, Config]) -> None:
    """Refuse tasks that do not go together with each other, or with the durations.

    Raises:
        ConfigError: there are such; the message names the task and the setting.
    """
    for name, own in tasks.items():
        if (
            own.network.delays == "shifted-exponential"
            and own.network.step_seconds is None
            and own.data.dataset not in PUBLISHED_STEP_SECONDS
        ):
            raise ConfigError(
                f"task {name!r}: data set {own.data.dataset!r} has no published step time. Give "
                "step_seconds, beta of a normal client."
            )
    shares = {name: own.training.clients_per_round for name, own in tasks.items()}
    first = next(iter(tasks.values()))
    if first.build_algorithm().timing == "simultaneous":
        clients = first.network.clients
        available = round(first.network.availability * clients)
        wanted = sum(share or 0 for share in shares.values())
        if wanted + sum(share is None for share in shares.values()) > available:
            raise ConfigError(
                f"the tasks want {wanted} clients a round (clients_per_round of each), and "
                f"{available} of {clients} are available. Lower them, or raise availability."
            )
