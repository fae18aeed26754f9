"""Conversion of arguments and results between NumPy arrays and torch tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels.validation import is_tensor


def numbers(name: str, values: Any) -> NDArray[np.float64]:
    """``values`` as a float64 NumPy array.

    Raises:
        ValueError: ``values`` is not an array of real numbers.
    """
    if is_tensor(values):
        values = values.detach().cpu()
        values = values.double().numpy() if values.is_floating_point() else values.numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is not an array of numbers: {error}") from error
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} has dtype {array.dtype}: give real numbers.")
    return array.astype(np.float64, copy=False)


def like(given: Any, array: NDArray[Any]) -> Any:
    """``array`` as a tensor on the device of ``given`` if that is a tensor, else unchanged."""
    if not is_tensor(given):
        return array
    return sys.modules["torch"].from_numpy(array).to(given.device)


def first(good: NDArray[np.bool_], values: NDArray[np.float64]) -> tuple[str, float]:
    """Index, e.g. "[0, 2]", and value of the first entry that is not ``good``."""
    index = np.unravel_index(int((~good).argmax()), good.shape)
    text = f"[{', '.join(str(int(i)) for i in index)}]" if index else ""
    return text, float(values[index])
