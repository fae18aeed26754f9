"""Checks of numbers that several parts share."""

from __future__ import annotations

import math
import operator


def check_count(name: str, value: int, min_value: int = 1) -> None:
    """Refuse a value that is not an integer of at least ``min_value``.

    Raises:
        ValueError: it is none.
    """
    try:
        fits = operator.index(value) >= min_value
    except TypeError:
        fits = False
    if not fits:
        raise ValueError(f"{name} is {value!r}: give an integer of at least {min_value}.")


def check_number(name: str, value: float, *, positive: bool = False) -> None:
    """Refuse what is negative or not finite, or zero where it must be positive.

    Raises:
        ValueError: it is.
    """
    if not (math.isfinite(value) and value >= 0) or (positive and value == 0):
        sign = "positive" if positive else "zero or positive"
        raise ValueError(f"{name} is {value}: give a finite number that is {sign}.")
