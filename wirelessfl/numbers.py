"""Checks of numeric arguments."""

from __future__ import annotations

import math
import operator


def check_count(name: str, value: int, min_value: int = 1) -> None:
    """Check that a value is an integer >= ``min_value``.

    Raises:
        ValueError: it is not.
    """
    try:
        fits = operator.index(value) >= min_value
    except TypeError:
        fits = False
    if not fits:
        raise ValueError(f"{name} is {value!r}: give an integer of at least {min_value}.")


def check_number(name: str, value: float, *, positive: bool = False) -> None:
    """Check that a value is finite and >= 0, or > 0 if ``positive``.

    Raises:
        ValueError: it is not.
    """
    if not (math.isfinite(value) and value >= 0) or (positive and value == 0):
        sign = "positive" if positive else "zero or positive"
        raise ValueError(f"{name} is {value}: give a finite number that is {sign}.")
