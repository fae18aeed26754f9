"""Files that only grow, such as ``rows.jsonl``: a checkpoint covers their first bytes."""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import open_stored, reading, stored_size, why
from wirelessfl.base.wording import shown

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
        """Number of bytes on disk; raises ``ConfigError`` if it is not a regular file."""
        try:
            return stored_size(self.path) or 0
        except OSError as error:
            raise ConfigError(f"{self.path} is damaged: {why(error)}. {self.remedy}") from error

    @property
    def covered(self) -> tuple[int, int]:
        """Number of bytes that have been appended, and their checksum."""
        if self._covered is None:
            self._covered = self.length, zlib.crc32(self.read())
        return self._covered

    def read(self, size: int = -1) -> bytes:
        """The first ``size`` bytes, by default all."""
        if not self.length:
            return b""
        with reading(self.path, self.remedy), open_stored(self.path) as file:
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
        if self.length:
            with open_stored(self.path) as file:
                os.fsync(file.fileno())

    def check(self, size: int, checksum: int, *, whole: bool = False) -> None:
        """Check the bytes that a checkpoint covers; if they are the whole file, none may follow."""
        length = self.length
        if length < size:
            problem = f"has {length} bytes, but the checkpoint needs {size}: rows are lost"
        elif zlib.crc32(self.read(size)) != checksum:
            problem = "has been changed since the checkpoint was written"
        elif whole and length > size:
            problem = f"has {length} bytes, but the run ended with {size}"
        else:
            return
        raise ConfigError(f"{self.path} {problem}. {self.remedy}")

    def cut(self, size: int) -> None:
        """Remove what follows the first ``size`` bytes."""
        if self.length > size:
            with open_stored(self.path, "r+b") as file:
                file.truncate(size)
        self._covered = None

    def rows(self, size: int = -1) -> list[Row]:
        """The rows in the first ``size`` bytes, by default all, without an incomplete last line."""
        rows = []
        for number, line in enumerate(self.read(size).split(b"\n")[:-1], start=1):
            try:
                rows.append(_checked(json.loads(line.decode())))
            except (ValueError, RecursionError) as error:
                raise ConfigError(
                    f"{self.path}, line {number} is damaged: {why(error)}. {self.remedy}"
                ) from error
        return rows


def _checked(row: Any) -> Row:
    if not isinstance(row, dict) or any(name not in row for name in NEEDED):
        raise ValueError("it is not a row of a run")
    for name, value in row.items():
        if not FIELDS.get(name, _is_numeric)(value):
            raise ValueError(f"{name} is {shown(value)}, which is not a value of a row")
    return row


def _is_numeric(value: Any) -> bool:
    """Whether a value is a number that a float can be, None, or several of them."""
    if isinstance(value, list | dict):
        return all(map(_is_numeric, value.values() if isinstance(value, dict) else value))
    return (
        value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGE)
    )


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and _is_numeric(value) and math.isfinite(value)


NEEDED = ("round", "sim_seconds", "uplink_mib", "joules", "wall_seconds", "loss")
TOTALS = ("downlink_mib", "backhaul_mib", "lost", "silent")
COUNTS = ("round", "session", "session_round", "numerics")
MEASURED = ("loss", "accuracy", "validation_loss", "validation_accuracy")
LARGE = 1 << 63
FIELDS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys((*NEEDED, *TOTALS), _is_finite),
    **dict.fromkeys(COUNTS, lambda value: type(value) is int and _is_numeric(value)),
    **dict.fromkeys(MEASURED, lambda value: value is None or _is_finite(value)),
    "task": lambda value: isinstance(value, str),
}
"""Fields that are more than numeric."""
