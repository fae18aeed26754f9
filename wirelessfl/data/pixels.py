"""Scales the pixels of images."""

from __future__ import annotations

from dataclasses import replace

import torch

from wirelessfl.data.dataset import Dataset
from wirelessfl.errors import ConfigError


def scaled(data: Dataset, pixels: str) -> Dataset:
    """The data set with images scaled to a range of pixels.

    Args:
        data: the data set, with pixels in [-1, 1].
        pixels: ``signed`` to keep them, ``unit`` for [0, 1], or ``standard`` for mean 0 and
            variance 1 of each channel of the training images.

    Raises:
        ConfigError: the data are not images in [-1, 1], or are to be scaled to [0, 1] and have no
            negative pixel.
    """
    if pixels == "signed":
        return data
    train, test = data.train_inputs, data.test_inputs
    conflict = f'pixels="{pixels}" conflicts with data set {data.name!r}, whose inputs are'
    low, high = min(train.min(), test.min()), max(train.max(), test.max())
    if test.dtype != torch.float32 or test.dim() < 4 or low < -1 or high > 1:
        raise ConfigError(f"{conflict} not images in [-1, 1]: leave pixels out.")
    if pixels == "unit":
        if low >= 0:
            raise ConfigError(
                f"{conflict} in [0, 1] already: leave pixels out, and they stay as they are."
            )
        return replace(data, train_inputs=(train + 1) / 2, test_inputs=(test + 1) / 2)
    mean = train.mean((0, 2, 3), keepdim=True)
    spread = train.std((0, 2, 3), keepdim=True).clamp(min=1e-6)
    return replace(data, train_inputs=(train - mean) / spread, test_inputs=(test - mean) / spread)
