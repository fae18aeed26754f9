"""The file ``rows.jsonl``: one row per line, and a checksum of all lines."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wirelessfl.errors import ConfigError


class RowsFile:
    """Rows are appended; a checkpoint stores how many bytes it covers, and their checksum.

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
        return self.path.stat().st_size if self.path.exists() else 0

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
        with self.path.open("rb") as file:
            return zlib.crc32(file.read(size))

    def append(self, row: Mapping[str, Any]) -> None:
        """Append one row; if the process is killed here, the last line is incomplete.

        Raises:
            OSError: the file cannot be written.
        """
        size, checksum = self.covered
        line = (json.dumps(row) + "\n").encode()
        with self.path.open("ab") as file:
            file.write(line)
        self._covered = size + len(line), zlib.crc32(line, checksum)

    def to_disk(self) -> None:
        """Wait until all rows are on disk."""
        if self.path.exists():
            with self.path.open("rb") as file:
                os.fsync(file.fileno())

    def read(self, size: int | None = None) -> list[dict[str, Any]]:
        """The rows in the first ``size`` bytes, by default all, without an incomplete last line.

        Raises:
            ConfigError: the file or a line is damaged.
        """
        if not self.path.exists():
            return []
        try:
            lines = self.path.read_bytes()[:size].decode().split("\n")[:-1]
        except (OSError, UnicodeError) as error:
            raise ConfigError(f"{self.path} is damaged: {error}. {self.remedy}") from error
        rows = []
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                if not isinstance(row, dict) or "accuracy" not in row:
                    raise ValueError("it is not a row of a run")
            except (ValueError, RecursionError) as error:
                raise ConfigError(
                    f"{self.path}, line {number} is damaged: {error}. {self.remedy}"
                ) from error
            rows.append(row)
        return rows

    def check(self, size: int, checksum: int, *, whole: bool = False) -> list[dict[str, Any]]:
        """Check and read the rows that a checkpoint covers.

        Args:
            size: number of bytes that it covers.
            checksum: their checksum.
            whole: whether no rows may follow, as in a finished run.

        Raises:
            ConfigError: rows are missing, damaged or changed.
        """
        there = self.length
        if there < size:
            raise ConfigError(
                f"{self.path} has {there} bytes, but the checkpoint needs {size}: rows are lost. "
                f"{self.remedy}"
            )
        rows = self.read(size)
        if self._checksum(size) != checksum:
            raise ConfigError(
                f"{self.path} has been changed since the checkpoint was written. {self.remedy}"
            )
        if whole and there > size:
            raise ConfigError(
                f"{self.path} has {there} bytes, but the run ended with {size}. {self.remedy}"
            )
        return rows

    def extent(self, count: int) -> tuple[int, int]:
        """Number of bytes of the first ``count`` rows, and their checksum."""
        if count == 0:
            return 0, 0
        lines = self.path.read_bytes().split(b"\n")[:count]
        size = sum(len(line) + 1 for line in lines)
        return size, self._checksum(size)

    def cut(self, size: int) -> None:
        """Remove what follows the first ``size`` bytes."""
        if self.length > size:
            os.truncate(self.path, size)
        self._covered = None
