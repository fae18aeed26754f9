"""Data sets of single samples: torch's, torchvision's, and those of Hugging Face."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from wirelessfl.errors import DataError
from wirelessfl.guard import calling, described

IMAGES = ("image", "img", "pixel_values", "inputs", "input", "features", "x")
LABELS = ("label", "labels", "fine_label", "target", "targets", "y")
"""Names of columns, in order of preference."""


@dataclass(frozen=True)
class Collected:
    """All samples of a data set.

    Args:
        inputs: [n, ...].
        labels: [n, ...].
        classes: number of classes that the data set names; None if it names none.
    """

    inputs: Any
    labels: Any
    classes: int | None


def is_samples(thing: Any) -> bool:
    """Whether an object is a data set of samples with an index."""
    return isinstance(thing, torch.utils.data.Dataset) or is_table(thing)


def is_table(thing: Any) -> bool:
    """Whether an object is a data set of Hugging Face, without importing their package."""
    return hasattr(thing, "column_names") and hasattr(thing, "features")


def collected(data: Any, columns: tuple[str, str] | None, where: str) -> Collected:
    """Read all samples of a data set once, in their order.

    Args:
        data: data set of torch or of Hugging Face.
        columns: names of the columns of inputs and labels; None to look for usual names.
        where: what the data set is, for messages.

    Raises:
        DataError: it has no length, a sample is not a pair of input and label, or samples differ in
            shape.
    """
    if is_table(data):
        return _of_table(data, columns, where)
    if isinstance(data, torch.utils.data.TensorDataset) and len(data.tensors) == 2:
        return Collected(*data.tensors, None)
    count = _length(data, where)
    inputs, labels = [], []
    for place in range(count):
        with calling(f"{where}[{place}]", DataError):
            item = data[place]
        if not isinstance(item, Sequence) or len(item) != 2 or isinstance(item, str):
            raise DataError(f"{where}[{place}] is {described(item)}: give samples (input, label).")
        inputs.append(_array(item[0], f"{where}[{place}], input"))
        labels.append(_array(item[1], f"{where}[{place}], label"))
    names = getattr(data, "classes", None)
    classes = len(names) if isinstance(names, list | tuple) and names else None
    return Collected(stacked(inputs, where), stacked(labels, f"{where}, labels"), classes)


def stacked(arrays: Sequence[np.ndarray], where: str) -> np.ndarray:
    """Arrays of equal shape as one array.

    Raises:
        DataError: there is no array, or shapes differ; the message names the first sample.
    """
    if not arrays:
        raise DataError(f"{where} has no samples: give at least one.")
    for place, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise DataError(
                f"{where}[{place}] has shape {list(array.shape)}, but {where}[0] "
                f"{list(arrays[0].shape)}: give all samples the same shape, e.g. resize images."
            )
    return np.stack(arrays)


def _length(data: Any, where: str) -> int:
    try:
        return len(data)
    except TypeError:
        raise DataError(
            f"{where} is {type(data).__name__}, which has no length: give a data set with __len__ "
            "and __getitem__."
        ) from None


def _array(value: Any, where: str) -> np.ndarray:
    """An input or a label as an array; images of PIL become bytes."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    if getattr(value, "mode", None) in ("P", "1", "CMYK", "LA", "PA"):  # palettes and the like
        value = value.convert("RGB")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind == "O":
        raise DataError(f"{where} is {described(value)}: give numbers, a tensor, or an image.")
    return array


def _of_table(data: Any, columns: tuple[str, str] | None, where: str) -> Collected:
    """Read the columns of inputs and labels of a Hugging Face data set.

    Raises:
        DataError: a column is missing, or has words.
    """
    names = data.column_names
    if isinstance(names, Mapping):
        raise DataError(f"{where} is a set of splits: give one split.")
    if columns is None:
        first, second = _column(names, IMAGES), _column(names, LABELS)
        if first is None or second is None:
            raise DataError(
                f"{where} has the columns {', '.join(names)}: name those of inputs and labels, "
                'as_dataset(data, columns=("image", "label")).'
            )
    else:
        first, second = columns
        for column in columns:
            if column not in names:
                raise DataError(
                    f"columns names {column!r}, but {where} has {', '.join(names)}: choose two."
                )
    inputs, labels = [], []
    for place, row in enumerate(_rows(data, where)):
        if isinstance(row[first], str):
            raise DataError(
                f"{where}[{place}] has text in column {first!r}: give token ids, or use the texts "
                "as a data set of their own, see docs/language.md."
            )
        if isinstance(row[second], str):
            raise DataError(
                f"{where}[{place}] has the label {row[second]!r}: give numbers, by "
                f"data.class_encode_column({second!r})."
            )
        inputs.append(_array(row[first], f"{where}[{place}], {first}"))
        labels.append(_array(row[second], f"{where}[{place}], {second}"))
    classes = getattr(data.features.get(second), "num_classes", None)
    return Collected(stacked(inputs, where), stacked(labels, f"{where}, labels"), classes)


def _rows(data: Any, where: str) -> Iterator[Mapping[str, Any]]:
    with calling(where, DataError):
        yield from data


def _column(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in names), None)
