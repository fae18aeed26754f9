"""Labels, groups and cells: what they mean, and checks shared by data sets, splits and plots."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from channels import even_cells
from channels.arrays import IntArray
from channels.validation import checked_cells, whole_number
from wirelessfl.base.errors import DataError

NAMED = 5
"""Maximum number of labels, or of ranges of labels, that a message names."""


def is_one_class(labels: torch.Tensor) -> bool:
    """Whether each sample has one class: int64 labels [n]."""
    return labels.dtype == torch.int64 and labels.dim() == 1


def class_hint(labels: torch.Tensor) -> str:
    """A sentence on labels that may be meant as classes but are not int64 [n]; "" for others.

    Args:
        labels: [n, ...].
    """
    whole = bool((labels == labels.round()).all()) and bool((labels >= 0).all())
    if is_one_class(labels) or labels.dim() > 2 or not whole:
        return ""
    if labels.dim() == 2 and labels.shape[1] > 1:
        if labels.max() > 1 or bool((labels.sum(1) != 1).any()):
            return ""
        how = "labels.argmax(1)"
    else:
        how = "labels[:, 0]" if labels.dim() == 2 else "labels"
        how += "" if labels.dtype == torch.int64 else " as int64"
    return f" If these are classes, give one integer per sample: {how}."


def class_remedy(labels: torch.Tensor) -> str:
    """The end of a sentence on labels that are not int64 [n]: the hint if any, and "choose".

    Args:
        labels: [n, ...].
    """
    hint = class_hint(labels)
    return f".{hint} If not, choose" if hint else ": choose"


def label_notes(train: torch.Tensor, test: torch.Tensor, classes: int | None = None) -> list[str]:
    """Lines on labels without samples: those of no sample at all, and those of test samples only.

    Args:
        train: [n], classes of the training samples.
        test: [m], classes of the test samples.
        classes: number of classes; None if it does not come from the labels. It may come from them
            if it is the largest one plus 1; only then may labels without samples be a mistake.
    """
    trained = np.unique(train.numpy())
    values = np.union1d(trained, test.numpy()).tolist()
    gaps = [(low + 1, high - 1) for low, high in pairwise([-1, *values]) if high - low > 1]
    if classes != values[-1] + 1:
        gaps = []
    notes = []
    if gaps:
        names = [str(low) if low == high else f"{low}..{high}" for low, high in gaps]
        remedy = "Number the classes without gaps: np.unique(labels, return_inverse=True)[1]."
        if len(gaps) == 1 and gaps[0][0] == 0:
            remedy = f"Labels start at 0: subtract {values[0]}."
        notes.append(f"no sample has the {_labels(names)}. {remedy}")
    only = sorted({*values} - {*trained.tolist()})
    if only:
        notes.append(f"no training sample has the test {_labels([*map(str, only)])}.")
    return notes


def _labels(names: Sequence[str]) -> str:
    several = len(names) > 1 or ".." in names[0]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"label{'s' * several} {', '.join(names[:NAMED])}{more}"


def derived_classes(name: str, *labels: torch.Tensor) -> int:
    """The number of a model's outputs that follows from the labels.

    It is the largest label plus 1 for int64 [n], 1 for float32 [n], and D for float32 [n, D, ...].

    Args:
        name: name of the data set, for messages.
        labels: training and test labels.
    """
    first = labels[0]
    if first.dtype == torch.float32:
        return first.shape[1] if first.dim() > 1 else 1
    if first.dtype == torch.int64 and first.dim() > 1:
        raise DataError(
            f"{name}: classes cannot be inferred from int64 labels {list(first.shape)}: give the "
            f"number of model outputs, i.e. of classes or of labels per sample.{class_hint(first)}"
        )
    return max((int(part.max()) for part in labels if part.numel()), default=0) + 1


def check_values(where: str, labels: torch.Tensor, classes: int) -> None:
    """Raise unless integer labels are in [0, classes), or 0 and 1; and others are finite.

    Args:
        where: name of the labels, for messages.
        labels: [n, ...].
        classes: number of outputs of the model.
    """
    if not labels.numel():
        raise DataError(f"{where} is {list(labels.shape)}: give at least one value per sample.")
    low, high = labels.aminmax()
    if labels.dtype != torch.int64:
        if not torch.stack([low, high]).isfinite().all():
            raise DataError(f"{where} contain NaN or infinite values: clean or scale them.")
        return
    if low < 0:
        raise DataError(
            f"{where} span {int(low)}..{int(high)}: labels start at 0: add {-int(low)}."
        )
    several = tuple(labels.shape[1:]) == (classes,)  # 0 or 1 for each of the model's outputs
    if high >= (max(classes, 2) if several else classes):
        remedy = f", by subtracting {int(low)}" if low > 0 and high - low < classes else ""
        raise DataError(
            f"{where} span {int(low)}..{int(high)}; with classes={classes} give labels in "
            f"0..{classes - 1}{remedy}."
        )


def checked_number(name: str, value: Any, min_value: int) -> int:
    """``value`` as an int."""
    try:
        number = whole_number(name, value)
    except TypeError as error:
        raise DataError(str(error)) from None
    if number < min_value:
        raise DataError(f"{name} is {number}; give an integer >= {min_value}.")
    return number


def checked_labels(labels: ArrayLike | torch.Tensor) -> NDArray[np.integer[Any]]:
    """``labels`` [n] as an array."""
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
    """``groups`` [samples] as an array."""
    advice = f"give one integer for each of the {samples} training samples."
    array = _integers(name, groups, advice)
    if array.shape != (samples,):
        raise DataError(f"{name} is {array.dtype} {list(array.shape)}; {advice}")
    return array


def cells_of_clients(clients: int, cells: int, cell_of: ArrayLike | None) -> IntArray:
    """The cell of each client, [clients]: ``cell_of``, else an even split over ``cells``."""
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
    """``indices`` [n] of ``samples`` samples as an array."""
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
    name: str, values: ArrayLike | torch.Tensor, advice: str = "give integers [n]."
) -> NDArray[np.integer[Any]]:
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists of unequal lengths
        raise DataError(f"{name} is not an array: {error}; {advice}") from None
    if array.dtype.kind not in "iu":
        raise DataError(f"{name} is {array.dtype} {list(array.shape)}; {advice}")
    return array
