"""Labels of data sets: classes, several labels per sample, pixels, or real numbers."""

from __future__ import annotations

import torch

from wirelessfl.errors import DataError


def is_one_class(labels: torch.Tensor) -> bool:
    """Whether each sample has one class: int64 labels [n]."""
    return labels.dtype == torch.int64 and labels.dim() == 1


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
            "number of model outputs, i.e. of classes or of labels per sample."
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
    several = tuple(labels.shape[1:]) == (classes,)  # 0 or 1 for each of the model's outputs
    if low < 0 or high >= (max(classes, 2) if several else classes):
        raise DataError(
            f"{where} span {int(low)}..{int(high)}; with classes={classes} give labels in "
            f"0..{classes - 1}."
        )
