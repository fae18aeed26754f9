"""Labels of data sets: classes, several labels per sample, pixels, or real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch

from wirelessfl.errors import DataError

NAMED = 5
"""Maximum number of labels, or of ranges of labels, that a message names."""


def is_one_class(labels: torch.Tensor) -> bool:
    """Whether each sample has one class: int64 labels [n]."""
    return labels.dtype == torch.int64 and labels.dim() == 1


def class_hint(labels: torch.Tensor) -> str:
    """A sentence on labels that may be meant as classes but are not int64 [n]; "" for others.

    >>> import torch
    >>> from wirelessfl.data.label_kinds import class_hint
    >>> class_hint(torch.eye(3))
    ' If these are classes, give one integer per sample: labels.argmax(1).'

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

    >>> import torch
    >>> from wirelessfl.data.label_kinds import label_notes
    >>> label_notes(torch.tensor([1, 2, 3]), torch.tensor([2]), classes=4)
    ['no sample has the label 0. Labels start at 0: subtract 1.']

    Args:
        train: [n], classes of the training samples.
        test: [m], classes of the test samples.
        classes: number of classes; None if it does not come from the labels. It may come from them
            if it is the largest one plus 1; only then may labels without samples be a mistake.
    """
    known = np.unique(train.numpy())
    values = np.union1d(known, test.numpy()).tolist()
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
    only = sorted({*values} - {*known.tolist()})
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

    Raises:
        DataError: int64 labels [n, ...] may be of any number of classes.
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

    Raises:
        DataError: they are not.
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
