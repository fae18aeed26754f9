"""Several tasks in one configuration: ``[[task]]`` tables, or the flag ``--task`` repeated.

A task takes the settings of the run, and what its table says instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from wirelessfl.algorithms import Algorithm
from wirelessfl.config.sections import FOR_TASKS, SECTIONS
from wirelessfl.errors import ConfigError
from wirelessfl.tasks.delays import PUBLISHED_STEP_SECONDS
from wirelessfl.uplinks import Uplink
from wirelessfl.wording import shown, suggestion

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
ENDLESS = 10**9
"""Merges of a task that something else ends."""


def parse_task(words: str) -> dict[str, Any]:
    """The table of ``--task mnist,model=mlp,target=0.93``.

    The first word is the data set; a word without = goes on with the list before it.

    Raises:
        ConfigError: it cannot be read.
    """
    table: dict[str, Any] = {}
    last = ""
    wrong = ConfigError(
        f"task is {words!r}: give DATASET,setting=value,..., such as mnist,model=mlp,target=0.93."
    )
    for place, word in enumerate(words.split(",")):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not name:
            raise wrong
        if not equals and place == 0:
            name, value = "dataset", name
        elif not equals:
            before = table[last]
            table[last] = (*before, name) if isinstance(before, tuple) else (before, name)
            continue
        name = name.replace("-", "_")
        if not value:
            raise wrong
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
        key = "name" if "name" in table else "dataset"
        wanted = table.get(key, default)
        if not isinstance(wanted, str) or not wanted:
            raise ConfigError(f"{key} of a task is {shown(wanted)}: give text.")
        if key == "name" and wanted in names:
            raise ConfigError(f"two tasks are called {wanted!r}: give them different names.")
        name, number = wanted, 2
        while name in names:
            name, number = f"{wanted}-{number}", number + 1
        names.append(name)
    return names


def _homes(config: Config) -> dict[str, str]:
    """The section of each setting that a task may have."""
    homes = {key: section for section, keys in OWN.items() for key in keys}
    shared = config.build_algorithm().timing.shared
    own = [key for key in config.algorithm if key != "name" and key not in shared]
    return homes | dict.fromkeys(own, "algorithm")


def typed_table(table: Mapping[str, Any], name: str, own: Config) -> dict[str, Any]:
    """A table with its name, and its values as they were read: equal settings, equal tables.

    Args:
        table: as given.
        name: of the task.
        own: what the task is trained with.
    """
    homes, typed = _homes(own), {"name": name}
    for key in table:
        if key != "name":
            section = getattr(own, homes[key])
            typed[key] = section[key] if isinstance(section, Mapping) else getattr(section, key)
    return typed


def with_table(config: Config, table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The tables of the run that trains this task alone.

    Raises:
        ConfigError: the table has a setting that is no task's own, or two costs of a step.
    """
    tables: dict[str, Any] = config.model_dump(exclude={"task"})
    tables["network"] = config.network.model_dump(exclude_unset=True)
    homes = _homes(config)
    for key, value in table.items():
        if key == "name":
            continue
        if key not in homes:
            if key in config.algorithm or any(
                key in section.model_fields for section in SECTIONS.values()
            ):
                raise ConfigError(
                    f"task {name!r} has {key!r}, which is a setting of the whole run. Take it out "
                    "of the task."
                )
            raise ConfigError(f"unknown setting {key!r} of task {name!r}.{suggestion(key, homes)}")
        section = homes[key]
        many = section in SECTIONS and "tuple" in str(
            SECTIONS[section].model_fields[key].annotation
        )
        tables[section][key] = (value,) if many and isinstance(value, str) else value
    step = tables["network"].get("step_seconds")
    if "cycles_per_step" in table and step is not None:
        raise ConfigError(
            f"task {name!r}: cycles_per_step={table['cycles_per_step']} conflicts with "
            f"step_seconds={step}: a step costs the one or the other. Leave one out."
        )
    return tables


def check_tasks(config: Config, algorithm: Algorithm, uplink: Uplink) -> None:
    """Refuse tasks, and settings of tasks, that the algorithm or uplink does not go with.

    Raises:
        ConfigError: there are such; the message names the settings.
    """
    name, timing = config.algorithm["name"], algorithm.timing
    if timing.rounds:
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
    if timing.max_tasks is not None and len(config.task) > timing.max_tasks:
        raise ConfigError(
            f'algorithm "{name}" trains {timing.max_tasks} task, and there are '
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
    busy, clients = config.network.busy_clients, config.network.clients
    if busy is not None and config.clients_known and busy > clients:
        raise ConfigError(f"busy_clients is {busy}, and there are {clients} clients: lower it.")
    if timing.buffering is not None:
        _check_buffered(config, algorithm)
    elif busy is not None:
        raise ConfigError(
            f'busy_clients is {busy}, and algorithm "{name}" has rounds. '
            "Leave it out: availability says who takes part."
        )


def _check_buffered(config: Config, algorithm: Algorithm) -> None:
    """Refuse settings of rounds, and weights where there is no mean.

    Raises:
        ConfigError: there are such.
    """
    name, training = config.algorithm["name"], config.training
    if training.clients_per_round is not None:
        raise ConfigError(
            f'clients_per_round is {training.clients_per_round}, and algorithm "{name}" has no '
            "rounds. Leave it out: requests says how many clients work on a task."
        )
    if training.weighting == "samples" and not algorithm.uses_mean:
        raise ConfigError(
            f'weighting is "samples", and algorithm "{name}" does not merge by a mean. Choose '
            'weighting "uniform".'
        )


def check_together(tasks: Mapping[str, Config]) -> None:
    """Refuse tasks that do not go together with each other, or with the durations.

    Raises:
        ConfigError: there are such; the message names the setting.
    """
    for own in tasks.values():
        if (
            own.network.delays == "shifted-exponential"
            and own.network.step_seconds is None
            and own.data.dataset not in PUBLISHED_STEP_SECONDS
        ):
            raise ConfigError(
                f"data set {own.data.dataset!r} has no published step time. Give step_seconds, "
                "beta of a normal client."
            )
    shares = {name: own.training.clients_per_round for name, own in tasks.items()}
    first = next(iter(tasks.values()))
    if first.build_algorithm().timing.common_rounds is not None and first.clients_known:
        clients = first.network.clients
        available = round(first.network.availability * clients)
        wanted = sum(share or 0 for share in shares.values())
        if wanted + sum(share is None for share in shares.values()) > available:
            raise ConfigError(
                f"the tasks want {wanted} clients a round (clients_per_round of each), and at "
                f"least one each without it, and {available} of {clients} are available. Lower "
                "them, or raise availability."
            )
