"""Fields of rows: their short names, and their titles with units on axes and in tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wirelessfl.wording import suggestion

SHORT: Mapping[str, str] = {
    "rounds": "round",
    "mib": "uplink_mib",
    "seconds": "sim_seconds",
    "wall": "wall_seconds",
}
"""Fields of rows by the short names that commands and functions accept."""
TITLES: Mapping[str, str] = {
    "round": "global round",
    "uplink_mib": "uplink traffic per client (MiB)",
    "downlink_mib": "downlink traffic per client (MiB)",
    "backhaul_mib": "backhaul traffic per edge server (MiB)",
    "sim_seconds": "simulated time (s)",
    "wall_seconds": "wall-clock time (s)",
    "joules": "energy per client (J)",
    "joules_max": "energy of the client that uses most (J)",
    "round_seconds": "time of the rounds (s)",
    "equal_seconds": "time of the rounds with equal shares (s)",
    "equal_joules": "energy with equal shares (J)",
    "accuracy": "test accuracy (%)",
    "loss": "test loss",
    "validation_accuracy": "validation accuracy (%)",
    "validation_loss": "validation loss",
}
COSTS = frozenset(n for n in TITLES if not n.endswith(("accuracy", "loss")))
"""Fields that are known also if the model has diverged."""


def field_of(name: str) -> str:
    """The field that a short name stands for; other names are fields."""
    return SHORT.get(name, name)


def title_of(field: str) -> str:
    """The title of a field, with its unit; accuracies are in percent."""
    found = field.replace("_", " ")
    return TITLES.get(field) or (f"{found} (%)" if is_accuracy(field) else found)


def is_accuracy(field: str) -> bool:
    """Whether the values of a field are accuracies in [0, 1]."""
    return field.endswith("accuracy")


def numeric_fields(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Fields with a number in at least one row, in order of appearance."""
    return list(
        dict.fromkeys(
            name
            for row in rows
            for name, value in row.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        )
    )


def unknown_field(argument: str, name: object, known: Iterable[str]) -> str:
    """The message for a field that no row has.

    Args:
        argument: name of the argument that gives it.
        name: the given name.
        known: fields that rows have.
    """
    fields = list(known)
    choices = [*(short for short, field in SHORT.items() if field in fields), *fields]
    return (
        f"{argument} is {name!r}, which no row has.{suggestion(name, choices)} "
        f"Choose {', '.join(choices)}."
    )
