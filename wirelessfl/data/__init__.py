"""Data sets, how they are found and verified, and how they are split over clients."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable

from wirelessfl.data.checks import IntArray
from wirelessfl.data.cifar import CIFAR10, CIFAR100
from wirelessfl.data.dataset import Dataset
from wirelessfl.data.digits import load_digits
from wirelessfl.data.fashion_mnist import FASHION_MNIST
from wirelessfl.data.mnist import MNIST
from wirelessfl.data.picture import draw_split
from wirelessfl.data.splits import SPLITS, split
from wirelessfl.data.tinyimagenet import load_tiny_imagenet
from wirelessfl.errors import ConfigError
from wirelessfl.registry import by_name

__all__ = [
    "SPLITS",
    "Dataset",
    "IntArray",
    "dataset_names",
    "draw_split",
    "load_dataset",
    "split",
]

Loader = Callable[[str | os.PathLike[str] | None], Dataset]

_LOADERS: dict[str, Loader] = {
    "digits": load_digits,
    "mnist": MNIST.load,
    "fashion-mnist": FASHION_MNIST.load,
    "cifar10": CIFAR10.load,
    "cifar100": CIFAR100.load,
    "tinyimagenet": load_tiny_imagenet,
}


def dataset_names() -> list[str]:
    """Names that ``load_dataset`` knows, sorted."""
    return sorted(_LOADERS)


def load_dataset(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """The data set called ``name``, from a folder or, failing that, from the network.

    Args:
        name: one of ``dataset_names()``, or ``module:function`` for a function of yours that takes
            ``data_dir`` and returns a ``Dataset``.
        data_dir: folder that holds a folder per data set; None for the one that the environment
            variable WIRELESSFL_DATA names, else the user's cache, filled by a verified download.

    Raises:
        ConfigError: the name is unknown, or the function named returns no ``Dataset``.
        DataError: files are absent, damaged or not the published ones, or cannot be downloaded.
    """
    load = by_name("data set", name, _LOADERS)
    try:
        inspect.signature(load).bind(data_dir)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"data set {name!r} cannot be called with data_dir: {error}.") from error
    dataset = load(data_dir)
    if not isinstance(dataset, Dataset):
        raise ConfigError(
            f"data set {name!r} gave a {type(dataset).__name__}: the function must return a "
            "wirelessfl.data.Dataset."
        )
    return dataset
