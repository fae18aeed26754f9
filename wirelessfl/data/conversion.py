"""Own data, in the forms in which other libraries give them, as a data set.

Values keep their range; only the bytes of images become numbers in [0, 1].
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.base.guard import calling, described
from wirelessfl.base.import_paths import has_separator
from wirelessfl.base.wording import shown
from wirelessfl.data.dataset import Dataset, check_dense
from wirelessfl.data.samples import collected, is_image_folder, is_samples, read_images

KEYS = ("train_inputs", "train_labels", "test_inputs", "test_labels")
TEST_SPLITS = ("test", "validation", "valid", "val")
"""Names of the split of test samples, in order of preference."""
CHANNELS = (1, 3, 4)
"""Numbers of channels of grey images, colour images, and colour images with transparency."""
SAMPLED = 1000
"""Number of samples that notes are based on."""

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
    groups, notes, named = None, list[str](), None
    if isinstance(data, str | os.PathLike):
        (x, y), (x_test, y_test), names = read_images(_folder(data))
        name, named = Path(data).resolve().name if name == "data" else name, len(names)
    elif isinstance(data, Mapping) and "train" not in data:
        x, y, x_test, y_test = _of_mapping(data)
        groups = data.get("groups")
    elif isinstance(data, list | tuple) and len(data) == 4:
        x, y, x_test, y_test = data
    else:
        parts = _parts(data)
        train, test = (collected(parts[part], columns, f"{name}: {part}") for part in parts)
        x, y, x_test, y_test = train.inputs, train.labels, test.inputs, test.labels
        named = train.classes
        for part, samples in (("training", train), ("test", test)):
            notes += [] if samples.note is None else [f"{part} {samples.note}"]
    for key, array in zip(KEYS, (x, y, x_test, y_test), strict=True):
        _check_dense(f"{name}: {key}", array)
    _check_order(x, y, x_test, name)
    tensors = [_tensor(part, f"{name}: {key}") for part, key in ((x, KEYS[0]), (x_test, KEYS[2]))]
    images, note = _images(tensors[0], tensors[1], name)
    inputs = [_inputs(part) for part in images]
    labels = [_labels(part, f"{name}: {key}") for part, key in ((y, KEYS[1]), (y_test, KEYS[3]))]
    return Dataset(
        name,
        inputs[0],
        labels[0],
        inputs[1],
        labels[1],
        classes=classes or named or _classes(labels),
        groups=groups,
        notes=(*note, *notes),
    )


def range_note(inputs: torch.Tensor) -> str | None:
    """A note if float inputs look like the bytes 0..255 of images; None otherwise.

    Args:
        inputs: [n, ...], of which the first samples are checked.
    """
    first = inputs[:SAMPLED]
    if inputs.dtype != torch.float32 or not first.numel():
        return None
    low, high = first.aminmax()
    if low < 0 or not 100 < high <= 255:
        return None
    return (
        f"inputs are in {low:g}..{high:g}, like bytes of images, and are used as they are. Most "
        "models need values near [-1, 1]: divide by 255."
    )


def equal_note(data: Dataset) -> str | None:
    """A note if the test samples are the training samples; None otherwise."""
    train, test = data.train_inputs, data.test_inputs
    if not torch.equal(train[:1], test[:1]) or not torch.equal(train, test):
        return None
    return "the test samples are the training samples, so accuracies are those of training."


def _unknown(data: Any) -> ConfigError:
    """The error for an object of another form."""
    sequence = isinstance(data, list | tuple)
    form = f"a {type(data).__name__} of {len(data)}" if sequence else shown(data)
    return ConfigError(
        f"data is {form}: give a wirelessfl.data.Dataset, arrays (train_inputs, train_labels, "
        "test_inputs, test_labels), two data sets of torch (train, test), splits of a Hugging Face "
        'data set, or the path of an image folder; names such as "digits" are the setting dataset.'
    )


def _folder(data: str | os.PathLike[str]) -> Path:
    path = Path(data)
    if is_image_folder(path):
        return path
    if path.is_dir():
        raise ConfigError(
            f"data is {str(path)!r}, a folder without train: give a folder of images, "
            "train/CLASS/1.png and test/CLASS/1.png."
        )
    if isinstance(data, os.PathLike) or len(path.parts) > 1 or has_separator(data):
        raise ConfigError(
            f"data is {str(data)!r}, and there is no such folder: give the path of a folder of "
            "images, train/CLASS/1.png and test/CLASS/1.png."
        )
    raise _unknown(data)


def _parts(data: Any) -> dict[str, Any]:
    """The training and test samples of two data sets of torch, or of Hugging Face's splits."""
    if isinstance(data, Mapping):
        test = next((data[name] for name in TEST_SPLITS if name in data), None)
        if test is None:
            raise ConfigError(
                f"data has the splits {', '.join(map(str, data))}, and none of them is test or "
                'validation: give one, e.g. by data["train"].train_test_split(0.1).'
            )
        parts = {"train": data["train"], "test": test}
    elif isinstance(data, list | tuple) and len(data) == 2 and all(map(is_samples, data)):
        return dict(zip(("train", "test"), data, strict=True))
    else:
        raise _unknown(data)
    for part, samples in parts.items():
        if not is_samples(samples):
            raise ConfigError(
                f"data, {part}, is {shown(samples)}: give a data set of torch or of Hugging Face."
            )
    return parts


def _of_mapping(data: Mapping[str, Any]) -> list[Any]:
    """The four arrays of a mapping."""
    for key in data:
        if key not in (*KEYS, "groups"):
            raise ConfigError(f"data has {shown(key)}: give {', '.join(KEYS)}, groups.")
    missing = [key for key in KEYS if key not in data]
    if missing:
        raise ConfigError(f"data lacks {', '.join(missing)}: give {', '.join(KEYS)}.")
    return [data[key] for key in KEYS]


def _check_dense(where: str, array: Any) -> None:
    for part in array if isinstance(array, list | tuple) else (array,):
        if isinstance(part, torch.Tensor):
            check_dense(where, part)


def _check_order(x: Any, y: Any, x_test: Any, name: str) -> None:
    """Refuse the order of scikit-learn's ``train_test_split``."""
    inputs, labels, tested = (getattr(array, "shape", ()) for array in (x, y, x_test))
    if len(inputs) > 1 and labels[1:] == inputs[1:] and len(tested) == 1:
        raise DataError(
            f"{name}: train_labels has shape {list(labels)} and test_inputs {list(tested)}, as if "
            "from train_test_split: give (train_inputs, train_labels, test_inputs, test_labels)."
        )


def _classes(labels: list[torch.Tensor]) -> int:
    """Number of classes of integer labels; number of values per sample of float labels."""
    if labels[0].is_floating_point():
        return labels[0].shape[-1] if labels[0].dim() > 1 else 1
    largest = [int(part.max()) for part in labels if part.numel()]
    return max(1, 1 + max(largest, default=0))


def _tensor(values: Any, where: str) -> torch.Tensor:
    """A tensor of numbers, on the CPU and without gradients."""
    listed = isinstance(values, list | tuple)
    if listed and values and all(isinstance(value, torch.Tensor) for value in values):
        shapes = sorted({tuple(value.shape) for value in values})
        if len(shapes) > 1:
            first = ", ".join(str(list(shape)) for shape in shapes[:3])
            more = ", ..." * (len(shapes) > 3)
            raise DataError(f"{where} has samples of shapes {first}{more}: give one shape.")
        values = torch.stack([value.detach().cpu() for value in values])
    if isinstance(values, torch.Tensor):
        tensor = values.detach().cpu()
    else:
        try:
            array = np.asarray(values)
        except (TypeError, ValueError):  # ragged
            array = np.empty(0, dtype=object)
        if array.dtype.kind in "OUSMmV":
            what = "words" if array.dtype.kind in "US" else "not numbers of one shape"
            raise DataError(f"{where} is {described(values)}, {what}: give an array of numbers.")
        with calling(f"{where} cannot be a tensor", DataError):
            tensor = _from_numpy(array)
    if tensor.is_complex() or tensor.dim() == 0:
        raise DataError(f"{where} is {described(tensor)}: give real numbers [n, ...].")
    return tensor


def _from_numpy(array: np.ndarray) -> torch.Tensor:
    """A tensor with the values of an array of any byte order and any layout."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # long double
        array = array.astype(np.float64)
    if not array.flags.writeable or min(array.strides, default=1) < 0:  # torch warns or refuses
        array = array.copy()
    return torch.from_numpy(array)


def _images(
    train: torch.Tensor, test: torch.Tensor, name: str
) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[str, ...]]:
    """Bytes of images as numbers in [0, 1] with channels first, and notes on what was done."""
    if train.dtype != torch.uint8 or test.dtype != torch.uint8:
        return (train, test), _layout_note(train)
    if train.dim() < 3:
        raise DataError(
            f"{name}: train_inputs is {described(train)}, which may be pixels or token ids: give "
            "pixels as float32, e.g. inputs / 255, or token ids as int64."
        )
    done = "image bytes 0..255 were scaled to [0, 1]"
    if train.dim() == 3:
        train, test = train[:, None], test[:, None] if test.dim() == 3 else test
        done += f", of shape {list(train.shape[1:])}"
    elif _channels_last(train):
        train, test = train.movedim(-1, 1), test.movedim(-1, 1)
        done += f", with channels first: {list(train.shape[1:])}"
    unit = tuple(x.contiguous().to(torch.float32).div_(255) for x in (train, test))
    return (unit[0], unit[1]), (f"{done}.",)


def _layout_note(train: torch.Tensor) -> tuple[str, ...]:
    """A note if inputs that are used as they are look like images with channels last."""
    if not _channels_last(train):
        return ()
    return (
        f"inputs have shape {list(train.shape[1:])}, like images with channels last, and are used "
        "as they are. Convolutional models need channels first: np.moveaxis(inputs, -1, 1).",
    )


def _channels_last(inputs: torch.Tensor) -> bool:
    shape = inputs.shape
    return inputs.dim() == 4 and shape[-1] in CHANNELS and shape[1] not in CHANNELS


def _inputs(tensor: torch.Tensor) -> torch.Tensor:
    """Inputs as float32, or integers as int64."""
    if tensor.is_floating_point() or tensor.dtype == torch.bool:
        return tensor.to(torch.float32)
    return tensor if tensor.dtype == torch.uint8 else tensor.to(torch.int64)


def _labels(values: Any, where: str) -> torch.Tensor:
    """Labels as int64 or float32; true and false are classes, or flags [n, labels] as floats."""
    if not isinstance(values, torch.Tensor):
        try:
            words = np.asarray(values).dtype.kind in "US"
        except (TypeError, ValueError, RuntimeError):  # ragged, or tensors with gradients
            words = False
        if words or _has_words(values):
            raise DataError(
                f"{where} are words: give numbers of classes, e.g. names, labels = "
                "np.unique(words, return_inverse=True), with the same names for training and test."
            )
    labels = _tensor(values, where)
    flags = labels.dtype == torch.bool and labels.dim() > 1
    return labels.to(torch.float32 if labels.is_floating_point() or flags else torch.int64)


def _has_words(values: Any) -> bool:
    """Whether an array of objects, such as a column of a table, has words."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") != "O" and not isinstance(values, list | tuple):
        return False
    return isinstance(next(iter(values), None), str | bytes)
