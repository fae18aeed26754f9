"""Rows of runs: names and titles of their fields, and diverged models.

A model whose loss or parameters are not finite has a measured accuracy, because it predicts the
first class, but it has learnt nothing; nor has one whose loss has exploded. Its row has the loss
None, reaches no target and is never the best one. Each row counts by itself: an infinite loss may
become finite again, and a session may start with another model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from channels.loads import BITS_PER_ELEMENT as BITS_PER_ELEMENT
from wirelessfl.base.wording import suggestion

SHORT: Mapping[str, str] = {
    "rounds": "round",
    "mib": "uplink_mib",
    "seconds": "sim_seconds",
    "wall": "wall_seconds",
}
"""Fields of rows by the short names that commands and functions accept."""
MEANT: Mapping[str, str] = {
    "time": "seconds",
    "energy": "joules",
    "traffic": "mib",
    "bytes": "mib",
    "epochs": "rounds",
}
"""Short names by other words for them."""
TITLES: Mapping[str, str] = {
    "round": "global round",
    "uplink_mib": "uplink traffic per client (MiB)",
    "downlink_mib": "downlink traffic per client (MiB)",
    "backhaul_mib": "backhaul traffic per edge server (MiB)",
    "sim_seconds": "simulated time (s)",
    "wall_seconds": "wall-clock time (s)",
    "joules": "energy per client (J)",
    "joules_max": "energy of the client that uses most (J)",
    "charge_min": "least charge of a battery (J)",
    "charge_mean": "mean charge of the batteries (J)",
    "round_seconds": "time of the rounds (s)",
    "equal_seconds": "time of the rounds with equal shares (s)",
    "equal_joules": "energy with equal shares (J)",
    "accuracy": "test accuracy (%)",
    "loss": "test loss",
    "validation_accuracy": "validation accuracy (%)",
    "validation_loss": "validation loss",
    "air_error": "mean squared error over the air, per element",
    "air_error_predicted": "predicted mean squared error over the air, per element",
    "air_error_votes": "wrong votes over the air, fraction of elements",
    "air_error_votes_predicted": "predicted wrong votes over the air, fraction of elements",
}
COSTS = frozenset(n for n in TITLES if not n.endswith(("accuracy", "loss")) and "error" not in n)
"""Fields that are known also if the model has diverged."""


def field_of(name: str) -> str:
    """The field that a short name stands for; other names are fields."""
    return SHORT.get(name, name)


def title_of(field: str) -> str:
    """The title of a field, with its unit; accuracies are in percent."""
    words = field.replace("_", " ")
    return TITLES.get(field) or (f"{words} (%)" if is_accuracy(field) else words)


def is_accuracy(field: str) -> bool:
    """Whether the values of a field are accuracies in [0, 1]."""
    return field.endswith("accuracy")


def measured_field(rows: Iterable[Mapping[str, Any]]) -> str:
    """The field that is shown unless another is named: the loss if a row has no accuracy."""
    return "accuracy" if all("accuracy" in row for row in rows) else "loss"


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


def unknown_field(
    argument: str, name: object, numeric: Iterable[str], rows: Iterable[Mapping[Any, Any]]
) -> str:
    """The message for a field that no row has, or that has several values.

    Args:
        argument: name of the argument that gives it.
        name: the given name.
        numeric: fields with a number.
        rows: the rows.
    """
    fields = list(numeric)
    several = next((len(row[name]) for row in rows if isinstance(row.get(name), list)), None)
    if several is not None:
        return (
            f"{argument} is {name!r}, which has {several} values: choose a field with one value, "
            f"{', '.join(fields)}."
        )
    choices = [*(short for short, field in SHORT.items() if field in fields), *fields]
    if isinstance(name, str) and "," in name:
        return f"{argument} is {name!r}: name one field."
    meant = MEANT.get(str(name))
    near = f" Do you mean {meant!r}?" if meant in choices else suggestion(name, choices)
    return f"{argument} is {name!r}, which no row has.{near} Choose {', '.join(choices)}."


Row = Mapping[str, Any]


def has_diverged(row: Row) -> bool:
    """Whether the model of a row or summary has diverged: a loss is None."""
    return row.get("loss", 0.0) is None or row.get("validation_loss", 0.0) is None


def as_mean_value(row: Row, field: str = "accuracy") -> float:
    """An accuracy or loss of a row in means and curves; nan if the model has diverged."""
    return math.nan if has_diverged(row) else float(row[field])


def finite(value: Any) -> Any:
    """``value`` with None for numbers that JSON does not have, e.g. those of diverged runs."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


MIB_PER_BIT = 1 / 8 / 2**20
"""MiB per bit."""
MIB_PER_ELEMENT = BITS_PER_ELEMENT * MIB_PER_BIT
"""MiB per element."""
