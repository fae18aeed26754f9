"""Images with labels in parquet files, in the layout of copies from the Hugging Face hub.

Each row has an image, as PNG or JPEG bytes, and a label. Parquet can store the same rows in many
ways, so there is no single hash: structure, sizes and labels are checked, but not checksums.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from channels.arrays import IntArray
from wirelessfl.base.errors import DataError
from wirelessfl.data.dataset import Dataset, Facts, scale_pixels
from wirelessfl.data.files import find_place, part_files, reading_parquet

if TYPE_CHECKING:
    from PIL import Image
    from rich.console import Console

BLOCK = 500
"""Number of images that are decoded and scaled at once, to save memory."""
FORMATS = {"PNG": b"\x89PNG\r\n\x1a\n", "JPEG": b"\xff\xd8\xff"}
"""First bytes of a file of each format."""
SIDE = 32
"""Height and width of the images."""
_IMAGE_COLUMNS = ("img", "image")


@dataclass(frozen=True)
class HubImages:
    """A data set of 32x32 colour images in parquet files; grey images are converted to RGB.

    Args:
        name: name of the data set and its folder.
        remedy: what to do if files are missing or wrong, for messages.
        classes: number of classes.
        counts: number of training and of test images.
        label_columns: possible names of the label column; the first that a file has is used.
    """

    name: str
    remedy: str
    classes: int
    counts: tuple[int, int]
    label_columns: tuple[str, ...] = ("label",)

    @property
    def facts(self) -> Facts:
        """Shape and classes of the data set."""
        return Facts((3, SIDE, SIDE), classes=self.classes)

    def load(
        self, data_dir: str | os.PathLike[str] | None = None, console: Console | None = None
    ) -> Dataset:
        """Load the data set with inputs [n, 3, 32, 32] in [-1, 1]; see ``load_dataset``.

        Args:
            data_dir: folder that contains one folder per data set.
            console: console for a progress bar, if it is a terminal; None for standard error.
        """
        return self.read(find_place(self.name, data_dir, remedy=self.remedy).folder, console)

    def is_in(self, folder: Path) -> bool:
        """Whether ``folder`` contains files of the training or test part."""
        return any(part_files(folder, part, self.remedy) for part in ("train", "test"))

    def read(self, folder: Path, console: Console | None = None) -> Dataset:
        """Load the data set from ``folder``; see ``load``."""
        train, test = (self._part(folder, part) for part in ("train", "test"))
        counts = _rows(train), _rows(test)
        if counts != self.counts:
            raise DataError(
                f"{folder} has {counts[0]} training and {counts[1]} test images, but {self.name} "
                f"has {self.counts[0]} and {self.counts[1]}. {self.remedy}"
            )
        decoder = _Decoder(self.remedy)
        with decoding_progress(self.name, sum(counts), console) as advance:
            train_inputs = _decoded(train, decoder, advance)
            test_inputs = _decoded(test, decoder, advance)
        lossy = "JPEG" in decoder.formats
        formats = " and ".join(sorted(decoder.formats, reverse=True)) + " (lossy)" * lossy
        return Dataset(
            self.name,
            train_inputs,
            _targets(train),
            test_inputs,
            _targets(test),
            classes=self.classes,
            verification=f"hub copy, {formats}: structure and labels; not checksummed",
            lossy=lossy,
        )

    def _part(self, folder: Path, part: str) -> list[_ImageFile]:
        paths = part_files(folder, part, self.remedy)
        if not paths:
            raise DataError(
                f"{folder} has no {part}.parquet, nor numbered files such as "
                f"{part}-00000-of-00001.parquet. {self.remedy}"
            )
        return [_ImageFile.open(path, self) for path in paths]


SVHN = HubImages(
    "svhn",
    "Download all parquet files in the folder cropped_digits of "
    "https://huggingface.co/datasets/ufldl-stanford/svhn.",
    classes=10,
    counts=(73_257, 26_032),
)
"""99,289 colour images of house numbers, each labelled with the digit in its centre."""

CIFAR10_JPEG = HubImages(
    "cifar10-jpeg",
    "Use the train and test parquet files of a complete, undamaged copy.",
    classes=10,
    counts=(50_000, 10_000),
)
"""A lossy copy of CIFAR-10, whose results are not comparable with those on the original."""


class _ImageFile(NamedTuple):
    """A parquet file of images with labels [rows]; ``column`` has the images."""

    path: Path
    column: str
    labels: IntArray

    @classmethod
    def open(cls, path: Path, data: HubImages) -> _ImageFile:
        """Find the columns of a file, and read and check its labels."""
        advice, names = data.remedy, data.label_columns
        with reading_parquet(path, advice) as parquet, parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            image = next((name for name in _IMAGE_COLUMNS if name in schema.names), None)
            label = next((name for name in names if name in schema.names), None)
            if image is None or label is None:
                raise DataError(
                    f"{path}: the columns are {', '.join(schema.names)}; expected "
                    f"{' or '.join(_IMAGE_COLUMNS)}, and {' or '.join(names)}. {advice}"
                )
            kind = schema.field(image).type
            if not _has_bytes(kind):
                raise DataError(
                    f"{path}: column {image} has type {kind}, expected bytes or a struct with a "
                    f"field bytes. {advice}"
                )
            column = file.read(columns=[label]).column(label)
        return cls(path, image, _labels(column, label, path, data))

    def blocks(self, advice: str) -> Iterator[list[bytes]]:
        """The bytes of the images, in blocks."""
        row = 0
        with (
            reading_parquet(self.path, advice) as parquet,
            parquet.ParquetFile(self.path) as file,
        ):
            for batch in file.iter_batches(batch_size=BLOCK, columns=[self.column]):
                values = batch.column(0).to_pylist()
                yield [
                    _content(value, f"{self.path}, row {number}", advice)
                    for number, value in enumerate(values, start=row)
                ]
                row += len(values)


def _has_bytes(kind: Any) -> bool:
    """Whether a type of pyarrow is bytes or a struct with a field ``bytes``."""
    from pyarrow import types

    if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        kind = kind[kind.get_field_index("bytes")].type
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _labels(column: Any, name: str, path: Path, data: HubImages) -> IntArray:
    """The labels [rows] in a column of pyarrow: one class per row, at least one row."""
    from pyarrow import types

    if not types.is_integer(column.type):
        first = f", e.g. {column[0].as_py()!r} in row 0" if len(column) else ""
        raise DataError(
            f"{path}: column {name} has type {column.type}{first}; labels must be integers >= 0. "
            f"{data.remedy}"
        )
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise DataError(f"{path}, row {row}: the label is null. {data.remedy}")
    labels: IntArray = column.to_numpy()
    if not len(labels):
        raise DataError(f"{path} has no rows. {data.remedy}")
    wrong = np.flatnonzero((labels < 0) | (labels >= data.classes))
    if len(wrong):
        raise DataError(
            f"{path}, row {wrong[0]}: the label is {labels[wrong[0]]}, expected 0 to "
            f"{data.classes - 1}. {data.remedy}"
        )
    return labels


def _content(value: Any, where: str, advice: str) -> bytes:
    """The bytes in a value of the image column: bytes, or a dict with bytes."""
    content: bytes | None = value.get("bytes") if isinstance(value, dict) else value
    if content is None:
        path = value.get("path") if isinstance(value, dict) else None
        instead = "" if path is None else f", only the path {path!r}"
        raise DataError(f"{where}: the image has no bytes{instead}. {advice}")
    return content


def _rows(files: Sequence[_ImageFile]) -> int:
    return sum(len(file.labels) for file in files)


def _targets(files: Sequence[_ImageFile]) -> torch.Tensor:
    """The labels of a part, [n], int64."""
    return torch.from_numpy(np.concatenate([file.labels.astype(np.int64) for file in files]))


def _decoded(
    files: Sequence[_ImageFile], decoder: _Decoder, advance: Callable[[int], object]
) -> torch.Tensor:
    """The images of a part, [n, 3, 32, 32] in [-1, 1]."""
    inputs, done = torch.empty(_rows(files), 3, SIDE, SIDE), 0
    for file in files:
        row = 0
        for block in file.blocks(decoder.advice):
            pixels = [
                decoder.pixels(content, f"{file.path}, row {number}")
                for number, content in enumerate(block, start=row)
            ]
            inputs[done : done + len(block)] = scale_pixels(np.stack(pixels))
            row, done = row + len(block), done + len(block)
            advance(len(block))
    return inputs


@dataclass
class _Decoder:
    """Decodes images, and notes their formats, keys of ``FORMATS``."""

    advice: str
    formats: set[str] = field(default_factory=set)

    def pixels(self, content: bytes, where: str) -> NDArray[np.uint8]:
        """One image, [3, 32, 32]."""
        from PIL import Image

        formats = [name for name, start in FORMATS.items() if content.startswith(start)]
        if not formats:
            raise DataError(f"{where}: the image is neither PNG nor JPEG. {self.advice}")
        self.formats.add(formats[0])
        try:
            with Image.open(io.BytesIO(content), formats=formats) as image:
                fault = _fault(image, content)
                if fault:
                    raise DataError(f"{where}: the image {fault}. {self.advice}")
                return np.asarray(image.convert("RGB")).transpose(2, 0, 1)
        except DataError:
            raise
        except (
            *(OSError, SyntaxError, ValueError, EOFError, struct.error),  # of damaged files
            Image.DecompressionBombError,
        ) as error:
            raise DataError(
                f"{where}: damaged {formats[0]} image ({error}). {self.advice}"
            ) from error


def _fault(image: Image.Image, content: bytes) -> str:
    """Why an image would lose bits, colours or transparency, or has another size; "" if not."""
    if image.mode not in ("RGB", "L"):
        return f"has mode {image.mode}, expected RGB or L (8-bit grey)"
    if image.size != (SIDE, SIDE):
        return f"is {image.size[0]}x{image.size[1]}, expected {SIDE}x{SIDE}"
    if image.format == "PNG" and content[24] > 8:  # Pillow keeps the upper 8 bits
        return f"has {content[24]} bits per channel, expected at most 8"
    if "transparency" in image.info:
        return "has a transparent colour (chunk tRNS), expected none"
    return ""


@contextmanager
def decoding_progress(
    name: str, images: int, console: Console | None = None
) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on a terminal; yields a function that adds a number of images.

    Args:
        name: name of the data set.
        images: number of images to decode.
        console: console of the bar; None for standard error.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from wirelessfl.base.terminal import Terminal

    console = console or Terminal(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{name}: decoding", total=images)
        yield lambda count: progress.advance(task, count)
