"""Images with labels as parquet files, in the layout of copies from the Hugging Face hub.

A user's folder may have class folders of images instead.

Each row has an image, as PNG or JPEG bytes, and a label. Parquet can store the same rows in many
ways, so there is no single hash: structure, sizes and labels are checked, but not checksums.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from wirelessfl.data.dataset import Dataset, scale_pixels
from wirelessfl.data.decoding import Decoder, decoding_progress
from wirelessfl.data.facts import Facts
from wirelessfl.data.files import dataset_title, find_place
from wirelessfl.data.hub_files import ImageFile, part_files
from wirelessfl.data.own.folder import is_image_folder, read_images
from wirelessfl.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console

_MAX_CLASSES = 1 << 16
"""Limit if the number of classes is not known: a larger label is an id, not a class index."""

TrainTestFiles = tuple[tuple[Path, ...], tuple[Path, ...]]


@dataclass(frozen=True)
class HubImages:
    """A data set of images in parquet files.

    Args:
        name: name of the data set, and of its folder unless ``folder`` is given.
        remedy: what to do if files are missing or wrong, for messages.
        subfolder: subfolder of the files on the hub; they may also be in the data set's folder or
            in its subfolder ``data``.
        label_columns: possible names of the label column; the first that a file has is used.
        classes: number of classes; None for 1 + the largest training label.
        side: height and width of the images, which are converted to RGB; None if all images must
            have the mode (RGB or 8-bit grey) and size of the first one.
        counts: number of training and of test images; None for any.
        folder: the data set's folder; None for the folder ``name`` in ``data_dir``.
    """

    name: str
    remedy: str
    subfolder: str = "data"
    label_columns: tuple[str, ...] = ("label",)
    classes: int | None = None
    side: int | None = None
    counts: tuple[int, int] | None = None
    folder: Path | None = None

    @property
    def facts(self) -> Facts | None:
        """Shape and classes of the data set; None if its files determine them."""
        if self.side is None or self.classes is None:
            return None
        return Facts((3, self.side, self.side), classes=self.classes)

    def load(
        self, data_dir: str | os.PathLike[str] | None = None, console: Console | None = None
    ) -> Dataset:
        """Load the data set with inputs [n, channels, height, width] in [-1, 1].

        Args:
            data_dir: folder that contains one folder per data set; None as in ``load_dataset``.
            console: console for a progress bar, if it is a terminal; None for standard error.

        Raises:
            DataError: the folder does not exist, or as for ``read``.
        """
        if self.folder is None:
            return self.read(find_place(self.name, data_dir, remedy=self.remedy).folder, console)
        if not self.folder.is_dir():
            raise DataError(
                f"dataset is {str(self.folder)!r}, which is not a folder: give the path of a "
                "folder with train/CLASS/1.png and test/CLASS/1.png, or with train.parquet and "
                "test.parquet, or a name from `wirelessfl list`."
            )
        if is_image_folder(self.folder) and not self.is_in(self.folder):
            return _of_class_folders(self.name, self.folder)
        return self.read(self.folder, console)

    def is_in(self, folder: Path) -> bool:
        """Whether ``folder`` contains files of the training or test part.

        Raises:
            DataError: some of a part's numbered files are missing.
        """
        return any(any(self._parts(place)) for place in self._places(folder))

    def read(self, folder: Path, console: Console | None = None) -> Dataset:
        """Load the data set from ``folder``; see ``load``.

        Raises:
            DataError: pyarrow is not installed; a part, a column or rows are missing; a file or an
                image is damaged; an image has a wrong mode or size; a label is not a class.
        """
        train, test = ([self._file(path) for path in paths] for paths in self._find(folder))
        self._check_counts(folder, train, test)
        classes = self.classes or self._count_classes(train, test)
        decoder = Decoder(self.side, self.remedy)
        with decoding_progress(self.name, _rows(train) + _rows(test), console) as advance:
            train_inputs = _decoded(train, decoder, advance)
            test_inputs = _decoded(test, decoder, advance)
        lossy = "JPEG" in decoder.formats
        formats = " and ".join(sorted(decoder.formats, reverse=True)) + " (lossy)" * lossy
        return Dataset(
            self.name,
            train_inputs,
            _labels(train),
            test_inputs,
            _labels(test),
            classes=classes,
            verification=f"hub copy, {formats}: structure and labels; not checksummed",
            lossy=lossy,
        )

    def _places(self, folder: Path) -> list[Path]:
        """The folders that may contain the files."""
        return list(dict.fromkeys((folder, folder / "data", folder / self.subfolder)))

    def _parts(self, folder: Path) -> TrainTestFiles:
        """The training and test files in one folder."""
        train = part_files(folder, "train", "parquet", self.remedy)
        return train, part_files(folder, "test", "parquet", self.remedy)

    def _find(self, folder: Path) -> TrainTestFiles:
        """The training and test files in the first folder that has both.

        Raises:
            DataError: there is none.
        """
        problem = ""
        for place in self._places(folder):
            train, test = self._parts(place)
            if train and test:
                return train, test
            if (train or test) and not problem:
                lacks = "test.parquet" if train else "train.parquet"
                problem = f"{place} has {(train or test)[0].name} but no {lacks}"
        problem = problem or (
            f"{folder} has no train.parquet and test.parquet, nor numbered files such as "
            "train-00000-of-00001.parquet, nor class folders such as train/cat"
        )
        raise DataError(f"{problem}. {self.remedy}")

    def _file(self, path: Path) -> ImageFile:
        """Open a file, and check its labels.

        Raises:
            DataError: the file is damaged, a column is missing, or a label is wrong.
        """
        file = ImageFile.open(path, self.label_columns, self.remedy)
        _check_labels(file, self.classes or _MAX_CLASSES, self.remedy)
        return file

    def _check_counts(self, folder: Path, train: list[ImageFile], test: list[ImageFile]) -> None:
        """Check the number of images.

        Raises:
            DataError: a part has no rows, or not as many as the published one.
        """
        for files in (train, test):
            if not _rows(files):
                raise DataError(f"{files[0].path} has no rows. {self.remedy}")
        found = (_rows(train), _rows(test))
        if self.counts is not None and found != self.counts:
            raise DataError(
                f"{folder} has {found[0]} training and {found[1]} test images, but {self.name} has "
                f"{self.counts[0]} and {self.counts[1]}. {self.remedy}"
            )

    def _count_classes(self, train: list[ImageFile], test: list[ImageFile]) -> int:
        """1 + the largest training label.

        Raises:
            DataError: a test label is larger, or the training labels are not class indices, since
                fewer than a tenth of the values up to the largest one occur.
        """
        found = np.unique(np.concatenate([file.labels for file in train]))
        classes = 1 + int(found[-1])
        if classes > 10 * len(found):
            raise DataError(
                f"{train[0].path.parent}: the training labels have {len(found)} values up to "
                f"{classes - 1}. Number the classes from 0, without gaps. {self.remedy}"
            )
        advice = f"No training image has a larger label. {self.remedy}"
        for file in test:
            _check_labels(file, classes, advice)
        return classes


def _of_class_folders(name: str, folder: Path) -> Dataset:
    """The images of class folders, see ``read_images``, with inputs in [-1, 1]."""
    (x, y), (x_test, y_test), classes = read_images(folder)
    inputs = [
        scale_pixels(
            pixels[:, None]
            if pixels.ndim == 3
            else np.ascontiguousarray(np.moveaxis(pixels, -1, 1))
        )
        for pixels in (x, x_test)
    ]
    labels = [torch.from_numpy(part) for part in (y, y_test)]
    return Dataset(name, inputs[0], labels[0], inputs[1], labels[1], classes=len(classes))


def own_images(path: Path) -> HubImages:
    """The reader of a user's folder of images; its ``load`` ignores ``data_dir``."""
    return HubImages(
        dataset_title(str(path)), f"Complete or correct the files in {path}.", folder=path
    )


SVHN = HubImages(
    "svhn",
    "Download all its parquet files from https://huggingface.co/datasets/ufldl-stanford/svhn.",
    subfolder="cropped_digits",
    classes=10,
    side=32,
    counts=(73_257, 26_032),
)
"""99,289 colour images of house numbers, each labelled with the digit in its centre."""

CIFAR10_JPEG = HubImages(
    "cifar10-jpeg",
    "Use the train and test parquet files of a complete, undamaged copy.",
    classes=10,
    side=32,
    counts=(50_000, 10_000),
)
"""A lossy copy of CIFAR-10, whose results are not comparable with those on the original."""


def _rows(files: Sequence[ImageFile]) -> int:
    return sum(len(file.labels) for file in files)


def _labels(files: Sequence[ImageFile]) -> torch.Tensor:
    """The labels of a part, [n], int64."""
    labels = np.concatenate([file.labels.astype(np.int64) for file in files])
    return torch.from_numpy(labels)


def _check_labels(file: ImageFile, classes: int, advice: str) -> None:
    """Raise unless all labels are in 0..classes - 1."""
    bad = np.flatnonzero((file.labels < 0) | (file.labels >= classes))
    if len(bad):
        raise DataError(
            f"{file.path}, row {bad[0]}: the label is {file.labels[bad[0]]}, expected 0 to "
            f"{classes - 1}. {advice}"
        )


def _decoded(
    files: Sequence[ImageFile], decoder: Decoder, advance: Callable[[int], object]
) -> torch.Tensor:
    """Decode the images of a part to [n, channels, height, width] in [-1, 1]."""
    inputs, done = torch.empty(0), 0
    for file in files:
        row = 0
        for block in file.blocks(decoder.advice):
            pixels = [
                decoder.pixels(content, f"{file.path}, row {number}")
                for number, content in enumerate(block, start=row)
            ]
            scaled = scale_pixels(np.stack(pixels))
            if not done:
                inputs = torch.empty(_rows(files), *scaled.shape[1:])
            inputs[done : done + len(scaled)] = scaled
            row, done = row + len(scaled), done + len(scaled)
            advance(len(scaled))
    return inputs
