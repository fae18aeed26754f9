"""A file of a run that only grows, and of which a checkpoint covers the beginning."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

from wirelessfl.drafts import open_stored, stored_size, why
from wirelessfl.errors import ConfigError


class AppendedFile:
    """Bytes are appended; a checkpoint stores how many it covers, and their checksum.

    Args:
        path: the file; missing means empty.
        remedy: what to do about damage, the last sentence of error messages.
    """

    def __init__(self, path: Path, remedy: str) -> None:
        self.path, self.remedy = path, remedy
        self._covered: tuple[int, int] | None = None

    @property
    def length(self) -> int:
        """Number of bytes on disk."""
        return stored_size(self.path) or 0

    def checked_length(self) -> int:
        """Number of bytes on disk.

        Raises:
            ConfigError: the path is not that of a regular file.
        """
        try:
            return self.length
        except OSError as error:
            raise ConfigError(f"{self.path} is damaged: {why(error)}. {self.remedy}") from error

    @property
    def covered(self) -> tuple[int, int]:
        """Number of bytes of all rows, and their checksum."""
        if self._covered is None:
            self._covered = self.length, self._checksum(self.length)
        return self._covered

    def _checksum(self, size: int) -> int:
        """Checksum of the first ``size`` bytes; 0 of none."""
        if size == 0:
            return 0
        with open_stored(self.path) as file:
            return zlib.crc32(file.read(size))

    def add_bytes(self, more: bytes) -> None:
        """Append some bytes.

        Raises:
            OSError: the file cannot be written.
        """
        size, checksum = self.covered
        with open_stored(self.path, "ab") as file:
            file.write(more)
        self._covered = size + len(more), zlib.crc32(more, checksum)

    def to_disk(self) -> None:
        """Wait until all bytes are on disk."""
        if stored_size(self.path) is not None:
            with open_stored(self.path) as file:
                os.fsync(file.fileno())

    def check_covered(
        self,
        size: int,
        checksum: int,
        read: Callable[[], None] | None = None,
        *,
        whole: bool = False,
    ) -> None:
        """Check the bytes that a checkpoint covers.

        Args:
            size: number of bytes that it covers.
            checksum: their checksum.
            read: reads them; its errors, which name a line, come before that of the checksum.
            whole: whether no bytes may follow, as in a finished run.

        Raises:
            ConfigError: bytes are missing or changed, or follow.
        """
        there = self.checked_length()
        if there < size:
            raise ConfigError(
                f"{self.path} has {there} bytes, but the checkpoint needs {size}: rows are lost. "
                f"{self.remedy}"
            )
        if read is not None:
            read()
        if self._checksum(size) != checksum:
            raise ConfigError(
                f"{self.path} has been changed since the checkpoint was written. {self.remedy}"
            )
        if whole and there > size:
            raise ConfigError(
                f"{self.path} has {there} bytes, but the run ended with {size}. {self.remedy}"
            )

    def cut(self, size: int) -> None:
        """Remove what follows the first ``size`` bytes."""
        if self.checked_length() > size:
            with open_stored(self.path, "r+b") as file:
                file.truncate(size)
        self._covered = None
