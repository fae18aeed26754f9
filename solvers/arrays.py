"""Conversion of arguments and results between NumPy arrays and torch tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels.arrays import FloatArray
from channels.validation import LEAST, MOST, as_array, common_shape, is_tensor


def numbers(name: str, values: Any) -> NDArray[np.float64]:
    """``values`` as a float64 NumPy array."""
    array = as_array(name, values)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} has dtype {array.dtype}: give real numbers.")
    return array.astype(np.float64, copy=False)


def like(model: Any, array: NDArray[Any]) -> Any:
    """``array`` as a tensor on the device of ``model`` if that is a tensor, else unchanged."""
    if not is_tensor(model):
        return array
    return sys.modules["torch"].from_numpy(np.asarray(array)).to(model.device)


def first(good: NDArray[np.bool_], values: NDArray[np.float64]) -> tuple[str, float]:
    """Index, e.g. "[0, 2]", and value of the first entry that is not ``good``."""
    index = np.unravel_index(int((~good).argmax()), good.shape)
    text = f"[{', '.join(str(int(i)) for i in index)}]" if index else ""
    return text, float(values[index])


def finite(name: str, values: Any, unit: str, above: bool = False) -> FloatArray:
    """``values`` as a float64 array, if all are finite and >= 0, or ``above`` 0."""
    array = numbers(name, values)
    good = (array > 0 if above else array >= 0) & (array < np.inf)
    if not good.all():
        index, value = first(good, array)
        raise ValueError(
            f"{name}{index} is {value}: give a finite number {'>' if above else '>='} 0, in {unit}."
        )
    usual = (array == 0) | ((array >= LEAST) & (array <= MOST))
    if not usual.all():
        index, value = first(usual, array)
        raise ValueError(
            f"{name}{index} is {value}: give {'' if above else '0 or '}a number from {LEAST:g} to "
            f"{MOST:g}, in {unit}."
        )
    return array


def broadcast(
    arrays: dict[str, FloatArray],
    scalars: dict[str, FloatArray],
    axes: str,
    problems: dict[str, FloatArray] | None = None,
) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray]]:
    """All arguments broadcast to one shape; some to that without its last axis or axes.

    Args:
        arrays: by name, those of ``axes``.
        scalars: by name, those of ``axes`` without the clients.
        axes: names of the axes, for messages.
        problems: by name, those of ``axes`` without cells and clients; None means that there are
            none.

    Returns:
        ``arrays``, ``scalars`` and ``problems``.
    """
    problems = problems or {}
    groups = arrays, scalars, problems
    shapes = {name: array.shape for group in groups for name, array in group.items()}
    compared = (
        a.shape + (1,) * lacks for lacks, group in enumerate(groups) for a in group.values()
    )
    per_problem = axes.replace(", clients", "")
    layout = f"{axes}, and {' and '.join(scalars)} {per_problem}"
    if problems:
        layout += f", and {' and '.join(problems)} {per_problem.replace(', cells', '')}"
    shape = common_shape(shapes, compared, layout)
    if shape[-1] == 0:
        name = next(iter(arrays))
        raise ValueError(f"{name} has shape {arrays[name].shape}: give {axes}, with clients.")
    full, cells, single = (
        [np.broadcast_to(a, shape[: len(shape) - lacks]) for a in group.values()]
        for lacks, group in enumerate(groups)
    )
    return full, cells, single
