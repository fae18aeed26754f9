"""MNIST, and a base class for data sets in four IDX files like MNIST's."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import torch

from wirelessfl.data.dataset import Dataset, Facts, scale_pixels
from wirelessfl.data.files import Published, find_place, read_verified
from wirelessfl.data.idx import parse_idx

_NAMES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


@dataclass(frozen=True)
class MnistLike:
    """A data set of grey images in ten classes, in four IDX files, gzipped or not.

    Args:
        name: name of the data set and its folder.
        base_url: address of the four gzipped files, without their names.
        digests: SHA-256 of the decompressed content: training images, training labels, test
            images, test labels.
    """

    name: str
    base_url: str
    digests: tuple[str, str, str, str]

    @property
    def facts(self) -> Facts:
        """Shape and classes of the data set."""
        return Facts((1, 28, 28), classes=10)

    def load(self, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
        """Load the data set with inputs [n, 1, 28, 28] in [-1, 1]; see ``load_dataset``.

        Raises:
            DataError: a file is missing, is damaged or differs from the published one.
        """
        place = find_place(self.name, data_dir)
        arrays = []
        for name, digest in zip(_NAMES, self.digests, strict=True):
            content = read_verified(Published(name, self.base_url, f"sha256:{digest}"), place)
            arrays.append(parse_idx(content, 3 if "images" in name else 1, f"{self.name}/{name}"))
        train_images, train_labels, test_images, test_labels = arrays
        return Dataset(
            self.name,
            scale_pixels(train_images[:, np.newaxis]),
            torch.from_numpy(train_labels.astype(np.int64)),
            scale_pixels(test_images[:, np.newaxis]),
            torch.from_numpy(test_labels.astype(np.int64)),
            classes=10,
            verification="SHA-256 of the decompressed content",
        )


MNIST = MnistLike(
    name="mnist",
    base_url="https://ossci-datasets.s3.amazonaws.com/mnist/",
    digests=(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
)
"""70,000 handwritten digits (LeCun, Cortes, Burges); digests computed from the real files."""
