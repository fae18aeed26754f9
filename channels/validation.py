"""Validation helpers shared by several modules."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arrays import FloatArray, IntArray

Scalar = TypeVar("Scalar", bound=np.generic)

LONGEST = 80
"""Maximum number of characters that a message shows of a value."""
MOST_AXES = 30
"""Maximum number of axes of an array; NumPy 1 has up to 32, and some functions add two."""


MANY = 10**9
"""Maximum number of clients, cells or candidates."""
LEAST, MOST = 1e-60, 1e60
"""Magnitudes with which no product overflows."""
_LARGEST = int(sys.float_info.max)


RECEIVE_ARRAYS = (
    "A client has one antenna: of receive arrays [users, rx, tx], give one block of one transmit "
    "antenna, h[..., 0], or of a precoder w [users, tx], (h @ w[..., None])[..., 0]."
)
"""What to do with channels of clients with several antennas."""


def number_of(name: str, value: Any, least: int = 1, most: int = MANY) -> int:
    """``value`` as a number of things."""
    number = whole_number(name, value)
    if not least <= number <= most:
        raise ValueError(
            f"{name} is {shown(number)}: give a whole number >= {least}, and at most {most:,}."
        )
    return number


def whole_number(name: str, value: Any) -> int:
    """``value`` as an int, if it is a Python or NumPy integer."""
    if type(value) is int and not too_large(value):  # of most calls
        return value
    instead = instead_of(value)
    if not (isinstance(value, bool) or instead):
        with suppress(TypeError):
            return int(operator.index(value))
    raise TypeError(f"{name} is {shown(value)}: give {instead or 'an integer'}.")


def shown(value: Any) -> str:
    """The repr of ``value`` on one line, shortened."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an integer of more digits than Python prints
        text = f"a {type(value).__name__} of thousands of digits"
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def public_path(kind: type) -> str:
    """The public path of a class: the shortest one with its name, e.g. ``torch.nn.Module``.

    A package lists its modules of public names in ``PUBLIC``, if its other modules may move.
    """
    root, *parts = kind.__module__.split(".")
    package = sys.modules.get(root)
    parents = (".".join((root, *parts[:depth])) for depth in range(1, len(parts)))
    public = (getattr(package, name) for name in getattr(package, "PUBLIC", ()))
    for module in chain([package], public, map(sys.modules.get, parents)):
        if getattr(module, kind.__name__, None) is kind:
            return f"{module.__name__}.{kind.__name__}"
    return f"{kind.__module__}.{kind.__name__}"


def is_tensor(values: Any) -> bool:
    """Whether ``values`` is a torch tensor; does not import torch."""
    tensor = vars(sys.modules.get("torch", sys)).get("Tensor")  # PyTorch may be deferred
    return tensor is not None and isinstance(values, tensor)


def instead_of(values: Any) -> str:
    """What to give instead of an array or tensor whose numbers cannot be read; "" if they can."""
    if isinstance(values, float) or (type(values) is np.ndarray and _usual(values)):
        return ""  # of most calls
    if too_large(values):
        return f"numbers of magnitudes up to {sys.float_info.max:.2g}"
    if _masked(values):
        return "an array without a mask, e.g. with the method filled"
    if is_tensor(values):
        try:
            as_numpy(values.detach().flatten()[:0])
        except (TypeError, RuntimeError):  # on device "meta", sparse, or e.g. bfloat16
            return "a dense tensor with data, of a type that NumPy has, e.g. torch.float64"
    if _axes(values) > MOST_AXES:
        return f"at most {MOST_AXES} axes"
    return ""


def too_large(values: Any) -> bool:
    """Whether ``values`` is an integer that no float can hold, or contains one."""
    if isinstance(values, int):
        return abs(values) > _LARGEST
    if isinstance(values, list | tuple):
        return any(map(too_large, values))
    objects = isinstance(values, np.ndarray) and values.dtype.kind == "O"
    return objects and any(map(too_large, values.flat))


def _usual(values: NDArray[Any]) -> bool:
    return values.ndim <= MOST_AXES and values.dtype.kind != "O"


def check_readable(name: str, values: Any) -> None:
    """Raise if ``values`` is an array or tensor whose numbers cannot be read."""
    instead = instead_of(values)
    if instead:
        raise ValueError(f"{name} is {shown(values)}: give {instead}.")


def as_array(name: str, values: Any) -> NDArray[Any]:
    """``values``, array-like or a tensor on any device, as a NumPy array."""
    check_readable(name, values)
    try:
        return np.asarray(as_numpy(values))
    except (ValueError, TypeError, RuntimeError) as error:  # ragged, or a list of such tensors
        text = " ".join(str(error).split())
        raise ValueError(f"{name} is not an array of numbers: {text}") from error


def _masked(values: Any) -> bool:
    """Whether ``values`` is a masked array, or a nested list that contains one."""
    nested = isinstance(values, list | tuple) and not {*map(type, values)} <= {int, float}
    return isinstance(values, np.ma.MaskedArray) or (nested and any(map(_masked, values)))


def _axes(values: Any) -> int:
    """Number of axes of an array, a tensor or a nested list."""
    axes = 0
    while isinstance(values, list | tuple) and values:
        values, axes = values[0], axes + 1
    return axes + int(getattr(values, "ndim", 0))


def as_numpy(values: Any) -> Any:
    """A torch tensor on any device as a NumPy array, without its gradient; else ``values``."""
    if not is_tensor(values):
        return values
    return values.detach().cpu().resolve_conj().resolve_neg().numpy()


def common_shape(
    arguments: dict[str, tuple[int, ...]], compared: Iterable[tuple[int, ...]], layout: str
) -> tuple[int, ...]:
    """The shape to which ``compared`` broadcast.

    Args:
        arguments: their shapes, by name, for the message.
        compared: shapes that must broadcast, e.g. those of the leading axes.
        layout: what to give instead, for the message.
    """
    try:
        return np.broadcast_shapes(*compared)
    except ValueError:
        shapes = ", ".join(f"{name} {shape}" for name, shape in arguments.items())
        raise ValueError(f"the shapes do not fit: {shapes}. Give {layout}.") from None


def check_amounts(name: str, values: ArrayLike) -> None:
    """Raise unless ``values`` are finite and >= 0, and no product of a few of them overflows."""
    array = np.asarray(values, dtype=np.float64)
    if not array.size or (
        array.item(array.argmin()) >= 0 and array.item(array.argmax()) <= MOST  # False for NaN
    ):
        return
    bad = array[~((array >= 0) & (array <= MOST))]
    raise ValueError(f"{name} contains {bad.flat[0]}: give finite numbers >= 0.")


def checked_rows(name: str, rows: ArrayLike) -> IntArray:
    """``rows`` as an array of integers >= 0, [rows]."""
    array = as_array(name, rows)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(
            f"{name} has shape {array.shape} and dtype {array.dtype}: give one axis of integers."
        )
    if array.size and array.min() < 0:
        raise ValueError(f"{name} contains {array.min()}: give integers >= 0.")
    return array.astype(np.int64)


def checked_cells(cell_of: ArrayLike) -> IntArray:
    """A read-only copy of ``cell_of``, if it is sorted and covers cells 0, 1, ... without gaps."""
    array = as_array("cell_of", cell_of)
    if array.ndim != 1 or not array.size or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"cell_of has shape {array.shape} and dtype {array.dtype}: give [clients] integers."
        )
    cells = array.astype(np.int64)
    steps = cells.copy()
    steps[1:] -= cells[:-1]
    steps[0] += 1  # so that cell 0 must come first
    down = np.flatnonzero((steps < 0) | (cells < 0))
    if down.size:
        at = down[0]
        raise ValueError(
            f"cell_of[{at}] is {cells[at]}"
            + (f" after {cells[at - 1]}" if at else "")
            + ": cells are numbered from 0 in increasing order. Sort the clients by cell."
        )
    if (steps > 1).any():
        at = np.flatnonzero(steps > 1)[0]
        raise ValueError(
            f"cell {cells[at] - 1} has no client: number the cells 0, 1, ... without gaps."
        )
    return compact(cells)


def compact(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """``values`` [n, ...], read-only; equal rows take the memory of one."""
    first = values[:1].copy()
    compacted = np.broadcast_to(first, values.shape) if (values == first).all() else values
    compacted.setflags(write=False)
    return compacted


def increasing(name: str, values: ArrayLike) -> IntArray:
    """A read-only copy of ``values`` as strictly increasing integers >= 0."""
    numbers = checked_rows(name, values)
    down = np.flatnonzero(np.diff(numbers) < 1)
    if down.size:
        at = down[0] + 1
        raise ValueError(
            f"{name}[{at}] is {numbers[at]} after {numbers[at - 1]}: list each client once, in "
            "increasing order."
        )
    numbers.setflags(write=False)
    return numbers


def checked_part(cell_of: ArrayLike, part: ArrayLike, cells: int) -> tuple[IntArray, IntArray]:
    """Read-only cells and indices of the clients of a sub-network; some cells may be empty."""
    numbers, cells_of = checked_rows("part", part), checked_rows("cell_of", cell_of)
    if cells_of.shape != numbers.shape:
        raise ValueError(
            f"part has shape {numbers.shape}: give one index per client, here {cells_of.shape}."
        )
    if cells_of.size and ((np.diff(cells_of) < 0).any() or cells_of[-1] >= cells):
        raise ValueError(
            f"cell_of has maximum {cells_of.max()}, or is not sorted: sort the clients by cell, "
            f"and give cells below {cells}, the number of cells of bandwidth_hz."
        )
    steps = np.diff(numbers)
    wrong = np.flatnonzero((steps == 0) | ((steps < 0) & (np.diff(cells_of) == 0)))
    if wrong.size:
        at = wrong[0] + 1
        raise ValueError(
            f"part[{at}] is {numbers[at]} after {numbers[at - 1]}: list each client once, in "
            "increasing order in its cell."
        )
    if (steps < 0).any() and len(np.unique(numbers)) < len(numbers):
        raise ValueError(f"part is {shown(numbers)}: list each client once.")
    cells_of.setflags(write=False)
    numbers.setflags(write=False)
    return cells_of, numbers


def in_range(
    name: str,
    values: ArrayLike,
    axis: tuple[str, int | tuple[int, ...]],
    *,
    above: float = -np.inf,
    min_value: float = -np.inf,
    limit: float = np.inf,
) -> FloatArray:
    """A read-only float64 copy of ``values``, broadcast to ``axis``, finite and in range.

    Equal values take the memory of one.

    Args:
        name: name of the argument, for messages.
        values: one number, or one per entry of the axis or axes.
        axis: name and length of the axis, or names and lengths of axes; the name is empty for a
            single number.
        above: exclusive lower bound.
        min_value: inclusive lower bound.
        limit: largest magnitude.
    """
    unit, count = axis
    shape = count if isinstance(count, tuple) else (int(count),)
    array = np.array(values, dtype=np.float64, order="C")
    if array.shape not in {(), shape}:
        interval = f"one number or [{unit}], here {shape}" if unit else "one number"
        raise ValueError(f"{name} has shape {array.shape}: give {interval}.")
    low = max(min_value, -limit)
    bad = ~(np.isfinite(array) & (array > above) & (array >= low) & (array <= limit))
    if 0 in (above, min_value):
        bad |= (array != 0) & ~((array >= LEAST) & (array <= MOST))
    if bad.any():
        index = f"[{', '.join(map(str, np.argwhere(bad)[0]))}]" if array.ndim else ""
        interval = "a finite number"
        if above > -np.inf:
            interval += f" > {above:g}"
        if min_value > -np.inf:
            interval += f" >= {min_value:g}"
        if limit < np.inf:
            interval += f" within [{-limit:g}, {limit:g}]"
        if 0 in (above, min_value):
            interval += f", from {LEAST:g} to {MOST:g}"
        raise ValueError(f"{name}{index} is {array[bad].flat[0]}: give {interval}.")
    return compact(np.broadcast_to(array, shape).reshape(-1)).reshape(shape)
