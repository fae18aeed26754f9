"""Folders of images: ``train/CLASS/*.png`` and ``test/CLASS/*.png``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wirelessfl.data.own.samples import stacked
from wirelessfl.errors import DataError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
TEST = ("test", "val", "validation", "valid")
"""Names of the folder of test images, in order of preference."""

Part = tuple[np.ndarray, np.ndarray]
"""Images [n, height, width] or [n, height, width, 3] as bytes, and labels [n]."""


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

    Raises:
        DataError: a part or its images are missing, an image is damaged, images differ in size, or
            the test part has a class that the training part lacks.
    """
    test = next((path / name for name in TEST if (path / name).is_dir()), None)
    if test is None:
        raise DataError(f"{path} has train, but no folder test: add one with its test images.")
    classes = _classes(path / "train")
    unknown = sorted(set(_classes(test)) - set(classes))
    if unknown:
        raise DataError(
            f"{test} has the class {unknown[0]!r}, which {path / 'train'} lacks: give both parts "
            "the same classes."
        )
    files = [_files(part, classes) for part in (path / "train", test)]
    grey = all(_mode(file) in ("L", "1") for part in files for file, _ in part)
    train, tested = (_read(part, "L" if grey else "RGB") for part in files)
    return train, tested, classes


def _classes(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def _files(folder: Path, classes: list[str]) -> list[tuple[Path, int]]:
    """Images of a part with their labels, sorted by class and name."""
    found = [
        (file, label)
        for label, name in enumerate(classes)
        for file in sorted((folder / name).rglob("*"))
        if file.suffix.lower() in SUFFIXES
    ]
    if not found:
        raise DataError(
            f"{folder} has no images: put them into one folder per class, e.g. "
            f"{folder / 'cat' / '1.png'}."
        )
    return found


def _mode(file: Path) -> str:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as image:
            return image.mode
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise DataError(f"{file} cannot be read as an image: {error}.") from error


def _read(files: list[tuple[Path, int]], mode: str) -> Part:
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
