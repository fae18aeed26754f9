"""The kinds of choices that tables name, and where the flags of their settings belong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from wirelessfl.algorithms import Algorithm, algorithm_classes, find_algorithm
from wirelessfl.assignment import ASSIGNMENTS
from wirelessfl.config.sections import SECTIONS
from wirelessfl.errors import ConfigError
from wirelessfl.registry import Choice, Kind
from wirelessfl.schedules import SCHEDULES
from wirelessfl.uplinks import UPLINKS
from wirelessfl.warm_starts import WARM_STARTS
from wirelessfl.wording import shown

KINDS: Mapping[str, Kind[Any]] = {
    "uplink": UPLINKS,
    "schedule": SCHEDULES,
    "assignment": ASSIGNMENTS,
    "warm_start": WARM_STARTS,
}
"""Tables with a ``name``, beside ``algorithm``; of two with a setting of the same name the earlier
one has the plain flag."""
MAX_OWNERS = 3
"""Choices that a message names as those that have a setting; of more it gives the number."""


def class_of(table: Mapping[str, Any]) -> type[Algorithm]:
    """The algorithm that a table names, with what it runs in its cells."""
    local = table.get("local")
    if local is not None and not isinstance(local, str):
        raise ConfigError(f"local is {shown(local)}: give the name of an algorithm.")
    return find_algorithm(table["name"], local)


def title_of(table: Mapping[str, Any]) -> str:
    """What a table names, with what it runs in its cells."""
    local = f" with local {table['local']!r}" if "local" in table else ""
    return f"{table['name']!r}{local}"


def chosen_classes(tables: Mapping[str, Any]) -> dict[str, type[Choice]]:
    """The classes that tables with a name choose, by kind.

    Raises:
        ConfigError: a name is unknown.
    """
    found: dict[str, type[Choice]] = {
        kind: known.find(tables[kind]["name"])
        for kind, known in KINDS.items()
        if tables.get(kind) is not None
    }
    return found | {"algorithm": class_of(tables["algorithm"])}


def flag_homes(owners: Mapping[str, type[Choice]]) -> dict[str, tuple[str, str]]:
    """Where each flat name belongs: flag -> (section, key).

    A setting of a choice whose name something else has gets its owner's as prefix.

    Args:
        owners: the classes chosen, by kind.
    """
    homes = section_homes()
    for kind in (*KINDS, "algorithm"):
        if kind not in owners:
            continue
        for entry in fields(owners[kind]):
            flag = entry.name
            if flag in homes:
                flag = f"{owners[kind].name.replace('-', '_')}_{flag}"
            homes[flag] = (kind, entry.name)
    return homes


def section_homes() -> dict[str, tuple[str, str]]:
    """Where the flags of sections belong."""
    return {
        name: (section, name) for section, model in SECTIONS.items() for name in model.model_fields
    }


def owners_of(key: str) -> str:
    """Which choices have a setting; empty where none has."""
    owners: dict[str, Mapping[str, type[Any]]] = {
        "algorithm": algorithm_classes(),
        **{kind: known.classes() for kind, known in KINDS.items()},
    }
    for kind, classes in owners.items():
        having = [name for name, cls in classes.items() if key in {f.name for f in fields(cls)}]
        if having:
            shown_names = " and ".join(having)
            if len(having) > MAX_OWNERS:
                rest = len(having) - MAX_OWNERS
                shown_names = f"{', '.join(having[:MAX_OWNERS])} and {rest} more"
            return f" It is a setting of {kind} {shown_names}."
    return ""
