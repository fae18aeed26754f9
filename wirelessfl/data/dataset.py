"""A data set in memory, inputs and labels as tensors; and what is known before it is read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from channels.arrays import IntArray
from channels.summaries import html_table
from wirelessfl.base.errors import DataError
from wirelessfl.base.wording import shown
from wirelessfl.data.labels import check_values, checked_groups, derived_classes

SAMPLES = 8
"""Number of samples of a data set that replaces the real one."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test samples.

    >>> import torch
    >>> from wirelessfl.data import Dataset
    >>> inputs, labels = torch.randn(20, 3), torch.arange(20) % 4
    >>> Dataset("mine", inputs, labels, inputs[:4], labels[:4])
    <Dataset mine: 20 + 4 samples [3], 4 classes>

    Args:
        name: name in settings and messages.
        train_inputs: [n, channels, height, width] or [n, features...], float32; the built-in data
            sets are scaled to [-1, 1]. Or int64, e.g. token ids [n, length]; ids below 256 may be
            uint8 to save memory, and are converted by ``widened`` for models.
        train_labels: [n], int64, in [0, classes): a class per sample. Or int64 [n, height, width]
            (any further axes): a class per pixel. Or [n, classes] in {0, 1}, int64 or float32:
            several labels per sample. Or float32 [n] or [n, D] (any further axes): regression.
        test_inputs: [m, ...], with the dtype, shape and scale of ``train_inputs``.
        test_labels: [m, ...], with the dtype and shape of ``train_labels``.
        classes: number of outputs of the model: of classes, of labels per sample, or of real
            numbers per sample. None to derive it: the largest label plus 1, 1 for float32 [n], D
            for float32 [n, D].
        groups: [n], integers, the natural client of each training sample; None if there are no
            natural clients. A list is converted to an array.
        verification: description of how the content was verified.
        pad_id: id of the token that pads texts on the right; None for other inputs.
        lossy: whether inputs were compressed with loss; a run then reports ``verification``.
        vocabulary: number of token ids, which start at 0: all inputs are below it. None if it is
            unknown, or if the inputs are not tokens.
        notes: what a conversion has changed, one line each; a run reports them.
        words: the word of each token id, "" for ids that are not words; None if unknown.

    Raises:
        DataError: a shape, dtype or range differs from the above, or an input is not finite.
    """

    name: str
    train_inputs: torch.Tensor
    train_labels: torch.Tensor
    test_inputs: torch.Tensor
    test_labels: torch.Tensor
    classes: int = None  # type: ignore[assignment]  # derived below
    groups: IntArray | None = None
    verification: str = "not checksummed"
    pad_id: int | None = None
    lossy: bool = False
    vocabulary: int | None = None
    notes: tuple[str, ...] = ()
    words: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        """One line."""
        train, test = len(self.train_inputs), len(self.test_inputs)
        shape = list(self.train_inputs.shape[1:])
        return (
            f"<Dataset {self.name}: {train:,} + {test:,} samples {shape}, {self.classes} classes>"
        )

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        parts = {
            "training": (self.train_inputs, self.train_labels),
            "test": (self.test_inputs, self.test_labels),
        }
        columns: dict[str, list[str]] = {
            "part": [*parts],
            "samples": [f"{len(x):,}" for x, _ in parts.values()],
            "inputs": [f"{x.dtype} {list(x.shape[1:])}" for x, _ in parts.values()],
            "labels": [f"{y.dtype} {list(y.shape[1:])}" for _, y in parts.values()],
            "values of labels": [f"{y.min():g} to {y.max():g}" for _, y in parts.values()],
        }
        return html_table(repr(self)[1:-1], columns)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DataError(f'name is {shown(self.name)}: give a string, such as "my-data".')
        if self.pad_id is not None and not isinstance(self.pad_id, int | np.integer):
            raise DataError(f"{self.name}: pad_id is {shown(self.pad_id)}; give an integer.")
        for name, counted in (("classes", "labels"), ("vocabulary", "token ids")):
            count = getattr(self, name)
            if count is None:  # classes are derived below
                continue
            if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
                setting = f"{self.name}: {name} is {shown(count)}"
                raise DataError(f"{setting}; give the number of {counted}.")
        if self.words is not None and len(self.words) != self.vocabulary:
            raise DataError(
                f"{self.name}: words has {len(self.words)} entries, but vocabulary is "
                f"{self.vocabulary}: give one word per token id."
            )
        for part in ("train", "test"):
            self._check_types(
                part, getattr(self, f"{part}_inputs"), getattr(self, f"{part}_labels")
            )
        if vars(self)["classes"] is None:
            derived = derived_classes(self.name, self.train_labels, self.test_labels)
            object.__setattr__(self, "classes", derived)
        for part in ("train", "test"):
            self._check(part, getattr(self, f"{part}_inputs"), getattr(self, f"{part}_labels"))
        if self.test_inputs.shape[1:] != self.train_inputs.shape[1:]:
            raise DataError(
                f"{self.name}: test samples have shape {list(self.test_inputs.shape[1:])}, but "
                f"training samples {list(self.input_shape)}: give both the same shape."
            )
        if self.test_inputs.dtype != self.train_inputs.dtype:
            raise DataError(
                f"{self.name}: test inputs are {self.test_inputs.dtype}, but training inputs "
                f"{self.train_inputs.dtype}: give both the same dtype."
            )
        if self.test_labels.shape[1:] != self.train_labels.shape[1:] or (
            self.test_labels.dtype != self.train_labels.dtype
        ):
            raise DataError(
                f"{self.name}: test labels are {self.test_labels.dtype} "
                f"{list(self.test_labels.shape)}, but training labels {self.train_labels.dtype} "
                f"{list(self.train_labels.shape)}: give both the same dtype and shape of a sample."
            )
        if self.groups is not None:
            groups = checked_groups(self.groups, len(self.train_labels), f"{self.name}: groups")
            object.__setattr__(self, "groups", groups)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input, without the sample axis."""
        return tuple(self.train_inputs.shape[1:])

    def _check_types(self, part: str, inputs: torch.Tensor, labels: torch.Tensor) -> None:
        """Raise unless inputs and labels are tensors of known types, of the same length."""
        where = f"{self.name}: {part}"
        for kind, tensor in (("inputs", inputs), ("labels", labels)):
            _check_tensor(f"{where}_{kind}", tensor)
        # uint8 inputs with more dimensions are pixels that have not been scaled.
        types = (torch.float32, torch.int64, *([torch.uint8] if inputs.dim() == 2 else []))
        if inputs.dtype not in types or inputs.dim() < 2:
            raise DataError(
                f"{where}_inputs is {inputs.dtype} {list(inputs.shape)}; give float32 [n, ...], or "
                "int64, e.g. token ids [n, length] (uint8 for ids below 256)."
            )
        if labels.dtype not in (torch.int64, torch.float32) or labels.dim() < 1:
            raise DataError(
                f"{where}_labels is {labels.dtype} {list(labels.shape)}; give int64 [n] for "
                "classes, int64 [n, ...] for classes of pixels, float32 [n] or [n, D] for "
                "regression, or 0 and 1 [n, L] for several labels per sample."
            )
        if not len(inputs) == len(labels) > 0:
            raise DataError(
                f"{where} has {len(inputs)} inputs and {len(labels)} labels; give the same number "
                "of each, at least one."
            )

    def _check(self, part: str, inputs: torch.Tensor, labels: torch.Tensor) -> None:
        """Raise unless the values of inputs and labels are in their ranges."""
        where = f"{self.name}: {part}"
        check_values(f"{where}_labels", labels, self.classes)
        if not inputs.numel():
            raise DataError(
                f"{where}_inputs is {list(inputs.shape)}: give samples with at least one value."
            )
        # aminmax propagates NaN and needs no mask of the inputs' size.
        low, high = inputs.aminmax()
        if not torch.stack([low, high]).isfinite().all():
            raise DataError(f"{where}_inputs contain NaN or infinite values; clean or scale them.")
        if self.vocabulary is None:
            return
        if inputs.dtype == torch.float32 or low < 0 or high >= self.vocabulary:
            raise DataError(
                f"{where}_inputs are {inputs.dtype} in {low.item()}..{high.item()}; with "
                f"vocabulary={self.vocabulary} give integer token ids in "
                f"0..{self.vocabulary - 1}."
            )


@dataclass(frozen=True)
class Facts:
    """Properties of a data set that are known without reading it.

    >>> from wirelessfl.data import Facts
    >>> Facts(input_shape=(1, 8, 8), classes=10).zeros("mine").train_inputs.shape[1:]
    torch.Size([1, 8, 8])

    Args:
        input_shape: shape of one input, without the sample axis.
        classes: number of labels.
        pad_id: id of the token that pads texts; None for other inputs.
        vocabulary: number of token ids; None if the inputs are not tokens.
    """

    input_shape: tuple[int, ...]
    classes: int
    pad_id: int | None = None
    vocabulary: int | None = None

    def zeros(self, name: str) -> Dataset:
        """A data set of zeros with these properties, from which a model can be built.

        Args:
            name: name of the real data set.
        """
        kind = torch.float32 if self.vocabulary is None else torch.int64
        inputs = torch.zeros(SAMPLES, *self.input_shape, dtype=kind)
        labels = torch.arange(SAMPLES) % self.classes
        return Dataset(
            name,
            inputs,
            labels,
            inputs,
            labels,
            classes=self.classes,
            pad_id=self.pad_id,
            vocabulary=self.vocabulary,
            words=None if self.vocabulary is None else ("",) * self.vocabulary,
        )


def _check_tensor(name: str, tensor: object) -> None:
    if not isinstance(tensor, torch.Tensor):
        kind = f"{type(tensor).__module__}.{type(tensor).__name__}"
        raise DataError(f"{name} is a {kind}: give torch tensors, e.g. torch.from_numpy(...).")
    check_dense(name, tensor)
    if tensor.requires_grad:
        raise DataError(f"{name} requires gradients: give its values alone, by detach().")


def check_dense(name: str, tensor: torch.Tensor) -> None:
    """Raise unless a tensor has a value for each element."""
    kinds = {
        "nested": tensor.is_nested,
        "quantised": tensor.is_quantized,
        "meta": tensor.is_meta,
        "sparse": tensor.layout is not torch.strided,
    }
    kind = next((name for name, is_kind in kinds.items() if is_kind), None)
    if kind is not None:
        remedy = ", by to_dense()" if kind == "sparse" else ""
        raise DataError(f"{name} is a {kind} tensor: give a dense tensor of numbers{remedy}.")


def widened(inputs: torch.Tensor) -> torch.Tensor:
    """Inputs for a model: uint8 token ids are converted to int64, other inputs are unchanged."""
    return inputs.long() if inputs.dtype == torch.uint8 else inputs


def scale_pixels(pixels: NDArray[np.uint8]) -> torch.Tensor:
    """Scale bytes 0..255 of any shape to float32 in [-1, 1]."""
    scaled = pixels.astype(np.float32)
    scaled /= 127.5
    scaled -= 1.0
    return torch.from_numpy(scaled)
