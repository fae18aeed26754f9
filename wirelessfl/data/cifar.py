"""CIFAR-10 and CIFAR-100 in the binary version: records of label bytes and 3072 pixel bytes.

Source: Krizhevsky's page, https://www.cs.toronto.edu/~kriz/cifar.html, which publishes the layout
and the MD5 of the archives. Nothing is unpickled. Copies from the hub are read without the archive.
"""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.base.errors import DataError
from wirelessfl.data.dataset import Dataset, Facts, scale_pixels
from wirelessfl.data.files import Place, Published, find_place, read_verified
from wirelessfl.data.hub_images import HubImages

_IMAGE = (3, 32, 32)
_PIXELS = 3072


@dataclass(frozen=True)
class Cifar:
    """A CIFAR data set in the binary version.

    Args:
        name: name of the data set and its folder.
        archive: the published tar.gz, with its MD5.
        folder: the folder inside the archive.
        train_files: files of training records, in order.
        test_file: file of test records.
        train_records: number of records in each training file.
        test_records: number of records in the test file.
        label_ranges: number of values of each label byte of a record; the last byte is the class.
        hub_labels: possible names of the label column in a copy from the hub.
    """

    name: str
    archive: Published
    folder: str
    train_files: tuple[str, ...]
    test_file: str
    train_records: int
    test_records: int
    label_ranges: tuple[int, ...]
    hub_labels: tuple[str, ...] = ("label",)

    @property
    def facts(self) -> Facts:
        """Shape and classes of the data set."""
        return Facts(_IMAGE, classes=self.label_ranges[-1])

    def load(self, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
        """Load the data set with inputs [n, 3, 32, 32] in [-1, 1], channels RGB.

        The folder of the data set contains ``archive`` or, without it, a copy from the hub. If
        there is nothing in the cache, the archive is downloaded there.
        """
        place = find_place(self.name, data_dir)
        packed = (place.folder / self.archive.name).is_file()
        if not packed and self._hub_copy.is_in(place.folder):
            return self._hub_copy.read(place.folder)
        contents = self._contents(place)
        train = [
            self._records(contents[name], name, self.train_records) for name in self.train_files
        ]
        test_inputs, test_labels = self._tensors(
            [self._records(contents[self.test_file], self.test_file, self.test_records)]
        )
        train_inputs, train_labels = self._tensors(train)
        return Dataset(
            self.name,
            train_inputs,
            train_labels,
            test_inputs,
            test_labels,
            classes=self.label_ranges[-1],
            verification="MD5 of the archive",
        )

    @property
    def _hub_copy(self) -> HubImages:
        """The reader of a copy from the hub."""
        return HubImages(
            self.name,
            f"Download all its parquet files from https://huggingface.co/datasets/uoft-cs/{self.name}.",
            classes=self.label_ranges[-1],
            counts=(self.train_records * len(self.train_files), self.test_records),
            label_columns=self.hub_labels,
        )

    def _contents(self, place: Place) -> dict[str, bytes]:
        """Contents of the archive's files by name."""
        names = (*self.train_files, self.test_file)
        packed = read_verified(self.archive, place)
        try:
            with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
                members = {name: archive.extractfile(f"{self.folder}/{name}") for name in names}
                return {name: member.read() for name, member in members.items() if member}
        except (tarfile.TarError, KeyError, EOFError, OSError, zlib.error) as error:
            raise DataError(
                f"{self.name}/{self.archive.name}: not a tar.gz with {', '.join(names)} in "
                f"{self.folder} ({error}). Download it again from {self.archive.url}."
            ) from error

    def _records(self, content: bytes, file: str, records: int) -> NDArray[np.uint8]:
        """Records [records, labels + 3072] of one file."""
        labels = len(self.label_ranges)
        expected = records * (labels + _PIXELS)
        if len(content) != expected:
            raise DataError(
                f"{self.name}/{file}: {len(content)} bytes, expected {expected} ({records} records "
                f"of {labels + _PIXELS} bytes). Download it again from {self.archive.url}."
            )
        table = np.frombuffer(content, np.uint8).reshape(records, labels + _PIXELS)
        for column, count in enumerate(self.label_ranges):
            bad = np.flatnonzero(table[:, column] >= count)
            if len(bad):
                raise DataError(
                    f"{self.name}/{file}: record {bad[0]} has label {table[bad[0], column]} in "
                    f"byte {column}, expected 0..{count - 1}. Check that it is the binary version."
                )
        return table

    def _tensors(self, tables: list[NDArray[np.uint8]]) -> tuple[torch.Tensor, torch.Tensor]:
        labels = len(self.label_ranges)
        pixels = np.concatenate([table[:, labels:] for table in tables])
        classes = np.concatenate([table[:, labels - 1] for table in tables])
        return (
            scale_pixels(pixels.reshape(-1, *_IMAGE)),
            torch.from_numpy(classes.astype(np.int64)),
        )


_PAGE = "https://www.cs.toronto.edu/~kriz/"

CIFAR10 = Cifar(
    name="cifar10",
    archive=Published("cifar-10-binary.tar.gz", _PAGE, "md5:c32a1d4ab5d03f1284b67883e8d87530"),
    folder="cifar-10-batches-bin",
    train_files=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    test_file="test_batch.bin",
    train_records=10_000,
    test_records=10_000,
    label_ranges=(10,),
)
"""60,000 colour images in 10 classes (Krizhevsky, 2009)."""

CIFAR100 = Cifar(
    name="cifar100",
    archive=Published("cifar-100-binary.tar.gz", _PAGE, "md5:03b5dce01913d631647c71ecec9e9cb8"),
    folder="cifar-100-binary",
    train_files=("train.bin",),
    test_file="test.bin",
    train_records=50_000,
    test_records=10_000,
    label_ranges=(20, 100),
    hub_labels=("fine_label", "label"),
)
"""60,000 colour images in 100 classes, with coarse and fine labels (Krizhevsky, 2009)."""
