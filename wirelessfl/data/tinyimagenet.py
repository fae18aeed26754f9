"""TinyImageNet: 64x64 photographs in 200 classes, in the published zip of JPEGs.

Source: Stanford's course CS231n, http://cs231n.stanford.edu/tiny-imagenet-200.zip, which publishes
no checksum. Nothing is downloaded; structure, sizes and labels are checked, but no checksum.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.base.errors import DataError
from wirelessfl.data.dataset import Dataset, Facts, scale_pixels
from wirelessfl.data.files import find_place
from wirelessfl.data.hub_images import BLOCK, decoding_progress

if TYPE_CHECKING:
    from rich.console import Console

NAME = "tinyimagenet"
FOLDER = "tiny-imagenet-200"
ARCHIVE = f"{FOLDER}.zip"
URL = f"http://cs231n.stanford.edu/{ARCHIVE}"
SIDE = 64
FACTS = Facts((3, SIDE, SIDE), classes=200)
"""Shape and classes of the published data set."""
_AGAIN = f"Download it again from {URL}."


def load_tiny_imagenet(
    data_dir: str | os.PathLike[str] | None = None, console: Console | None = None
) -> Dataset:
    """Load the data set with inputs [n, 3, 64, 64] in [-1, 1], channels RGB: 5.4 GB in total.

    The folder ``tinyimagenet`` in ``data_dir`` (or in WIRELESSFL_DATA, or in the cache) contains
    ``tiny-imagenet-200.zip``. A label is the index of the class in ``wnids.txt``. The published
    validation images are the test set, in the order of their annotations (the published test images
    have no labels). Grey images are converted to RGB.

    Args:
        data_dir: folder that contains one folder per data set.
        console: console for a progress bar, if it is a terminal; None for standard error.
    """
    place = find_place(NAME, data_dir, remedy=f"Download them from {URL}.")
    with _opened(place.folder) as files:
        classes = _classes(files)
        train = [
            (path, label) for wnid, label in classes.items() for path in _images_of(files, wnid)
        ]
        test = _annotated(files, classes)
        with decoding_progress(NAME, len(train) + len(test), console) as advance:
            train_inputs = _decoded(files, [path for path, _ in train], advance)
            test_inputs = _decoded(files, [path for path, _ in test], advance)
    return Dataset(
        NAME,
        train_inputs,
        torch.tensor([label for _, label in train]),
        test_inputs,
        torch.tensor([label for _, label in test]),
        classes=len(classes),
        verification=f"{len(train)} and {len(test)} images in {len(classes)} classes: structure, "
        "sizes and labels; not checksummed",
    )


@dataclass(frozen=True)
class _Files:
    """The files of the zip ``where``; ``paths`` are relative to the folder inside it."""

    where: Path
    packed: zipfile.ZipFile
    paths: frozenset[str]

    @cached_property
    def images(self) -> dict[str, list[str]]:
        """Sorted paths of the JPEGs by folder (with its slash), without hidden files."""
        images: dict[str, list[str]] = {}
        for path in sorted(self.paths):
            folder, _, name = path.rpartition("/")
            if name.lower().endswith((".jpeg", ".jpg")) and not name.startswith("."):
                images.setdefault(f"{folder}/", []).append(path)
        return images

    def read(self, path: str) -> bytes:
        """Read the bytes at ``path``, which must be in ``paths``."""
        try:
            return self.packed.read(f"{FOLDER}/{path}")
        # RuntimeError: encrypted; its subclass NotImplementedError: unknown compression
        except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(f"{self.where}: {path} cannot be read ({error}). {_AGAIN}") from error

    def lines(self, path: str) -> list[str]:
        """The non-empty lines of the text file at ``path``."""
        if path not in self.paths:
            raise DataError(f"{self.where} has no {path}. {_AGAIN}")
        text = self.read(path).decode(errors="replace")
        return [line.strip() for line in text.splitlines() if line.strip()]


@contextmanager
def _opened(folder: Path) -> Iterator[_Files]:
    """Open the zip."""
    archive = folder / ARCHIVE
    if not archive.is_file():
        raise DataError(
            f"{folder} has no {ARCHIVE}. {NAME} has no published checksum and is not downloaded "
            f"automatically: download {URL} and put it there."
        )
    try:
        packed = zipfile.ZipFile(archive)
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{archive} cannot be opened ({error}). {_AGAIN}") from error
    with packed:
        inner = f"{FOLDER}/"
        names = (name for name in packed.namelist() if name.startswith(inner))
        yield _Files(archive, packed, frozenset(name.removeprefix(inner) for name in names))


def _classes(files: _Files) -> dict[str, int]:
    """The label of each class, in the order of wnids.txt."""
    wnids = files.lines("wnids.txt")
    twice = [wnid for wnid, count in Counter(wnids).items() if count > 1]
    if twice or not wnids:
        problem = f"contains {twice[0]} more than once" if twice else "contains no classes"
        raise DataError(f"{files.where}: wnids.txt {problem}. {_AGAIN}")
    folders = {name.split("/")[1] for name in files.images if name.startswith("train/")}
    unknown = sorted(folders - set(wnids))
    if unknown:
        raise DataError(
            f"{files.where}: train has {len(unknown)} folders of classes that are not in "
            f"wnids.txt, e.g. {unknown[0]}. {_AGAIN}"
        )
    return {wnid: label for label, wnid in enumerate(wnids)}


def _images_of(files: _Files, wnid: str) -> list[str]:
    """Sorted paths of a class's training images, checked against its bounding-box file."""
    folder, boxes = f"train/{wnid}/images/", f"train/{wnid}/{wnid}_boxes.txt"
    images = files.images.get(folder, [])
    if not images:
        raise DataError(f"{files.where}: class {wnid} has no images in {folder}. {_AGAIN}")
    if boxes in files.paths:
        _check_present(files, boxes, (folder + line.split()[0] for line in files.lines(boxes)))
    return images


def _annotated(files: _Files, classes: dict[str, int]) -> list[tuple[str, int]]:
    """Paths and labels of the validation images."""
    annotations, folder = "val/val_annotations.txt", "val/images/"
    labels: dict[str, int] = {}
    for number, line in enumerate(files.lines(annotations), 1):
        image, wnid, *_ = (*line.split(), "", "")
        where = f"{files.where}: {annotations}, annotation {number}"
        if wnid not in classes:
            raise DataError(f"{where}: class {wnid!r} of {image} is not in wnids.txt. {_AGAIN}")
        if folder + image in labels:
            raise DataError(f"{where}: {image} appears twice. {_AGAIN}")
        labels[folder + image] = classes[wnid]
    _check_present(files, annotations, labels)
    left = [path for path in files.images.get(folder, []) if path not in labels]
    if left:
        raise DataError(
            f"{files.where}: {annotations} does not name {left[0]} ({len(left)} such images). "
            f"{_AGAIN}"
        )
    return list(labels.items())


def _check_present(files: _Files, index: str, paths: Iterable[str]) -> None:
    missing = [path for path in paths if path not in files.paths]
    if missing:
        raise DataError(
            f"{files.where} has no {missing[0]}, which {index} names ({len(missing)} such images). "
            f"{_AGAIN}"
        )


def _decoded(files: _Files, paths: Sequence[str], advance: Callable[[int], object]) -> torch.Tensor:
    """Decode images to [n, 3, 64, 64] in [-1, 1], in blocks to save memory."""
    inputs = torch.empty(len(paths), 3, SIDE, SIDE)
    for first in range(0, len(paths), BLOCK):
        block = [_pixels(files, path) for path in paths[first : first + BLOCK]]
        inputs[first : first + len(block)] = scale_pixels(np.stack(block))
        advance(len(block))
    return inputs


def _pixels(files: _Files, path: str) -> NDArray[np.uint8]:
    """Decode one image to [3, 64, 64]."""
    from PIL import Image

    where, content = f"{files.where}: {path}", files.read(path)
    try:
        with Image.open(io.BytesIO(content), formats=["JPEG"]) as image:
            size = image.size
            pixels = np.asarray(image.convert("RGB")) if size == (SIDE, SIDE) else None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{where} is not a JPEG or is damaged ({error}). {_AGAIN}") from error
    if pixels is None:
        raise DataError(f"{where} is {size[0]}x{size[1]}, expected {SIDE}x{SIDE}. {_AGAIN}")
    return pixels.transpose(2, 0, 1)
