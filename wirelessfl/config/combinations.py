"""Configurations of a sweep, and the settings of a file that flags drop."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from channels.notes import Notes
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.wording import shown, suggesting
from wirelessfl.config.config import Config
from wirelessfl.config.named import Trust
from wirelessfl.config.synonyms import with_new_names
from wirelessfl.config.tables import read_toml


def dropped_notes(tables: Mapping[str, Any], config: Config) -> list[str]:
    """A line for each table of which settings are dropped; it says how to give them again.

    Args:
        tables: the settings of a file, by table.
        config: the configuration of these tables and flags.
    """
    flags = {place: flag for flag, place in config.homes.items()}
    notes = []
    for section, table in tables.items():
        if section == "given" or not isinstance(table, Mapping):  # those are refused
            continue
        lost = {
            key: value
            for key, value in table.items()
            if key not in ("name", "predicted") and value is not None
            if (section, key) not in config.places
        }
        if "predicted" in table and config.run.predicted is None:
            notes.append("the settings are not those of the design: its predictions are left out.")
        if not lost:
            continue
        values = ", ".join(f"{key}={shown(value)}" for key, value in lost.items())
        again = " ".join(
            _flag(flags[section, key], value)
            for key, value in lost.items()
            if (section, key) in flags
        )
        kept = [key for key in lost if (section, key) in flags]
        remedy = f" To keep {', '.join(kept)}, give {again}." if again else ""
        old, new = table.get("name"), config.tables.get(section, {}).get("name")
        if new not in (None, old):
            notes.append(f"{section} {new!r} replaces {old!r}, without its {values}.{remedy}")
        else:
            notes.append(f"no effect, so dropped: {values} of [{section}].")
    return notes


def _flag(flag: str, value: Any) -> str:
    """A flag and its value, as on the command line."""
    name = "--" + flag.replace("_", "-")
    if value is True:
        return name
    parts = value if isinstance(value, list | tuple) else [value]
    return f"{name} {','.join(map(str, parts))}"


Values = Mapping[str, Sequence[Any]]
"""Values of each setting, by flat name."""


@suggesting(' Settings are a dict: combinations("fedavg", {"seed": [1, 2]}).')
def combinations(
    algorithms: str | Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    *,
    coupled: Sequence[Mapping[str, Any]] = (),
    base: Mapping[str, Any] | str | Path | None = None,
    trust: Trust = False,
) -> list[Config]:
    """The configurations that ``wirelessfl sweep`` runs: all combinations of the given values.

    Example::

        configs = wirelessfl.combinations(
            "hist,hfedavg",
            {"seed": [1, 2, 3], "rounds": 20},
            coupled=[
                {"cells": 2, "bandwidth_hz": 10e6},
                {"cells": 4, "bandwidth_hz": 5e6},
            ],
        )
        results = wirelessfl.sweep(configs)  # 2 algorithms x 3 seeds x 2 points

    >>> import wirelessfl
    >>> configs = wirelessfl.combinations("hist,hfedavg", {"seed": [1, 2, 3], "rounds": 20})
    >>> len(configs)
    6

    Args:
        algorithms: names or import paths: a list, or a string with commas; none if ``coupled`` or
            ``base`` names them.
        settings: values by flat name, such as ``cells`` or ``lr``. A list, a range or a NumPy array
            has one value per run; a tuple is one value of a setting such as ``cpu_hz``.
        coupled: settings that vary together; each entry is one point.
        base: settings of all runs, which the others override: tables, or the path of a TOML file.
        trust: whether the file may name code to import.

    Returns:
        The combinations, the last setting varying fastest. Settings that do not apply to the
        choices of a combination are left out of it, so two configurations can be equal.

    Raises:
        ConfigError: a wrong setting, a setting that no combination uses, a list without values, or
            a name both in ``settings`` and in ``coupled``.
    """
    names = algorithms.split(",") if isinstance(algorithms, str) else list(algorithms)
    values: dict[str, Sequence[Any]] = {}
    if names:
        values["algorithm"] = [name.strip() for name in names]
    for name, value in with_new_names(settings or {}).items():
        if name == "algorithm":
            raise ConfigError("algorithm is in settings: give it as the first argument.")
        if isinstance(value, range | np.ndarray):
            value = np.asarray(value).tolist()
        if isinstance(value, Set | Iterator):
            raise ConfigError(
                f"{name} is {shown(value)}, without an order of its own or to be read once: give a "
                "list, such as [1, 2, 3]."
            )
        values[name] = value if isinstance(value, list) else [value]
    tables = base or {}
    if isinstance(tables, str | Path):
        tables = read_toml(expanded(tables), trust)
    return configurations(tables, points(values, [*map(with_new_names, coupled)]))


def points(values: Values, coupled: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """All combinations of values with the coupled settings, as flat settings.

    Args:
        values: values of each setting.
        coupled: settings that vary together; each entry is one point.

    Raises:
        ConfigError: a setting has no values, or is also coupled.
    """
    for name, values_of_flag in values.items():
        if not len(values_of_flag):
            raise ConfigError(f"{name} is {shown(values_of_flag)}: give at least one value.")
    both = [name for name in values if any(name in point for point in coupled)]
    if both:
        raise ConfigError(
            f"{both[0]} is given both alone and in coupled settings: give it in one of them."
        )
    lists: list[Iterable[dict[str, Any]]] = [
        [{name: value} for value in values_of_flag] for name, values_of_flag in values.items()
    ]
    if coupled:
        lists.append([dict(point) for point in coupled])
    return [
        {name: value for part in parts for name, value in part.items()}
        for parts in itertools.product(*lists)
    ]


def configurations(tables: Mapping[str, Any], choices: Sequence[Mapping[str, Any]]) -> list[Config]:
    """The configuration of each combination, without the flags that do not apply to its choices.

    Args:
        tables: settings of all runs, by table.
        choices: flat settings of each combination.

    Raises:
        ConfigError: a wrong setting, or a flag that no combination uses.
    """
    configs = [Config.merged(tables, choice, on_idle="drop") for choice in choices]
    notes = Notes()
    for config in configs if tables else ():
        notes(*dropped_notes(tables, config))
    ignored = list(map(_ignored, configs, choices))
    for name in dict.fromkeys(name for choice in choices for name in choice):
        having = [place for place, choice in enumerate(choices) if name in choice]
        if all(name in ignored[place] for place in having):  # raise the error for this flag
            first = having[0]
            others = ignored[first] - {name}
            Config.merged(tables, {k: v for k, v in choices[first].items() if k not in others})
    return configs


def _ignored(config: Config, flags: Mapping[str, Any]) -> set[str]:
    """The flags without effect, which the configuration has dropped."""
    homes = config.homes
    return {
        flag
        for flag, value in flags.items()
        if flag not in ("algorithm", "task")
        and (flag not in homes or (value is not None and homes[flag] not in config.places))
    }
