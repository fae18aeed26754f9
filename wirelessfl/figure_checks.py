"""Checks of the arguments of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirelessfl.row_fields import TITLES, is_accuracy, numeric_fields, unknown_field
from wirelessfl.wording import shown


def check_scales(what: str, accuracies: Mapping[str, float | None], smooth: int) -> None:
    """Check settings of ``draw_curves``; those in ``accuracies`` are of accuracies only.

    Raises:
        ValueError: see ``draw_curves``.
    """
    for name, value in accuracies.items():
        if value is None:
            continue
        if not is_accuracy(what):
            raise ValueError(
                f"{name}={value} conflicts with what={what!r}: it is an accuracy. Leave it out."
            )
        if not 0 <= value <= 1:
            raise ValueError(
                f"{name} is {shown(value)}: give an accuracy in [0, 1], such as 0.9 for 90 %."
            )
    if not isinstance(smooth, int) or smooth < 1 or smooth % 2 == 0:
        raise ValueError(f"smooth is {shown(smooth)}: give an odd number of rows, at least 1.")


def check_curves(runs: Any, fields: Mapping[str, str], styles: Sequence[str]) -> None:
    """Check the rows that ``draw_curves`` is given.

    Args:
        runs: its argument.
        fields: fields that some row needs, by the argument that gives them.
        styles: its argument.

    Raises:
        ValueError: see ``draw_curves``.
    """
    if not isinstance(runs, Mapping):
        raise ValueError(
            f"runs is {shown(runs)}: give the rows of each seed's run by label, such as "
            '{"fedavg": [result.rows]}.'
        )
    if not runs:
        raise ValueError("runs is empty: give at least one curve.")
    for label, seeds in runs.items():
        if not seeds or not all(seeds):
            raise ValueError(f"runs[{label!r}] has no rows: give rows of at least one run.")
        if not all(isinstance(row, Mapping) for rows in seeds for row in rows):
            raise ValueError(
                f"runs[{label!r}] is {shown(seeds)}: give a list of the rows of each run, such as "
                "[result.rows]."
            )
        if styles and label not in styles:
            raise ValueError(f"styles is {shown(styles)}: it lacks the label {label!r}. Add it.")
    together = [row for seeds in runs.values() for rows in seeds for row in rows]
    every = numeric_fields(together)
    for argument, name in fields.items():
        if name not in every and not (name in TITLES and any(name in row for row in together)):
            raise ValueError(unknown_field(argument, name, every, together))
