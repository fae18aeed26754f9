"""Files that only grow, such as ``rows.jsonl``: a checkpoint covers their first bytes."""

from __future__ import annotations

import json
import math
import os
import zlib
from pathlib import Path
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import open_stored, reading, stored_size, why
from wirelessfl.base.wording import shown

TOTALS = ("round", "sim_seconds", "uplink_mib", "joules", "wall_seconds")
"""Fields of every row that are finite numbers."""
MEASURED = ("loss", "accuracy", "validation_loss", "validation_accuracy")
"""Fields that are finite numbers or None; every row has the first."""
Row = dict[str, Any]


class Log:
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

    @property
    def covered(self) -> tuple[int, int]:
        """Number of bytes that have been appended, and their checksum."""
        if self._covered is None:
            self._covered = self.length, self.checksum(self.length)
        return self._covered

    def checksum(self, size: int) -> int:
        """Checksum of the first ``size`` bytes; 0 of none."""
        return zlib.crc32(self.read(size)) if size else 0

    def read(self, size: int = -1) -> bytes:
        """The first ``size`` bytes, by default all."""
        with open_stored(self.path) as file:
            return file.read(size)

    def append(self, more: bytes) -> None:
        """Append some bytes; if the process is killed here, only some of them are written.

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

    def checked_length(self) -> int:
        """``length``; raises ``ConfigError`` if the path is not that of a regular file."""
        try:
            return self.length
        except OSError as error:
            raise ConfigError(f"{self.path} is damaged: {why(error)}. {self.remedy}") from error

    def check(self, size: int, checksum: int, *, whole: bool = False) -> None:
        """Check the bytes that a checkpoint covers.

        Args:
            size: number of bytes that it covers.
            checksum: their checksum.
            whole: whether no bytes may follow, as in a finished run.
        """
        length = self.checked_length()
        if length < size:
            raise ConfigError(
                f"{self.path} has {length} bytes, but the checkpoint needs {size}: rows are lost. "
                f"{self.remedy}"
            )
        if self.checksum(size) != checksum:
            raise ConfigError(
                f"{self.path} has been changed since the checkpoint was written. {self.remedy}"
            )
        if whole and length > size:
            raise ConfigError(
                f"{self.path} has {length} bytes, but the run ended with {size}. {self.remedy}"
            )

    def cut(self, size: int) -> None:
        """Remove what follows the first ``size`` bytes."""
        if self.checked_length() > size:
            with open_stored(self.path, "r+b") as file:
                file.truncate(size)
        self._covered = None


def read_rows(log: Log, size: int = -1) -> list[Row]:
    """The rows in the first ``size`` bytes, by default all, without an incomplete last line."""
    if not log.checked_length():
        return []
    with reading(log.path, log.remedy):
        lines = log.read(size).decode().split("\n")[:-1]
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(_checked(json.loads(line)))
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{log.path}, line {number} is damaged: {why(error)}. {log.remedy}"
            ) from error
    return rows


def extent(log: Log, count: int) -> tuple[int, int]:
    """Number of bytes of the first ``count`` rows, and their checksum."""
    size = sum(len(line) + 1 for line in log.read().split(b"\n")[:count]) if count else 0
    return size, log.checksum(size)


def _checked(row: Any) -> Row:
    if not isinstance(row, dict) or "loss" not in row:
        raise ValueError("it is not a row of a run")
    for name in TOTALS:
        if name not in row:
            raise ValueError(f"it has no {name}")
        if not _is_finite(row[name]):
            raise ValueError(f"{name} is {shown(row[name])}, which is not a finite number")
    for name in ("round", "numerics"):
        if type(row.get(name, 0)) is not int:
            raise ValueError(f"{name} is {shown(row[name])}, which is not an integer")
    for name, value in row.items():
        if name in MEASURED and not (value is None or _is_finite(value)):
            raise ValueError(f"{name} is {shown(value)}, which is not a finite number")
        if not (isinstance(value, str) if name == "task" else _is_numeric(value)):
            raise ValueError(f"{name} is {shown(value)}, which is not a field of a row")
    return row


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and _is_numeric(value) and math.isfinite(value)


def _is_numeric(value: Any) -> bool:
    """Whether a value is a number that a float can be, None, or several of them."""
    if isinstance(value, list):
        return all(map(_is_numeric, value))
    if isinstance(value, dict):
        return all(map(_is_numeric, value.values()))
    return (
        value is None
        or isinstance(value, float)
        or (isinstance(value, int) and abs(value) < 1 << 63)
    )
