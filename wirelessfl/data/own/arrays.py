"""Arrays of inputs and labels, converted to the tensors of a data set.

Values keep their range; only the bytes of images become numbers in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from wirelessfl.errors import DataError
from wirelessfl.guard import calling, described

CHANNELS = (1, 3, 4)
"""Numbers of channels of grey images, colour images, and colour images with transparency."""
SAMPLED = 1000
"""Number of samples that notes are based on."""


@dataclass(frozen=True)
class Arrays:
    """Inputs and labels of training and test samples.

    Args:
        inputs: [n, ...] of the training and of the test samples.
        labels: [n] or [n, ...] of the training and of the test samples.
        notes: what the conversion has changed, one line each.
    """

    inputs: tuple[torch.Tensor, torch.Tensor]
    labels: tuple[torch.Tensor, torch.Tensor]
    notes: tuple[str, ...] = ()


def converted(inputs: tuple[Any, Any], labels: tuple[Any, Any], name: str) -> Arrays:
    """Convert arrays, tensors or lists of training and test samples.

    Args:
        inputs: of the training and of the test samples, [n, ...].
        labels: of the training and of the test samples, [n, ...].
        name: name of the data set, for messages.

    Raises:
        DataError: an array has no numbers, is ragged, or has bytes of unclear meaning; labels are
            words.
    """
    parts = ("train", "test")
    found = [_tensor(x, f"{name}: {part}_inputs") for x, part in zip(inputs, parts, strict=True)]
    images, notes = _images(found[0], found[1], name)
    floats = [_inputs(x, f"{name}: {p}_inputs") for x, p in zip(images, parts, strict=True)]
    targets = [_labels(y, f"{name}: {part}_labels") for y, part in zip(labels, parts, strict=True)]
    return Arrays((floats[0], floats[1]), (targets[0], targets[1]), notes)


def range_note(inputs: torch.Tensor) -> str | None:
    """A note if float inputs look like the bytes 0..255 of images; None otherwise.

    Args:
        inputs: [n, ...], of which the first samples are checked.
    """
    some = inputs[:SAMPLED]
    if inputs.dtype != torch.float32 or not some.numel():
        return None
    low, high = some.aminmax()
    if low < 0 or not 100 < high <= 255:
        return None
    return (
        f"inputs are in {low:g}..{high:g}, like bytes of images, and are used as they are. Most "
        "models need values near [-1, 1]: divide by 255."
    )


def _tensor(given: Any, where: str) -> torch.Tensor:
    """A tensor of the given values, on the CPU and without gradients.

    Raises:
        DataError: they are not an array of numbers.
    """
    if (
        isinstance(given, list | tuple)
        and given
        and all(isinstance(g, torch.Tensor) for g in given)
    ):
        shapes = {tuple(each.shape) for each in given}
        if len(shapes) > 1:
            raise DataError(f"{where} has samples of shapes {_listed(shapes)}: give one shape.")
        given = torch.stack([each.detach().cpu() for each in given])
    if isinstance(given, torch.Tensor):
        found = given.detach().cpu()
    else:
        try:
            array = np.asarray(given)
        except (TypeError, ValueError):  # ragged
            array = np.empty(0, dtype=object)
        if array.dtype.kind in "OUSMmV":
            what = "words" if array.dtype.kind in "US" else "not numbers of one shape"
            raise DataError(f"{where} is {described(given)}, {what}: give an array of numbers.")
        with calling(f"{where} cannot be a tensor", DataError):
            found = _from_numpy(array)
    if found.is_complex() or found.dim() == 0:
        raise DataError(f"{where} is {described(found)}: give real numbers [n, ...].")
    return found


def _from_numpy(array: np.ndarray) -> torch.Tensor:
    """A tensor with the values of an array of any byte order and any layout."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # long double
        array = array.astype(np.float64)
    if not array.flags.writeable or min(array.strides, default=1) < 0:  # torch warns or refuses
        array = array.copy()
    return torch.from_numpy(array)


def _listed(shapes: set[tuple[int, ...]]) -> str:
    first = [str(list(shape)) for shape in sorted(shapes)[:3]]
    return ", ".join(first) + (", ..." if len(shapes) > 3 else "")


def _images(
    train: torch.Tensor, test: torch.Tensor, name: str
) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[str, ...]]:
    """Bytes of images as numbers in [0, 1] with channels first, and notes on what was done.

    Raises:
        DataError: bytes [n, values] may be pixels or token ids.
    """
    if train.dtype != torch.uint8 or test.dtype != torch.uint8:
        return (train, test), _layout_note(train)
    if train.dim() < 3:
        raise DataError(
            f"{name}: train_inputs is {described(train)}, which may be pixels or token ids: give "
            "pixels as float32, e.g. inputs / 255, or token ids as int64."
        )
    done = "image bytes 0..255 were scaled to [0, 1]"
    if train.dim() == 3:
        train, test = train[:, None], test[:, None] if test.dim() == 3 else test
        done += f", of shape {list(train.shape[1:])}"
    elif _channels_last(train):
        train, test = train.movedim(-1, 1), test.movedim(-1, 1)
        done += f", with channels first: {list(train.shape[1:])}"
    unit = tuple(x.contiguous().to(torch.float32).div_(255) for x in (train, test))
    return (unit[0], unit[1]), (f"{done}.",)


def _layout_note(train: torch.Tensor) -> tuple[str, ...]:
    """A note if inputs that are used as they are look like images with channels last."""
    if not _channels_last(train):
        return ()
    return (
        f"inputs have shape {list(train.shape[1:])}, like images with channels last, and are used "
        "as they are. Convolutional models need channels first: np.moveaxis(inputs, -1, 1).",
    )


def _channels_last(inputs: torch.Tensor) -> bool:
    shape = inputs.shape
    return inputs.dim() == 4 and shape[-1] in CHANNELS and shape[1] not in CHANNELS


def _inputs(found: torch.Tensor, where: str) -> torch.Tensor:
    """Inputs as float32, or integers as int64."""
    if found.is_floating_point() or found.dtype == torch.bool:
        return found.to(torch.float32)
    return found if found.dtype == torch.uint8 else found.to(torch.int64)


def _labels(given: Any, where: str) -> torch.Tensor:
    """Labels as int64 or float32; true and false are classes, or flags [n, labels] as floats.

    Raises:
        DataError: they are not numbers.
    """
    if not isinstance(given, torch.Tensor):
        try:
            words = np.asarray(given).dtype.kind in "US"
        except (TypeError, ValueError, RuntimeError):  # ragged, or tensors with gradients
            words = False
        if words or _has_words(given):
            raise DataError(
                f"{where} are words: give numbers of classes, e.g. names, labels = "
                "np.unique(words, return_inverse=True), with the same names for training and test."
            )
    found = _tensor(given, where)
    if found.is_floating_point():
        return found.to(torch.float32)
    if found.dtype == torch.bool and found.dim() > 1:
        return found.to(torch.float32)
    return found.to(torch.int64)


def _has_words(given: Any) -> bool:
    """Whether an array of objects, such as a column of a table, has words."""
    dtype = getattr(given, "dtype", None)
    if getattr(dtype, "kind", "") != "O" and not isinstance(given, list | tuple):
        return False
    first = next(iter(given), None)
    return isinstance(first, str | bytes)
