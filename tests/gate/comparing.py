"""Describe the first difference between two outcomes, bit for bit or but for stated fields."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tests.gate.running import Outcome

WALL_CLOCK = {"wall_seconds"}
"""Fields of rows that differ between equal runs."""
LONGEST = 80
"""Maximum number of characters shown of a value."""


@dataclass(frozen=True)
class Leeway:
    """Differences of rows that do not count.

    Args:
        rounding: relative difference that simulated seconds and joules may have.
        fields: names of fields that are not compared.
    """

    rounding: float = 0.0
    fields: frozenset[str] = frozenset()

    def allows(self, key: str, one: Any, two: Any) -> bool:
        """Whether a field may have these two values."""
        if key in WALL_CLOCK or key in self.fields:
            return True
        priced = key.endswith(("seconds", "joules"))
        if not (priced and isinstance(one, float | int) and isinstance(two, float | int)):
            return False
        return math.isclose(one, two, rel_tol=self.rounding, abs_tol=0.0)


EXACT = Leeway()


def first_difference(
    one: Outcome,
    two: Outcome,
    names: tuple[str, str] = ("stored", "now"),
    leeway: Leeway = EXACT,
) -> str | None:
    """The first difference between two outcomes, rows before parameters; None if they are equal.

    Args:
        one: first outcome.
        two: second outcome.
        names: how the message refers to each.
        leeway: differences of rows that do not count.
    """
    return _of_rows(one.rows, two.rows, names, leeway) or _of_params(one.params, two.params, names)


def _of_rows(
    one: list[dict[str, Any]],
    two: list[dict[str, Any]],
    names: tuple[str, str],
    leeway: Leeway,
) -> str | None:
    for number, (mine, other) in enumerate(zip(one, two, strict=False)):
        for key in dict.fromkeys([*mine, *other]):
            values = _text(mine, key), _text(other, key)
            if values[0] != values[1] and not leeway.allows(key, mine.get(key), other.get(key)):
                return f"row {number}, {key}: " + _both(values, names)
    if len(one) != len(two):
        return "rows: " + _both((str(len(one)), str(len(two))), names)
    return None


def _text(row: Mapping[str, Any], key: str) -> str:
    """The value as JSON: exact for floats, and all NaNs are equal."""
    return json.dumps(row[key], sort_keys=True) if key in row else "nothing"


def _both(values: tuple[str, str], names: tuple[str, str]) -> str:
    shown = [text if len(text) <= LONGEST else text[:LONGEST] + "..." for text in values]
    return f"{shown[0]} {names[0]}, {shown[1]} {names[1]}"


def _of_params(
    one: Mapping[str, Tensor], two: Mapping[str, Tensor], names: tuple[str, str]
) -> str | None:
    for name in dict.fromkeys([*one, *two]):
        kinds = _kind(one.get(name)), _kind(two.get(name))
        if kinds[0] != kinds[1]:
            return f"parameter {name}: " + _both(kinds, names)
        mine, other = one[name], two[name]
        differing = (_bytes(mine) != _bytes(other)).any(1)
        if differing.any():
            gaps = (mine.double() - other.double()).abs().reshape(-1)[differing]
            largest = f"largest absolute difference {gaps.nan_to_num(nan=0.0).max():.3g}"
            if gaps.isnan().any():
                largest += ", and NaN"
            count = f"{int(differing.sum())} of {mine.numel()} elements differ"
            return f"parameter {name}: {count}, {largest}"
    return None


def _kind(tensor: Tensor | None) -> str:
    return "nothing" if tensor is None else f"{tensor.dtype} {list(tensor.shape)}"


def _bytes(tensor: Tensor) -> Tensor:
    """The elements as bytes [elements, bytes per element], in which -0.0 differs from 0.0.

    All NaNs are equal.
    """
    return tensor.contiguous().reshape(-1, 1).view(torch.uint8)
