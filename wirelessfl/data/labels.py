"""Validation of labels, groups and cells, shared by data sets, splits and plots."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from channels import even_cells
from channels.arrays import IntArray
from channels.validation import checked_cells, whole_number
from wirelessfl.errors import DataError


def checked_number(name: str, value: Any, min_value: int) -> int:
    """``value`` as an int.

    Raises:
        DataError: ``value`` is not an integer (2.0 is rejected), or is below ``min_value``.
    """
    try:
        number = whole_number(name, value)
    except TypeError as error:
        raise DataError(str(error)) from None
    if number < min_value:
        raise DataError(f"{name} is {number}; give an integer >= {min_value}.")
    return number


def checked_labels(labels: ArrayLike | torch.Tensor) -> NDArray[np.integer[Any]]:
    """``labels`` [n] as an array.

    Raises:
        DataError: ``labels`` is not a 1-D array of integers, or a label is negative.
    """
    array = _integers("labels", labels)
    if array.ndim != 1:
        raise DataError(f"labels is {array.dtype} {list(array.shape)}; give integers [n].")
    if array.size and array.min() < 0:
        index = int(array.argmin())
        raise DataError(f"labels[{index}] is {array[index]}; give labels >= 0.")
    return array


def checked_groups(
    groups: ArrayLike | torch.Tensor, samples: int, name: str = "groups"
) -> NDArray[np.integer[Any]]:
    """``groups`` [samples] as an array.

    Raises:
        DataError: ``groups`` does not have one integer per sample.
    """
    wanted = f"give one integer for each of the {samples} training samples."
    array = _integers(name, groups, wanted)
    if array.shape != (samples,):
        raise DataError(f"{name} is {array.dtype} {list(array.shape)}; {wanted}")
    return array


def cells_of_clients(clients: int, cells: int, cell_of: ArrayLike | None) -> IntArray:
    """The cell of each client, [clients]: ``cell_of`` if given, else an even split over ``cells``.

    Raises:
        DataError: ``cell_of`` does not list the sorted cells 0, 1, ... of ``clients`` clients, or
            ``cells`` is not an integer from 1 to ``clients``.
    """
    if cell_of is None:
        cells = checked_number("cells", cells, 1)
        if clients < cells:
            raise DataError(
                f"cells is {cells} with {clients} clients, but each cell needs a client; use more "
                "clients or fewer cells."
            )
        return even_cells(clients, cells)
    try:
        members = checked_cells(cell_of)
    except ValueError as error:
        raise DataError(str(error)) from None
    if len(members) != clients:
        raise DataError(
            f"cell_of has {len(members)} entries for {clients} clients; give one per client."
        )
    return members


def checked_indices(name: str, indices: ArrayLike | torch.Tensor, samples: int) -> IntArray:
    """``indices`` [n] of ``samples`` samples as an array.

    Raises:
        DataError: they are not integers from 0 to ``samples`` - 1.
    """
    if isinstance(indices, list | tuple) and not indices:  # NumPy takes [] for floats
        return np.zeros(0, dtype=np.int64)
    rows = _integers(name, indices, "give indices of samples.").astype(np.int64)
    wrong = rows[(rows < 0) | (rows >= samples)]
    if wrong.size:
        raise DataError(
            f"{name} contains {wrong[0]}, but labels has {samples} entries: give the labels that "
            "were split."
        )
    return rows


def _integers(
    name: str, values: ArrayLike | torch.Tensor, wanted: str = "give integers [n]."
) -> NDArray[np.integer[Any]]:
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists of unequal lengths
        raise DataError(f"{name} is not an array: {error}; {wanted}") from None
    if array.dtype.kind not in "iu":
        raise DataError(f"{name} is {array.dtype} {list(array.shape)}; {wanted}")
    return array
