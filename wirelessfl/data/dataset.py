"""A data set in memory: inputs and labels as tensors, ready to be gathered by index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from channels.arrays import IntArray
from wirelessfl.data.labels import checked_groups
from wirelessfl.errors import DataError
from wirelessfl.wording import shown


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples to train and to test on.

    Args:
        name: name in settings and messages.
        train_inputs: [n, channels, height, width] or [n, features...], float32; the data sets of
            this package are scaled to [-1, 1]. Or int64, e.g. token ids [n, length]; those below
            256 may be uint8, an eighth of the memory: models get them ``widened``.
        train_labels: [n], int64, in [0, classes).
        test_inputs: [m, ...], of the type, shape and scale of ``train_inputs``.
        test_labels: [m], int64, in [0, classes).
        classes: number of labels.
        groups: [n], integers: the natural client of each training sample; None where there is none.
            A list becomes an array.
        verification: how the content was checked, in words.
        pad_id: the token that pads texts on the right; None for other inputs.

    Raises:
        DataError: a shape, type or range differs from the above, or an input is not finite.
    """

    name: str
    train_inputs: Tensor
    train_labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    classes: int
    groups: IntArray | None = None
    verification: str = "not checksummed"
    pad_id: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DataError(f'name is {shown(self.name)}: give text, such as "my-data".')
        if self.pad_id is not None and not isinstance(self.pad_id, int | np.integer):
            raise DataError(f"{self.name}: pad_id is {shown(self.pad_id)}; give an integer.")
        classes = self.classes
        if isinstance(classes, bool) or not isinstance(classes, int | np.integer) or classes < 1:
            raise DataError(f"{self.name}: classes is {shown(classes)}; give the number of labels.")
        for part in ("train", "test"):
            self._check(part, getattr(self, f"{part}_inputs"), getattr(self, f"{part}_labels"))
        if self.test_inputs.shape[1:] != self.train_inputs.shape[1:]:
            raise DataError(
                f"{self.name}: test inputs have shape {list(self.test_inputs.shape[1:])} a sample, "
                f"training inputs {self.input_shape}: give both the same."
            )
        if self.test_inputs.dtype != self.train_inputs.dtype:
            raise DataError(
                f"{self.name}: test inputs are {self.test_inputs.dtype}, training inputs "
                f"{self.train_inputs.dtype}: give both the same."
            )
        if self.groups is not None:
            groups = checked_groups(self.groups, len(self.train_labels), f"{self.name}: groups")
            object.__setattr__(self, "groups", groups)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input, without the sample axis."""
        return tuple(self.train_inputs.shape[1:])

    def _check(self, part: str, inputs: Tensor, labels: Tensor) -> None:
        where = f"{self.name}: {part}"
        for kind, given in (("inputs", inputs), ("labels", labels)):
            _check_tensor(f"{where}_{kind}", given)
        # uint8 of more dimensions are pixels that somebody has forgotten to scale.
        known = (torch.float32, torch.int64, *([torch.uint8] if inputs.dim() == 2 else []))
        if inputs.dtype not in known or inputs.dim() < 2:
            raise DataError(
                f"{where}_inputs is {inputs.dtype} {list(inputs.shape)}; give float32 [n, ...], or "
                "int64, e.g. token ids [n, length] (below 256 also uint8)."
            )
        if labels.dtype != torch.int64 or labels.dim() != 1:
            raise DataError(
                f"{where}_labels is {labels.dtype} {list(labels.shape)}; give int64 [n]."
            )
        if not len(inputs) == len(labels) > 0:
            raise DataError(
                f"{where} has {len(inputs)} inputs and {len(labels)} labels; give as many of each, "
                "at least one."
            )
        low, high = labels.aminmax()
        if low < 0 or high >= self.classes:
            raise DataError(
                f"{where}_labels span {int(low)}..{int(high)}; with classes={self.classes} they "
                f"must lie in 0..{self.classes - 1}."
            )
        # aminmax passes NaN on, and needs no mask of the inputs' size.
        if inputs.numel() and not torch.stack(inputs.aminmax()).isfinite().all():
            raise DataError(f"{where}_inputs hold NaN or infinite values; clean or scale them.")


def _check_tensor(name: str, given: object) -> None:
    if not isinstance(given, Tensor):
        kind = f"{type(given).__module__}.{type(given).__name__}"
        raise DataError(f"{name} is a {kind}: give torch tensors, e.g. torch.from_numpy(...).")


def widened(inputs: Tensor) -> Tensor:
    """What a model is given: token ids of one byte as int64, other inputs as they are."""
    return inputs.long() if inputs.dtype == torch.uint8 else inputs


def scale_pixels(pixels: NDArray[np.uint8]) -> Tensor:
    """Bytes 0..255 of any shape as float32 in [-1, 1]."""
    scaled = pixels.astype(np.float32)
    scaled /= 127.5
    scaled -= 1.0
    return torch.from_numpy(scaled)
