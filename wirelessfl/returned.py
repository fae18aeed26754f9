"""Checks of numeric arguments, and of what users' methods return, see ``guard.returns``."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from channels.arrays import IntArray
from wirelessfl.guard import Check, UnfitError, described, guard, words_of

Shape = tuple[int, ...]


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


def whole(minimum: int, *, or_none: bool = False) -> Check:
    """A check for an integer >= ``minimum``."""

    def check(value: Any, *_: Any) -> Any:
        if or_none and value is None:
            return value
        if _is_bool(value) or not isinstance(value, int | np.integer) or value < minimum:
            raise UnfitError(described(value), f"an integer >= {minimum}{_none(or_none)}")
        return value

    return check


def number(*, above: bool = False, or_none: bool = False) -> Check:
    """A check for a finite number >= 0, or > 0 if ``above``."""

    def check(value: Any, *_: Any) -> Any:
        if or_none and value is None:
            return value
        real = isinstance(value, int | float | np.integer | np.floating) and not _is_bool(value)
        if not real or not (value > 0 if above else value >= 0) or not math.isfinite(value):
            sign = ">" if above else ">="
            raise UnfitError(described(value), f"a finite number {sign} 0{_none(or_none)}")
        return value

    return check


def instance(kind: type, *, or_none: bool = False) -> Check:
    """A check for an object of this class; the methods of a user's class are guarded too."""

    def check(value: Any, *_: Any) -> Any:
        if not isinstance(value, kind) and not (or_none and value is None):
            raise UnfitError(described(value), f"a value of type {kind.__name__}{_none(or_none)}")
        guard(type(value), kind)
        return value

    return check


def implementing(interface: type) -> Check:
    """A check for an object with the methods of an interface, which are guarded too."""
    names = sorted(name for name in vars(interface) if not name.startswith("_"))

    def check(value: Any, *_: Any) -> Any:
        missing = [name for name in names if not hasattr(value, name)]
        if missing or isinstance(value, type):
            raise UnfitError(
                described(value) + (f", without {', '.join(missing)}" if missing else ""),
                f"an object with the methods of a {words_of(interface)}, {', '.join(names)}",
            )
        guard(type(value), interface)
        return value

    return check


def reals(value: Any, shapes: Iterable[Shape], wanted: str) -> Any:
    """Check for an array of finite numbers >= 0 with one of these shapes."""
    wanted = f"{wanted}, finite and >= 0"
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
        raise UnfitError(described(value), f"a NumPy array of numbers {wanted}")
    if value.shape not in shapes:
        raise UnfitError(described(value), f"numbers {wanted}")
    bad = ~(np.isfinite(value) & (value >= 0))
    if bad.any():
        raise UnfitError(f"{value[bad].flat[0]} at {_place(bad)}", f"numbers {wanted}")
    return value


def indices(value: Any, below: int, wanted: str) -> IntArray:
    """Check for a one-dimensional array of integers in [0, below); a list is converted."""
    wanted = f"{wanted}: integers in one dimension, from 0 to {below - 1}"
    try:
        found = np.asarray(value)
    except (TypeError, ValueError):
        raise UnfitError(described(value), wanted) from None
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise UnfitError(described(value if found.ndim == 0 else found), wanted)
    bad = (found < 0) | (found >= below)
    if bad.any():
        raise UnfitError(f"{found[bad][0]} at {_place(bad)}", wanted)
    return found.astype(np.int64)


def entries(value: Any, count: int, wanted: str) -> list[Any]:
    """Check for a list, or another sized iterable, of this length."""
    if not hasattr(value, "__len__") or not hasattr(value, "__iter__") or isinstance(value, str):
        raise UnfitError(described(value), wanted)
    if len(value) != count:
        raise UnfitError(f"{len(value)} entries", wanted)
    return list(value)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool | np.bool_)


def _none(or_none: bool) -> str:
    return ", or None" if or_none else ""


def _place(bad: np.ndarray) -> list[int]:
    """The first place at which ``bad`` is true."""
    return [int(index) for index in np.argwhere(bad)[0]]
