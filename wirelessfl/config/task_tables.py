"""Tables of tasks as given: ``[[task]]`` in TOML, or repeated flags ``--task``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown
from wirelessfl.data.files import dataset_title

TASK_SETTINGS = {
    "data": ["validation_fraction", "augment"],
    "network": ["step_seconds", "cycles_per_step", "cycles_per_flop"],
    "training": [
        *("local_steps", "local_epochs", "batch_size", "rounds", "clients_per_round", "weighting"),
    ],
    "evaluation": ["target", "metric", "monitor"],
    "run": ["executor", "chunk", "replay", "workers"],
}
"""Settings that a task's table may override, by section, besides choices and their settings."""
TASK_CHOICES = ("dataset", "split", "model", "algorithm", "loss")
"""Kinds of choices that a task's table may override."""
ENDLESS = 10**9
"""Value of ``rounds`` that means unlimited, for tasks that end at a time limit or a target."""


def parse_task(words: str) -> dict[str, Any]:
    """The table of ``--task mnist,model=mlp,target=0.93``.

    The first word is the data set. A later word without = is a further entry of the previous value.

    Raises:
        ConfigError: the words cannot be parsed.
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
            raise ConfigError(f"task is {words!r}: it sets {name} twice. Remove one.")
        table[name], last = value, name
    return table


def task_names(tables: Iterable[Mapping[str, Any]], default: str) -> list[str]:
    """Names of the tasks: the ``name`` of a table or its data set, numbered if already taken.

    Raises:
        ConfigError: two tables have the same ``name``, or a name is not a string.
    """
    names: list[str] = []
    for table in tables:
        key = "name" if "name" in table else "dataset"
        wanted = table.get(key, default)
        if not isinstance(wanted, str) or not wanted:
            raise ConfigError(
                f"{key} of a task is {shown(wanted)}: give a string. On the command line settings "
                "follow the data set as name=value: --task digits,lr=0.1."
            )
        if key == "name" and wanted in names:
            raise ConfigError(f"two tasks are called {wanted!r}: give them different names.")
        wanted = wanted if key == "name" else dataset_title(wanted)
        name, number = wanted, 2
        while name in names:
            name, number = f"{wanted}-{number}", number + 1
        names.append(name)
    return names
