"""The 8x8 digits included in scikit-learn, a data set that needs no download."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.data.dataset import Dataset, Facts

FACTS = Facts((1, 8, 8), classes=10)
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

    Args:
        data_dir: not used; all data sets have this argument.

    Source: Alpaydin and Kaynak, "Optical Recognition of Handwritten Digits", UCI, 1998.
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
