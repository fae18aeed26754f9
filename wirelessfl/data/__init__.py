"""Data sets, how they are found and verified, and how they are split over clients."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from channels.arrays import IntArray
from wirelessfl.data.cifar import CIFAR10, CIFAR100
from wirelessfl.data.dataset import Dataset
from wirelessfl.data.digits import load_digits
from wirelessfl.data.fashion_mnist import FASHION_MNIST
from wirelessfl.data.mnist import MNIST
from wirelessfl.data.picture import draw_split
from wirelessfl.data.shakespeare import load_shakespeare
from wirelessfl.data.splits import SPLITS, split
from wirelessfl.data.text import TEXT_DATA
from wirelessfl.data.tinyimagenet import load_tiny_imagenet
from wirelessfl.errors import ConfigError
from wirelessfl.registry import by_name
from wirelessfl.wording import shown

__all__ = [
    "SPLITS",
    "WITHOUT_IMAGES",
    "Dataset",
    "IntArray",
    "dataset_names",
    "draw_split",
    "find_dataset",
    "load_dataset",
    "split",
    "text_options",
]

Loader = Callable[..., Dataset]

_LOADERS: dict[str, Loader] = {
    "digits": load_digits,
    "mnist": MNIST.load,
    "fashion-mnist": FASHION_MNIST.load,
    "cifar10": CIFAR10.load,
    "cifar100": CIFAR100.load,
    "tinyimagenet": load_tiny_imagenet,
    "shakespeare": load_shakespeare,
    **{data.name: data.load for data in TEXT_DATA},
}


WITHOUT_IMAGES = frozenset({"shakespeare", *(data.name for data in TEXT_DATA)})
"""Data sets of texts."""


def dataset_names() -> list[str]:
    """Names that ``load_dataset`` knows, sorted."""
    return sorted(_LOADERS)


def find_dataset(name: str) -> Loader:
    """What loads the data set called ``name``, or the user's function at ``module:function``.

    Raises:
        ConfigError: the name is unknown.
    """
    load: Loader = by_name("data set", name, _LOADERS)
    return load


def text_options(name: str) -> dict[str, Any]:
    """Which of ``tokenizer`` and ``max_length`` a data set takes, with its defaults, else None.

    Args:
        name: as for ``load_dataset``.

    Raises:
        ConfigError: the name is unknown.
    """
    try:
        parameters = inspect.signature(by_name("data set", name, _LOADERS)).parameters
    except (TypeError, ValueError):  # load_dataset says what is wrong with it
        return {}
    options = {}
    for option in ("tokenizer", "max_length"):
        if option in parameters:
            default = parameters[option].default
            options[option] = None if default is inspect.Parameter.empty else default
    return options


def load_dataset(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    tokenizer: str | None = None,
    max_length: int | None = None,
) -> Dataset:
    """The data set called ``name``, from a folder or, failing that, from the network.

    Args:
        name: one of ``dataset_names()``, or ``module:function`` for a function of yours that takes
            ``data_dir`` and returns a ``Dataset``. One of texts may take ``tokenizer`` and
            ``max_length`` by name, too.
        data_dir: folder that holds a folder per data set; None for the one that the environment
            variable WIRELESSFL_DATA names, else the user's cache, filled by a verified download
            (but for texts, which are not downloaded).
        tokenizer: of a data set of texts: a folder, or a name on the hub; None for its default.
        max_length: of a data set of texts: tokens that each is cut or padded to; likewise.

    Raises:
        ConfigError: the name is unknown, the function named returns no ``Dataset``, or the data
            set does not take the tokenizer or length.
        DataError: files are absent, damaged or not the published ones, or cannot be downloaded.
    """
    if data_dir is not None and not isinstance(data_dir, str | os.PathLike):
        raise ConfigError(f"data_dir is {shown(data_dir)}: give the path of a folder.")
    load, taken = find_dataset(name), text_options(name)
    options = {"tokenizer": tokenizer, "max_length": max_length}
    options = {option: value for option, value in options.items() if value is not None}
    for option, value in options.items():
        if option not in taken:
            raise ConfigError(
                f"{option} is {value!r}, and data set {name!r} takes none. Leave it out, or choose "
                f"{', '.join(sorted(data.name for data in TEXT_DATA))}."
            )
    try:
        inspect.signature(load).bind(data_dir, **options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"data set {name!r} cannot be called with data_dir: {error}.") from error
    dataset = load(data_dir, **options)
    if not isinstance(dataset, Dataset):
        raise ConfigError(
            f"data set {name!r} gave a {type(dataset).__name__}: the function must return a "
            "wirelessfl.data.Dataset."
        )
    return dataset
