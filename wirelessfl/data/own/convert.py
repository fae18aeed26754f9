"""Any form of own data as a :class:`wirelessfl.data.Dataset`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wirelessfl.data.dataset import Dataset, check_dense
from wirelessfl.data.own.arrays import converted
from wirelessfl.data.own.folder import is_image_folder, read_images
from wirelessfl.data.own.samples import collected, is_samples
from wirelessfl.errors import ConfigError, DataError
from wirelessfl.wording import shown

KEYS = ("train_inputs", "train_labels", "test_inputs", "test_labels")
TEST_SPLITS = ("test", "validation", "valid", "val")
"""Names of the split of test samples, in order of preference."""

Data = Dataset | Sequence[Any] | Mapping[str, Any] | str | os.PathLike[str]
"""Forms of own data, see ``as_dataset``."""


def as_dataset(
    data: Data,
    *,
    name: str = "data",
    classes: int | None = None,
    columns: tuple[str, str] | None = None,
) -> Dataset:
    """Convert own data to a :class:`wirelessfl.data.Dataset`.

    Floats keep their values and become float32. Bytes of images become float32 in [0, 1], with
    channels first. Other integers become int64. The data set's ``notes`` say what was changed.
    Integer labels are classes, int64 [n]; float labels stay floats. Arrays that need no conversion
    are not copied: do not change them while a run trains.

    >>> import numpy as np
    >>> from wirelessfl.data import as_dataset
    >>> x, y = np.zeros((20, 8, 8), dtype=np.uint8), np.arange(20) % 4
    >>> as_dataset((x, y, x[:4], y[:4]), name="mine")
    <Dataset mine: 20 + 4 samples [1, 8, 8], 4 classes>

    Args:
        data: one of

            - a ``Dataset``, which is returned as it is;
            - ``(train_inputs, train_labels, test_inputs, test_labels)``, or a mapping with these
              keys and optionally ``groups``: NumPy arrays, torch tensors or lists;
            - ``((train_inputs, train_labels), (test_inputs, test_labels))``;
            - ``(train, test)``, two data sets of torch, such as torchvision's, with samples (input,
              label), whose inputs are tensors, arrays or images; each sample is read once, and
              a note says so if samples are random;
            - the splits of a Hugging Face data set, of which ``train`` and ``test`` (or
              ``validation``) are used;
            - the path of a folder of images, ``train/CLASS/*.png`` and ``test/CLASS/*.png``.

        name: name of the data set.
        classes: number of classes; None for the number that the data set names, or one more than
            the largest label; of float labels, the number of values per sample.
        columns: columns of inputs and labels in a Hugging Face data set; None to look for usual
            names, such as ``image`` and ``label``.

    Raises:
        ConfigError: ``data`` has none of these forms.
        DataError: the samples do not form a data set, see ``Dataset``.
    """
    if isinstance(data, Dataset):
        return data
    groups, notes = None, list[str]()
    named: int | None = None
    if isinstance(data, str | os.PathLike):
        train, test, names = read_images(_folder(data))
        name, named = Path(data).resolve().name if name == "data" else name, len(names)
        parts = train, test
    elif isinstance(data, Mapping) and "train" in data:
        parts, named = _of_samples(data["train"], _test_split(data), columns, name, notes)
    elif isinstance(data, Mapping):
        parts, groups = _of_mapping(data), data.get("groups")
    elif isinstance(data, list | tuple) and len(data) == 4:
        parts = (data[0], data[1]), (data[2], data[3])
    elif isinstance(data, list | tuple) and len(data) == 2:
        if all(is_samples(part) for part in data):
            parts, named = _of_samples(data[0], data[1], columns, name, notes)
        elif all(_is_pair(part) for part in data):
            parts = (data[0][0], data[0][1]), (data[1][0], data[1][1])
        else:
            raise _unknown(data)
    else:
        raise _unknown(data)
    (x, y), (x_test, y_test) = parts
    for key, array in zip(KEYS, (x, y, x_test, y_test), strict=True):
        _check_dense(f"{name}: {key}", array)
    _check_order(x, y, x_test, name)
    arrays = converted((x, x_test), (y, y_test), name)
    return Dataset(
        name,
        arrays.inputs[0],
        arrays.labels[0],
        arrays.inputs[1],
        arrays.labels[1],
        classes=classes or named or _classes(arrays.labels),
        groups=groups,
        notes=(*arrays.notes, *notes),
    )


Parts = tuple[tuple[Any, Any], tuple[Any, Any]]
"""Inputs and labels for training, and for tests."""


def _unknown(data: Any) -> ConfigError:
    """The error for an object of another form."""
    return ConfigError(
        f"data is {_named(data)}: give a wirelessfl.data.Dataset, arrays (train_inputs, "
        "train_labels, test_inputs, test_labels), two data sets of torch (train, test), splits of "
        'a Hugging Face data set, or the path of an image folder; names such as "digits" are the '
        "setting dataset."
    )


def _folder(data: str | os.PathLike[str]) -> Path:
    """The path of an image folder.

    Raises:
        ConfigError: there is no such folder.
    """
    path = Path(data)
    if is_image_folder(path):
        return path
    if path.is_dir():
        raise ConfigError(
            f"data is {str(path)!r}, a folder without train: give a folder of images, "
            "train/CLASS/1.png and test/CLASS/1.png. A folder of parquet files is the setting "
            "dataset."
        )
    raise _unknown(data)


def _test_split(data: Mapping[str, Any]) -> Any:
    """The split of test samples.

    Raises:
        ConfigError: there is none.
    """
    found = next((data[name] for name in TEST_SPLITS if name in data), None)
    if found is None:
        raise ConfigError(
            f"data has the splits {', '.join(map(str, data))}, and none of them is test or "
            'validation: give one, e.g. by data["train"].train_test_split(0.1).'
        )
    return found


def _of_samples(
    train: Any, test: Any, columns: tuple[str, str] | None, name: str, notes: list[str]
) -> tuple[Parts, int | None]:
    """Read two data sets of samples, or two pairs of inputs and labels; appends to ``notes``."""
    if _is_pair(train) and _is_pair(test):
        return ((train[0], train[1]), (test[0], test[1])), None
    for part, found in (("train", train), ("test", test)):
        if not is_samples(found):
            raise ConfigError(
                f"data, {part}, is {shown(found)}: give a data set of torch or of Hugging Face, or "
                "a pair of inputs and labels."
            )
    first = collected(train, columns, f"{name}: train")
    second = collected(test, columns, f"{name}: test")
    for part, found in (("training", first), ("test", second)):
        notes += [] if found.note is None else [f"{part} {found.note}"]
    return ((first.inputs, first.labels), (second.inputs, second.labels)), first.classes


def _of_mapping(data: Mapping[str, Any]) -> Parts:
    """The arrays of a mapping.

    Raises:
        ConfigError: a key is missing or unknown.
    """
    known = (*KEYS, "groups")
    for key in data:
        if key not in known:
            raise ConfigError(f"data has {shown(key)}: give {', '.join(known)}.")
    missing = [key for key in KEYS if key not in data]
    if missing:
        raise ConfigError(f"data lacks {', '.join(missing)}: give {', '.join(KEYS)}.")
    return (data[KEYS[0]], data[KEYS[1]]), (data[KEYS[2]], data[KEYS[3]])


def _is_pair(part: Any) -> bool:
    """Whether this is a pair of inputs and labels."""
    kinds = (np.ndarray, torch.Tensor)
    return isinstance(part, list | tuple) and len(part) == 2 and isinstance(part[0], kinds)


def _check_dense(where: str, array: Any) -> None:
    for part in array if isinstance(array, list | tuple) else (array,):
        if isinstance(part, torch.Tensor):
            check_dense(where, part)


def _check_order(x: Any, y: Any, x_test: Any, name: str) -> None:
    """Refuse the order of scikit-learn's ``train_test_split``.

    Raises:
        DataError: the second array has the shape of inputs, and the third that of labels.
    """
    inputs, labels, tested = (getattr(array, "shape", ()) for array in (x, y, x_test))
    if len(inputs) > 1 and labels[1:] == inputs[1:] and len(tested) == 1:
        raise DataError(
            f"{name}: train_labels has shape {list(labels)} and test_inputs {list(tested)}, as if "
            "from train_test_split: give (train_inputs, train_labels, test_inputs, test_labels)."
        )


def _classes(labels: tuple[torch.Tensor, torch.Tensor]) -> int:
    """Number of classes of integer labels; number of values per sample of float labels."""
    train, test = labels
    if train.is_floating_point():
        return train.shape[-1] if train.dim() > 1 else 1
    found = [int(part.max()) for part in (train, test) if part.numel()]
    return max(1, 1 + max(found, default=0))


def _named(data: Any) -> str:
    """What was given as data, in a few words."""
    if isinstance(data, list | tuple):
        return f"a {type(data).__name__} of {len(data)}"
    return shown(data)
