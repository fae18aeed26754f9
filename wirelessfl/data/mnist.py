"""Grey digits and clothes: MNIST and Fashion-MNIST in IDX files, and the digits of scikit-learn."""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.data.dataset import Dataset, Facts, scale_pixels
from wirelessfl.data.files import Published, find_place, read_verified

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
        """Load the data set with inputs [n, 1, 28, 28] in [-1, 1]; see ``load_dataset``."""
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


FASHION_MNIST = MnistLike(
    name="fashion-mnist",
    base_url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    digests=(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)
"""Digests computed from the real files."""


_UBYTE = 0x08


def parse_idx(content: bytes, dims: int, name: str = "IDX data") -> NDArray[np.uint8]:
    """Parse an IDX file of unsigned bytes: a big-endian header, then a value per byte.

    Source: "The IDX file format" on the MNIST page of LeCun, Cortes and Burges.

    Args:
        content: the whole file, decompressed.
        dims: required number of dimensions: 3 for images, 1 for labels.
        name: name of the file in messages.

    Returns:
        A read-only view [size_1, ..., size_dims] of ``content``.
    """
    magic = bytes([0, 0, _UBYTE, dims])
    header = len(magic) + 4 * dims
    if content[:4] != magic:
        raise DataError(
            f"{name}: starts with bytes {content[:4].hex() or 'none'}, expected {magic.hex()} "
            f"(IDX, unsigned bytes, {dims} dimensions). Check that the file has the right name."
        )
    if len(content) < header:
        raise DataError(f"{name}: ends within its header of {header} bytes. Download it again.")
    shape = struct.unpack_from(f">{dims}I", content, len(magic))
    expected = header + math.prod(shape)
    if len(content) != expected:
        fault = "is truncated" if len(content) < expected else "has trailing bytes"
        raise DataError(
            f"{name}: {fault}: {len(content)} bytes, expected {expected} for shape "
            f"{list(shape)}. Download it again."
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


DIGITS = Facts((1, 8, 8), classes=10)
"""Shape and classes of the digits."""
_TEST_SHARE = 0.2


@cache
def _pixels_and_labels() -> tuple[FloatArray, IntArray]:
    """Pixels [n, 64] in 0..16 and labels [n].

    Importing scikit-learn takes longer than a small training run, so its data file is read directly
    if it is at the usual path.
    """
    package = find_spec("sklearn")
    if package is not None and package.origin is not None:
        file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
        if file.is_file():
            table = np.loadtxt(file, delimiter=",")
            return table[:, :-1], table[:, -1].astype(np.int64)
    from sklearn import datasets

    pixels, labels = datasets.load_digits(return_X_y=True)
    return pixels, labels


def load_digits(data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Load 1797 digits, [n, 1, 8, 8] in [-1, 1]; a fixed fifth of each class is the test set.

    The folder is not used. Source: Alpaydin and Kaynak, "Optical Recognition of Handwritten
    Digits", UCI, 1998.
    """
    pixels, labels = _pixels_and_labels()
    draw = Stream(0, ("digits", "test split")).generator()
    is_test = np.zeros(len(labels), dtype=bool)
    for label in range(10):
        members = np.flatnonzero(labels == label)
        is_test[draw.choice(members, round(_TEST_SHARE * len(members)), replace=False)] = True
    # A pixel is the number of dark pixels in a 4x4 block: 0..16.
    inputs = torch.from_numpy((pixels / 8 - 1).astype(np.float32).reshape(-1, 1, 8, 8))
    targets = torch.from_numpy(labels.astype(np.int64))
    train, test = torch.from_numpy(~is_test), torch.from_numpy(is_test)
    return Dataset(
        "digits",
        inputs[train],
        targets[train],
        inputs[test],
        targets[test],
        classes=10,
        verification="included in scikit-learn, not checksummed",
    )
