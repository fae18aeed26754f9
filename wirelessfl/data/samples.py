"""Samples of data sets of torch and of Hugging Face, and of folders of images."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from channels.streams import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.base.guard import calling, described
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.data.dataset import Dataset, check_dense, scale_pixels
from wirelessfl.data.files import dataset_title

IMAGES = ("image", "img", "pixel_values", "inputs", "input", "features", "x")
LABELS = ("label", "labels", "fine_label", "target", "targets", "y")
"""Names of columns, in order of preference."""
READ_TWICE = 32
"""Number of samples that are read again, to find out whether samples are random."""
RANDOM = (
    "samples are random. Each is read once, under generators with a fixed seed, and keeps its "
    "values in all rounds. For new ones in every batch, leave out the random transforms and give "
    "augment=f(x, generator)."
)
UNSEEDED = (
    "samples are random, and do not draw from the global generators of Python, NumPy or torch, "
    "which are seeded: results cannot be repeated. Leave out the random transforms, and give "
    "augment=f(x, generator)."
)
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
TEST_FOLDERS = ("test", "val", "validation", "valid")
"""Names of the folder of test images, in order of preference."""

Part = tuple[np.ndarray, np.ndarray]
"""Images [n, height, width] or [n, height, width, 3] as bytes, and labels [n]."""


@dataclass(frozen=True)
class Collected:
    """All samples of a data set.

    Args:
        inputs: [n, ...].
        labels: [n, ...].
        classes: number of classes that the data set names; None if it names none.
        note: that samples are random; None if they are not.
    """

    inputs: Any
    labels: Any
    classes: int | None
    note: str | None = None


def is_samples(thing: Any) -> bool:
    """Whether an object is a data set of samples with an index."""
    return isinstance(thing, torch.utils.data.Dataset) or is_table(thing)


def is_table(thing: Any) -> bool:
    """Whether an object is a data set of Hugging Face, without importing their package."""
    return hasattr(thing, "column_names") and hasattr(thing, "features")


def collected(data: Any, columns: tuple[str, str] | None, where: str) -> Collected:
    """Read all samples of a data set once, in their order, under seeded generators.

    The first ones are read twice, to note that samples are random.

    Args:
        data: data set of torch or of Hugging Face.
        columns: names of the columns of inputs and labels; None to look for usual names.
        where: what the data set is, for messages.
    """
    kind = torch.utils.data.TensorDataset
    if isinstance(data, kind) and len(data.tensors) == 2 and not _transforms(data):
        return Collected(*data.tensors, None)
    if is_table(data):
        columns = _columns(data, columns, where)
        classes = getattr(data.features.get(columns[1]), "num_classes", None)
    else:
        names = getattr(data, "classes", None)
        classes = len(names) if isinstance(names, list | tuple) and names else None

    def read(seed: int, most: int | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        with seeded_generators(Stream(seed, ("samples",))):
            samples = _samples(data, where) if columns is None else _rows(data, columns, where)
            return list(islice(samples, most))

    samples = read(0)
    inputs, labels = [x for x, _ in samples], [y for _, y in samples]
    note = None
    if not _equal(samples, read(1, READ_TWICE)):
        note = RANDOM if _equal(samples, read(0, READ_TWICE)) else UNSEEDED
    return Collected(stacked(inputs, where), stacked(labels, f"{where}, labels"), classes, note)


def _transforms(data: torch.utils.data.TensorDataset) -> bool:
    return type(data).__getitem__ is not torch.utils.data.TensorDataset.__getitem__


def _equal(samples: Sequence[Any], again: Sequence[Any]) -> bool:
    """Whether the samples that were read twice, inputs and labels, are the same."""
    pairs = zip(samples, again, strict=False)
    return all(
        one.shape == two.shape and np.array_equal(one, two, equal_nan=one.dtype.kind == "f")
        for first, second in pairs
        for one, two in zip(first, second, strict=True)
    )


def _samples(data: Any, where: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The samples of a data set of torch."""
    for place in range(_length(data, where)):
        with calling(f"{where}[{place}]", DataError):
            item = data[place]
        if not isinstance(item, Sequence) or len(item) != 2 or isinstance(item, str):
            raise DataError(f"{where}[{place}] is {described(item)}: give samples (input, label).")
        yield (
            _array(item[0], f"{where}[{place}], input"),
            _array(item[1], f"{where}[{place}], label"),
        )


def stacked(arrays: Sequence[np.ndarray], where: str) -> np.ndarray:
    """Arrays of equal shape as one array."""
    if not arrays:
        raise DataError(f"{where} has no samples: give at least one.")
    for place, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise DataError(
                f"{where}[{place}] has shape {list(array.shape)}, but {where}[0] "
                f"{list(arrays[0].shape)}: give all samples the same shape, e.g. resize images."
            )
    return np.stack(arrays)


def _length(data: Any, where: str) -> int:
    try:
        return len(data)
    except TypeError:
        raise DataError(
            f"{where} is {type(data).__name__}, which has no length: give a data set with __len__ "
            "and __getitem__."
        ) from None


def _array(value: Any, where: str) -> np.ndarray:
    """An input or a label as an array; images of PIL become bytes."""
    if isinstance(value, torch.Tensor):
        check_dense(where, value)
        value = value.detach().cpu()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    if getattr(value, "mode", None) in ("P", "1", "CMYK", "LA", "PA"):  # palettes and the like
        value = value.convert("RGB")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind == "O":
        raise DataError(f"{where} is {described(value)}: give numbers, a tensor, or an image.")
    return array


def _columns(data: Any, columns: tuple[str, str] | None, where: str) -> tuple[str, str]:
    """The columns of inputs and labels of a Hugging Face data set."""
    names = data.column_names
    if isinstance(names, Mapping):
        raise DataError(f"{where} is a set of splits: give one split.")
    if columns is None:
        first, second = _column(names, IMAGES), _column(names, LABELS)
        if first is None or second is None:
            raise DataError(
                f"{where} has the columns {', '.join(names)}: name those of inputs and labels, "
                'as_dataset(data, columns=("image", "label")).'
            )
        return first, second
    for column in columns:
        if column not in names:
            raise DataError(
                f"columns names {column!r}, but {where} has {', '.join(names)}: choose two."
            )
    return columns


def _rows(
    data: Any, columns: tuple[str, str], where: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The samples of a Hugging Face data set."""
    first, second = columns
    for place, row in enumerate(_read(data, where)):
        if isinstance(row[first], str):
            raise DataError(
                f"{where}[{place}] has text in column {first!r}: give token ids, or use the texts "
                "as a data set of their own, see docs/guides/language.md."
            )
        if isinstance(row[second], str):
            raise DataError(
                f"{where}[{place}] has the label {row[second]!r}: give numbers, by "
                f"data.class_encode_column({second!r})."
            )
        yield (
            _array(row[first], f"{where}[{place}], {first}"),
            _array(row[second], f"{where}[{place}], {second}"),
        )


def _read(data: Any, where: str) -> Iterator[Mapping[str, Any]]:
    with calling(where, DataError):
        yield from data


def _column(names: Sequence[str], usual: Sequence[str]) -> str | None:
    return next((name for name in usual if name in names), None)


@dataclass(frozen=True)
class ImageFolder:
    """The folder of images that the setting ``dataset`` names by its path."""

    path: Path

    def load(self, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
        """The images, see ``read_images``, [n, channels, height, width] in [-1, 1]."""
        if not is_image_folder(self.path):
            what = "has no folder train" if self.path.is_dir() else "is not a folder"
            raise DataError(
                f"dataset is {str(self.path)!r}, which {what}: give the path of a folder with "
                "train/CLASS/1.png and test/CLASS/1.png, or a name from `wirelessfl list`. "
                "Names of a hub are not read: from Python, give its DatasetDict as data=..."
            )
        (x, y), (x_test, y_test), classes = read_images(self.path)
        parts = (p[:, None] if p.ndim == 3 else np.moveaxis(p, -1, 1) for p in (x, x_test))
        inputs = [scale_pixels(np.ascontiguousarray(pixels)) for pixels in parts]
        labels = [torch.from_numpy(part) for part in (y, y_test)]
        name = dataset_title(str(self.path))
        return Dataset(name, inputs[0], labels[0], inputs[1], labels[1], classes=len(classes))


def is_image_folder(path: Path) -> bool:
    """Whether a folder has a subfolder of training images."""
    return (path / "train").is_dir()


def read_images(path: Path) -> tuple[Part, Part, list[str]]:
    """Read the images of a folder.

    Args:
        path: the folder, with ``train/CLASS/`` and ``test/CLASS/``; the latter may also be called
            ``val``, ``validation`` or ``valid``.

    Returns:
        Training part, test part, and names of the classes, sorted; labels are their indices.
    """
    test = next((path / name for name in TEST_FOLDERS if (path / name).is_dir()), None)
    if test is None:
        raise DataError(f"{path} has train, but no folder test: add one with its test images.")
    classes = _class_folders(path / "train")
    unknown = sorted(set(_class_folders(test)) - set(classes))
    if unknown:
        raise DataError(
            f"{test} has the class {unknown[0]!r}, which {path / 'train'} lacks: give both parts "
            "the same classes."
        )
    files = [_image_files(part, classes) for part in (path / "train", test)]
    grey = all(_mode(file) in ("L", "1") for part in files for file, _ in part)
    train, tested = (_read_part(part, "L" if grey else "RGB") for part in files)
    return train, tested, classes


def _class_folders(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def _image_files(folder: Path, classes: list[str]) -> list[tuple[Path, int]]:
    """Images of a part with their labels, sorted by class and name."""
    images = [
        (file, label)
        for label, name in enumerate(classes)
        for file in sorted((folder / name).rglob("*"))
        if file.suffix.lower() in SUFFIXES
    ]
    if not images:
        raise DataError(
            f"{folder} has no images: put them into one folder per class, e.g. "
            f"{folder / 'cat' / '1.png'}."
        )
    return images


def _mode(file: Path) -> str:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as image:
            return image.mode
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise DataError(f"{file} cannot be read as an image: {error}.") from error


def _read_part(files: list[tuple[Path, int]], mode: str) -> Part:
    from PIL import Image

    images: list[np.ndarray] = []
    for file, _ in files:
        try:
            with Image.open(file) as image:
                pixels = np.asarray(image.convert(mode))
        except (OSError, ValueError, SyntaxError) as error:
            raise DataError(f"{file} cannot be read as an image: {error}.") from error
        if images and pixels.shape != images[0].shape:
            height, width = images[0].shape[:2]
            raise DataError(
                f"{file} has {pixels.shape[1]} x {pixels.shape[0]} pixels, but {files[0][0]} has "
                f"{width} x {height}: resize the images to one size."
            )
        images.append(pixels)
    return stacked(images, "images"), np.array([label for _, label in files])
