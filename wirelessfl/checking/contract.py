"""Contracts: what must hold, and a function that tests it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from torch import Tensor

from wirelessfl.checking.subject import Subject

INPUT = "does not change its input"


class BrokenError(Exception):
    """A contract does not hold; the text says what is wrong."""


class NotTestedError(Exception):
    """A contract cannot be tested; the text says why."""


@dataclass(frozen=True)
class Contract:
    """One contract.

    Args:
        name: what must hold, e.g. "gives the same answer twice".
        test: tests a subject; raises ``BrokenError``, ``NotTestedError``, or what the user's code
            raises.
        needs: names of contracts that must hold first.
    """

    name: str
    test: Callable[[Subject], None]
    needs: tuple[str, ...] = ()


def broken(reason: str) -> NoReturn:
    """Raise ``BrokenError``."""
    raise BrokenError(reason)


def unchanged(before: Any, after: Any, name: str) -> None:
    """Raise unless arrays, or mappings and sequences of arrays, are equal to their copies.

    Args:
        before: a copy, see ``copied``.
        after: the values now.
        name: what they are, for the message.
    """
    where = difference(before, after)
    if where is not None:
        broken(f"it changes {name}{where}, which others use: work on a copy")


def copied(value: Any) -> Any:
    """A deep copy of arrays, tensors, mappings and sequences."""
    return copy.deepcopy(value)


def difference(one: Any, two: Any, tolerance: float = 0.0) -> str | None:
    """Where two structures of arrays and plain values differ; None if they do not.

    Args:
        one, two: arrays, tensors, plain values, or mappings and sequences of them.
        tolerance: largest difference of numbers, absolute and relative to their largest.

    Returns:
        The place of the first difference, e.g. " in 'update'", or "" for the value itself.
    """
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        if one.keys() != two.keys():
            return f" (its names are {sorted(map(str, two))} instead of {sorted(map(str, one))})"
        return _first(((f" in {key!r}", one[key], two[key]) for key in one), tolerance)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        if len(one) != len(two):
            return f" (it has {len(two)} entries instead of {len(one)})"
        places = zip(range(len(one)), one, two, strict=True)
        return _first(((f" at {place}", a, b) for place, a, b in places), tolerance)
    if isinstance(one, Tensor | np.ndarray) and isinstance(two, Tensor | np.ndarray):
        return None if _alike(_array(one), _array(two), tolerance) else ""
    if tolerance and isinstance(one, float | int) and isinstance(two, float | int):
        return None if _alike(np.asarray(one), np.asarray(two), tolerance) else ""
    return None if repr(one) == repr(two) else ""


def _first(places: Iterable[tuple[str, Any, Any]], tolerance: float) -> str | None:
    for place, one, two in places:
        found = difference(one, two, tolerance)
        if found is not None:
            return place + found
    return None


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)


def _alike(one: np.ndarray, two: np.ndarray, tolerance: float) -> bool:
    if one.shape != two.shape:
        return False
    if not tolerance or one.dtype.kind not in "fc":
        return bool(np.array_equal(one, two, equal_nan=one.dtype.kind in "fc"))
    scale = float(np.abs(one[np.isfinite(one)]).max(initial=1.0))
    return bool(np.allclose(one, two, rtol=0.0, atol=tolerance * scale, equal_nan=True))
