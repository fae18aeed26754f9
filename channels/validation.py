"""Checks that several parts share."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray, IntArray

LONGEST = 80
"""Characters of a value in a message."""


def whole_number(name: str, value: Any) -> int:
    """``value`` as an int, if it is one of Python or NumPy.

    Raises:
        TypeError: it is something else, also a float such as 2.0.
    """
    try:
        return int(operator.index(value))
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}: give an integer.") from None


def shown(value: Any) -> str:
    """``value`` in one line, shortened."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def is_tensor(values: Any) -> bool:
    """Whether these are torch's; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def checked_rows(name: str, rows: ArrayLike) -> IntArray:
    """``rows`` as whole numbers >= 0, [rows].

    Raises:
        ValueError: they are not.
    """
    given = np.asarray(rows)
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise ValueError(
            f"{name} has shape {given.shape} and dtype {given.dtype}: give one axis of integers."
        )
    if given.size and given.min() < 0:
        raise ValueError(f"{name} holds {given.min()}: numbers count from 0.")
    return given.astype(np.int64)


def checked_cells(cell_of: ArrayLike) -> IntArray:
    """A read-only copy of ``cell_of``, if it numbers the cells in order and leaves out none."""
    given = np.asarray(cell_of)
    if given.ndim != 1 or not given.size or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(
            f"cell_of has shape {given.shape} and dtype {given.dtype}: give [clients] integers."
        )
    cells = given.astype(np.int64)
    steps = np.diff(cells, prepend=-1)  # so that cell 0 must come first
    down = np.flatnonzero((steps < 0) | (cells < 0))
    if down.size:
        at = down[0]
        raise ValueError(
            f"cell_of[{at}] is {cells[at]}"
            + (f" after {cells[at - 1]}" if at else "")
            + ": cells count from 0 and stand in order. Sort the clients by cell."
        )
    if (steps > 1).any():
        at = np.flatnonzero(steps > 1)[0]
        raise ValueError(
            f"cell {cells[at] - 1} has no client: number the cells 0, 1, ... and leave out none."
        )
    cells.setflags(write=False)
    return cells


def increasing(name: str, values: ArrayLike) -> IntArray:
    """``values`` as whole numbers >= 0 that increase; a read-only copy."""
    numbers = checked_rows(name, values)
    down = np.flatnonzero(np.diff(numbers) < 1)
    if down.size:
        at = down[0] + 1
        raise ValueError(
            f"{name}[{at}] is {numbers[at]} after {numbers[at - 1]}: give each client once, in "
            "increasing order."
        )
    numbers.setflags(write=False)
    return numbers


def checked_part(cell_of: ArrayLike, part: ArrayLike, cells: int) -> tuple[IntArray, IntArray]:
    """Cells and numbers of the clients of a part; some cells may be empty."""
    numbers, cells_of = increasing("part", part), checked_rows("cell_of", cell_of)
    if cells_of.shape != numbers.shape:
        raise ValueError(f"part has shape {numbers.shape}: give [clients], here {cells_of.shape}.")
    if cells_of.size and ((np.diff(cells_of) < 0).any() or cells_of[-1] >= cells):
        raise ValueError(
            f"cell_of holds {cells_of.max()}, or is out of order: the part's clients stand by "
            f"cell, and bandwidth_hz has {cells} cells."
        )
    cells_of.setflags(write=False)
    return cells_of, numbers


def in_range(
    name: str,
    values: ArrayLike,
    axis: tuple[str, int],
    *,
    above: float = -np.inf,
    min_value: float = -np.inf,
    limit: float = np.inf,
) -> FloatArray:
    """A read-only copy of ``values``, one for each on ``axis``, finite and in range."""
    unit, count = axis
    given = np.asarray(values, dtype=np.float64)
    if given.shape not in {(), (count,)}:
        wanted = f"one number or [{unit}], here ({count},)" if unit else "one number"
        raise ValueError(f"{name} has shape {given.shape}: give {wanted}.")
    bad = ~(np.isfinite(given) & (given > above) & (given >= min_value) & (np.abs(given) <= limit))
    if bad.any():
        place = f"[{np.flatnonzero(bad)[0]}]" if given.ndim else ""
        wanted = "a finite number"
        if above > -np.inf:
            wanted += f" > {above:g}"
        if min_value > -np.inf:
            wanted += f" >= {min_value:g}"
        if limit < np.inf:
            wanted += f" within [{-limit:g}, {limit:g}]"
        raise ValueError(f"{name}{place} is {given[bad].flat[0]}: give {wanted}.")
    full = np.full(count, given)
    full.setflags(write=False)
    return full
