"""Tables of tasks as they are given: ``[[task]]``, or the flag ``--task`` repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wirelessfl.config.sections import SECTIONS
from wirelessfl.errors import ConfigError
from wirelessfl.wording import shown

TASK_SETTINGS = {
    "data": [name for name in SECTIONS["data"].model_fields if name != "data_dir"],
    "network": ["step_seconds", "cycles_per_step", "cycles_per_flop"],
    "training": ["local_steps", "batch_size", "rounds", "clients_per_round", "weighting"],
    "evaluation": ["target"],
    "run": ["executor", "chunk", "replay", "workers"],
}
"""What a task's table may set, by section, beside its choices and their settings."""
TASK_CHOICES = ("split", "model", "algorithm")
"""Choices that a task's table may make."""
ENDLESS = 10**9
"""Merges of a task that something else ends."""


def parse_task(words: str) -> dict[str, Any]:
    """The table of ``--task mnist,model=mlp,target=0.93``.

    The first word is the data set; a word without = extends the list before it.

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
