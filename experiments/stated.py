"""Complete settings of the studies' runs, independent of the package's defaults.

A study states few settings; ``defaults.toml`` states all others. A default of the package that
changes later therefore changes no study.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from wirelessfl.config import Config
from wirelessfl.config.kinds import KINDS
from wirelessfl.results.archive import SUFFIX, Tables, effective

DEFAULTS = Path(__file__).with_name("defaults.toml")
LATER = ("failures", "layout", "loss", "path_loss", "select")
"""Kinds of choices that are newer than the first names of runs, which do not have them."""
Place = tuple[str, str]


@cache
def _defaults() -> Tables:
    return tomllib.loads(DEFAULTS.read_text(encoding="utf-8"))


def default(tables: Tables, place: Place) -> Any:
    """The default in ``defaults.toml`` for the choices in ``tables``; None if it has none.

    Args:
        tables: settings by table, with the name of each choice.
        place: table and key of a setting.
    """
    section, key = place
    defaults = _defaults()
    if section in ("schedule", "assignment"):  # the name of an algorithm may imply a schedule
        implied = defaults["implied"].get(tables["algorithm"]["name"], {})
        if f"{section}.{key}" in implied:
            return implied[f"{section}.{key}"]
    found = defaults.get(section, {})
    model = tables.get("model", {}).get("name")
    if place == ("data", "tokenizer") and model in defaults["tokenizer"]:
        return defaults["tokenizer"][model]
    if place == ("network", "coherence"):
        found, key = defaults["coherence"], tables["uplink"]["name"]
    elif section in (*KINDS, "algorithm") and key != "name":
        found = found.get(tables[section]["name"], {})
    return found.get(key)


def stated(config: Config, flags: Collection[str]) -> Config:
    """A copy whose settings, except those given by ``flags``, are as in ``defaults.toml``."""
    changed = _changed(config, flags)
    by_task = {
        table["name"]: _changed(config.tasks[table["name"]], {*flags, *table})
        for table in config.task
    }
    if not changed and not any(by_task.values()):
        return config
    merged = config.given_tables()
    for (section, key), value in changed.items():
        merged.setdefault(section, {})[key] = value
    if config.task:
        merged["task"] = [
            table | {flag_of(place): v for place, v in by_task[table["name"]].items()}
            for table in config.task
        ]
    return Config.of(merged)


def _changed(config: Config, flags: Collection[str]) -> dict[Place, Any]:
    """Values in ``defaults.toml`` that differ from defaults of the package."""
    tables = effective(config)
    return {
        place: wanted
        for place, value in _entries(tables)
        if not _given(place, flags) and (wanted := default(tables, place)) not in (None, value)
    }


def unstated(config: Config, flags: Collection[str]) -> list[str]:
    """Settings with an effect that are neither in ``flags`` nor in ``defaults.toml``."""
    tables = effective(config)
    return [
        f"[{section}] {key} = {value!r}"
        for (section, key), value in _entries(tables)
        if not _given((section, key), flags) and default(tables, (section, key)) is None
    ]


def flag_of(place: Place) -> str:
    """Flat name of a setting."""
    section, key = place
    return section if key == "name" else key


def _given(place: Place, flags: Collection[str]) -> bool:
    section, key = place
    return flag_of(place) in flags or f"{section}_{key}" in flags


def _entries(tables: Tables) -> Iterator[tuple[Place, Any]]:
    for section, table in tables.items():
        if section != "tasks":
            yield from (((section, key), value) for key, value in table.items())


def identity(config: Config) -> str:
    """Name of a run: its algorithm, and a hash of settings that differ from ``defaults.toml``.

    A setting that is added to the package later, with its default in ``defaults.toml``, leaves the
    names of all earlier runs as they are.
    """
    return _named(effective(config))


def identities(config: Config, seeds: Iterable[int]) -> list[str]:
    """The names of the runs with these seeds, faster than one by one."""
    tables = effective(config)
    return [_named(_with_seed(tables, seed)) for seed in seeds]


def _with_seed(tables: Tables, seed: int) -> Tables:
    tasks = {name: _with_seed(task, seed) for name, task in tables.get("tasks", {}).items()}
    return tables | {"run": tables["run"] | {"seed": seed}} | ({"tasks": tasks} if tasks else {})


def _named(tables: Tables) -> str:
    shown = json.dumps(_different(tables), sort_keys=True)
    digest = hashlib.sha256(shown.encode()).hexdigest()[:12]
    return f"{tables['algorithm']['name']}-{digest}"


def _different(tables: Tables) -> Tables:
    different: Tables = {
        ".".join(place): value
        for place, value in _entries(tables)
        if (place[1] == "name" and place[0] not in LATER) or default(tables, place) != value
    }
    for name, task in tables.get("tasks", {}).items():
        different[f"task {name}"] = _different(task)
    return different


def stored_file(config: Config, folder: Path) -> Path:
    """The file of the run with these settings."""
    return folder / (identity(config) + SUFFIX)
