"""What determines the size of a model before its data are read: shapes and classes of data sets."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from wirelessfl.data.dataset import Dataset

SAMPLES = 8
"""Number of samples of a data set that replaces the real one."""


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
        )
