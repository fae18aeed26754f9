"""Decodes PNG and JPEG images, and shows a progress bar meanwhile."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError

if TYPE_CHECKING:
    from PIL import Image
    from rich.console import Console

BLOCK = 500
"""Number of images that are decoded and scaled at once, to save memory."""
FORMATS = {"PNG": b"\x89PNG\r\n\x1a\n", "JPEG": b"\xff\xd8\xff"}
"""First bytes of a file of each format."""


@dataclass
class Decoder:
    """Decodes images of one size, and notes their formats.

    Args:
        side: height and width of the images, which are converted to RGB; None if all images must
            have the mode (RGB or 8-bit grey) and size of the first one.
        advice: remedy for a wrong image, for messages.
        formats: formats of the images decoded so far, keys of ``FORMATS``.
    """

    side: int | None
    advice: str
    formats: set[str] = field(default_factory=set)
    _first: tuple[str, tuple[int, int]] | None = None

    def pixels(self, content: bytes, where: str) -> NDArray[np.uint8]:
        """Decode one image to [channels, height, width].

        Args:
            content: the bytes of the file.
            where: place of the image, for messages.

        Raises:
            DataError: the image is damaged, is neither PNG nor JPEG, has a wrong mode or size, or
                would lose bits or transparency.
        """
        from PIL import Image

        found = [name for name, start in FORMATS.items() if content.startswith(start)]
        if not found:
            raise DataError(f"{where}: the image is neither PNG nor JPEG. {self.advice}")
        self.formats.add(found[0])
        try:
            with Image.open(io.BytesIO(content), formats=found) as image:
                self._check(image.mode, image.size, where)
                lost = _lost(image, content)
                if lost:
                    raise DataError(f"{where}: the image has {lost}. {self.advice}")
                grey = self.side is not None and image.mode == "L"
                decoded = np.asarray(image.convert("RGB") if grey else image)
        except DataError:
            raise
        except (
            *(OSError, SyntaxError, ValueError, EOFError, struct.error),  # of damaged files
            Image.DecompressionBombError,
        ) as error:
            raise DataError(
                f"{where}: damaged {found[0]} image ({error}). {self.advice}"
            ) from error
        return decoded[None] if decoded.ndim == 2 else decoded.transpose(2, 0, 1)

    def _check(self, mode: str, size: tuple[int, int], where: str) -> None:
        """Check an image before its pixels are decoded."""
        if mode not in ("RGB", "L"):  # others lose bits, colours or transparency in conversion
            raise DataError(
                f"{where}: the image has mode {mode}, expected RGB or L (8-bit grey). {self.advice}"
            )
        shown = f"{size[0]}x{size[1]}"
        if self.side is not None:
            if size != (self.side, self.side):
                raise DataError(
                    f"{where}: the image is {shown}, expected {self.side}x{self.side}. "
                    f"{self.advice}"
                )
            return
        self._first = self._first or (mode, size)
        if (mode, size) != self._first:
            (first_mode, first_size) = self._first
            raise DataError(
                f"{where}: the image is {shown} {mode}, but the first training image "
                f"{first_size[0]}x{first_size[1]} {first_mode}; all need the same size and mode. "
                f"{self.advice}"
            )


def _lost(image: Image.Image, content: bytes) -> str:
    """What decoding an RGB or grey image to 8-bit pixels would lose; empty for nothing."""
    if image.format == "PNG" and content[24] > 8:  # Pillow keeps the upper 8 bits
        return f"{content[24]} bits per channel, expected at most 8"
    if "transparency" in image.info:
        return "a transparent colour (chunk tRNS), expected none"
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

    from wirelessfl.terminal import Terminal

    console = console or Terminal(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{name}: decoding", total=images)
        yield lambda count: progress.advance(task, count)
