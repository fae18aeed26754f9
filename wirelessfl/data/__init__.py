"""Data sets: loading, verification, and splits over clients."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.base.guard import calling, of_project
from wirelessfl.base.import_paths import expanded, short
from wirelessfl.base.registry import by_name
from wirelessfl.base.wording import shown
from wirelessfl.data.cifar import CIFAR10, CIFAR100
from wirelessfl.data.client_samples import hold_out
from wirelessfl.data.conversion import Data, as_dataset
from wirelessfl.data.dataset import Dataset, Facts
from wirelessfl.data.files import environment_folder, is_folder_path
from wirelessfl.data.hub_images import CIFAR10_JPEG, SVHN
from wirelessfl.data.mnist import DIGITS, FASHION_MNIST, MNIST, load_digits
from wirelessfl.data.picture import draw_split
from wirelessfl.data.samples import ImageFolder
from wirelessfl.data.shakespeare import FACTS as SHAKESPEARE
from wirelessfl.data.shakespeare import load_shakespeare
from wirelessfl.data.splits import SPLITS, split
from wirelessfl.data.text import TEXT_DATA
from wirelessfl.data.tinyimagenet import FACTS as TINY_IMAGENET
from wirelessfl.data.tinyimagenet import load_tiny_imagenet
from wirelessfl.data.tokens import Tokenizer

__all__ = [
    "SPLITS",
    "WITHOUT_IMAGES",
    "Data",
    "Dataset",
    "Facts",
    "IntArray",
    "Tokenizer",
    "as_dataset",
    "dataset_names",
    "draw_split",
    "find_dataset",
    "hold_out",
    "known_facts",
    "load_dataset",
    "split",
    "text_options",
]

Loader = Callable[..., Dataset]

DOWNLOADED = "downloaded and verified"
YOURS = "from your files, see README"


@dataclass(frozen=True)
class BuiltIn:
    """A built-in data set.

    Args:
        load: its loader.
        facts: its shape and classes; None if a tokenizer determines them.
        content: numbers of training and test samples, and what they are.
        source: where its files come from.
    """

    load: Loader
    facts: Facts | None
    content: str
    source: str = YOURS


BUILT_IN = {
    "digits": BuiltIn(
        load_digits, DIGITS, "1,438 + 359 handwritten digits", "included in scikit-learn"
    ),
    "mnist": BuiltIn(MNIST.load, MNIST.facts, "60,000 + 10,000 handwritten digits", DOWNLOADED),
    "fashion-mnist": BuiltIn(
        FASHION_MNIST.load, FASHION_MNIST.facts, "60,000 + 10,000 clothes", DOWNLOADED
    ),
    "cifar10": BuiltIn(CIFAR10.load, CIFAR10.facts, "50,000 + 10,000 photographs", DOWNLOADED),
    "cifar10-jpeg": BuiltIn(
        CIFAR10_JPEG.load, CIFAR10_JPEG.facts, "50,000 + 10,000 CIFAR-10 with loss, as JPEG"
    ),
    "cifar100": BuiltIn(CIFAR100.load, CIFAR100.facts, "50,000 + 10,000 photographs", DOWNLOADED),
    "svhn": BuiltIn(SVHN.load, SVHN.facts, "73,257 + 26,032 house numbers"),
    "tinyimagenet": BuiltIn(load_tiny_imagenet, TINY_IMAGENET, "100,000 + 10,000 photographs"),
    "shakespeare": BuiltIn(load_shakespeare, SHAKESPEARE, "next characters of plays, by role"),
    **{data.name: BuiltIn(data.load, None, data.content) for data in TEXT_DATA},
}
"""The built-in data sets, by name."""
WITHOUT_IMAGES = frozenset({"shakespeare", *(data.name for data in TEXT_DATA)})
"""Names of the text data sets, which contain no images."""


def dataset_names() -> list[str]:
    """Names of the built-in data sets, sorted.

    >>> from wirelessfl.data import dataset_names
    >>> [name for name in dataset_names() if name.startswith("cifar")]
    ['cifar10', 'cifar10-jpeg', 'cifar100']
    """
    return sorted(BUILT_IN)


def find_dataset(name: str) -> Loader:
    """The loader of data set ``name``: a built-in one, or the user's.

    >>> from wirelessfl.data import find_dataset
    >>> find_dataset("digits")(None)
    <Dataset digits: 1,438 + 359 samples [1, 8, 8], 10 classes>

    Args:
        name: as for ``load_dataset``.

    Raises:
        ConfigError: the name is unknown.
    """
    if isinstance(name, str) and name in BUILT_IN:
        return BUILT_IN[name].load
    if isinstance(name, str) and is_folder_path(name):
        return ImageFolder(expanded(name)).load
    other = ", or a folder of images by its path, such as ./my-images"
    load: Loader = by_name("data set", name, BUILT_IN, other)
    return load


def known_facts(
    name: str, *, tokenizer: str | None = None, max_length: int | None = None
) -> Facts | None:
    """Shape and classes of a built-in data set, without reading it; None if they are not known.

    >>> from wirelessfl.data import known_facts
    >>> known_facts("mnist").input_shape, known_facts("mnist").classes
    ((1, 28, 28), 10)

    Args:
        name: as for ``load_dataset``.
        tokenizer: as for ``load_dataset``.
        max_length: as for ``load_dataset``.

    Raises:
        ConfigError: the name is unknown, or the tokenizer's number of words is wrong.
    """
    find_dataset(name)
    options: dict[str, Any] = {"tokenizer": tokenizer, "max_length": max_length}
    chosen = {option: value for option, value in options.items() if value is not None}
    for data in TEXT_DATA:
        if data.name == name:
            return data.facts(**chosen)
    built_in = None if chosen else BUILT_IN.get(name)  # load_dataset refuses the options
    return None if built_in is None else built_in.facts


def text_options(name: str) -> dict[str, Any]:
    """Which of the options ``tokenizer`` and ``max_length`` a data set accepts, with defaults.

    The default is None for an option without a default.

    >>> from wirelessfl.data import text_options
    >>> text_options("digits"), sorted(text_options("ag-news"))
    ({}, ['max_length', 'tokenizer'])

    Args:
        name: as for ``load_dataset``.

    Raises:
        ConfigError: the name is unknown.
    """
    try:
        parameters = inspect.signature(find_dataset(name)).parameters
    except (TypeError, ValueError):  # load_dataset reports the error
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
    """Load data set ``name`` from a folder, or download it.

    >>> from wirelessfl.data import load_dataset
    >>> load_dataset("digits")
    <Dataset digits: 1,438 + 359 samples [1, 8, 8], 10 classes>

    Args:
        name: one of ``dataset_names()``; or a path with a separator, such as ``./my-images``, of
            your own folder of images; or the import path of your own function,
            ``module:function`` or ``file.py:function``, which takes ``data_dir`` and returns a
            ``Dataset``, or data as for ``as_dataset``. For texts it may also have the keyword
            arguments ``tokenizer`` and ``max_length``.
        data_dir: folder that contains one folder per data set. None for the environment variable
            WIRELESSFL_DATA or, if it is not set or lacks the data set, the user's cache, to which
            verified files are downloaded (texts are not downloaded). Your own function gets this
            folder or that of WIRELESSFL_DATA, or None if there is neither.
        tokenizer: tokenizer for texts: ``words``, ``words:V``, a folder, or a name on the Hugging
            Face hub; None for the data set's default.
        max_length: number of tokens to which texts are cut or padded; None for the default.

    Raises:
        ConfigError: the name is unknown, the function does not return a ``Dataset``, or the data
            set does not accept a tokenizer or length.
        DataError: files are missing, damaged or differ from the published ones, or cannot be
            downloaded; or your own function has raised an exception.
    """
    if data_dir is not None and not isinstance(data_dir, str | os.PathLike):
        raise ConfigError(f"data_dir is {shown(data_dir)}: give the path of a folder.")
    load, taken = find_dataset(name), text_options(name)
    options = {"tokenizer": tokenizer, "max_length": max_length}
    options = {option: value for option, value in options.items() if value is not None}
    for option, value in options.items():
        if option not in taken:
            raise ConfigError(
                f"{option} is {value!r}, but data set {name!r} does not accept it: leave it out, "
                f"or choose {', '.join(sorted(data.name for data in TEXT_DATA))}."
            )
    try:
        inspect.signature(load).bind(data_dir, **options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"data set {name!r} cannot be called with data_dir: {error}.") from error
    if of_project(load):
        dataset = load(data_dir, **options)
    else:
        folder = environment_folder() if data_dir is None else expanded(data_dir)
        with calling(f"data set {name!r}", DataError):
            dataset = load(folder, **options)
    try:
        return as_dataset(dataset, name=short(name))
    except ConfigError as error:
        reason = f"data set {name!r} returned {shown(dataset)}: return a wirelessfl.data.Dataset, "
        raise ConfigError(f"{reason}or arrays as for wirelessfl.data.as_dataset.") from error
