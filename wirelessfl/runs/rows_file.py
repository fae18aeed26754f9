"""The file ``rows.jsonl``: one row per line, and a checksum of all lines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from wirelessfl.drafts import open_stored, read_stored, reading, why
from wirelessfl.errors import ConfigError
from wirelessfl.runs.appended_file import AppendedFile
from wirelessfl.wording import shown

TOTALS = ("round", "sim_seconds", "uplink_mib", "joules", "wall_seconds")
"""Fields of every row that are finite numbers."""
MEASURED = ("loss", "accuracy", "validation_loss", "validation_accuracy")
"""Fields that are finite numbers or None; every row has the first."""


class RowsFile(AppendedFile):
    """Rows are appended; a checkpoint stores how many bytes it covers, and their checksum.

    Args:
        path: the file; missing means empty.
        remedy: what to do about damage, the last sentence of error messages.
    """

    def append(self, row: Mapping[str, Any]) -> None:
        """Append one row; if the process is killed here, the last line is incomplete.

        Raises:
            OSError: the file cannot be written.
        """
        self.add_bytes((json.dumps(row) + "\n").encode())

    def read(self, size: int | None = None) -> list[dict[str, Any]]:
        """The rows in the first ``size`` bytes, by default all, without an incomplete last line.

        Raises:
            ConfigError: the file or a line is damaged.
        """
        if not self.checked_length():
            return []
        with reading(self.path, self.remedy), open_stored(self.path) as file:
            lines = file.read(-1 if size is None else size).decode().split("\n")[:-1]
        rows = []
        for number, line in enumerate(lines, start=1):
            try:
                rows.append(_checked(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise ConfigError(
                    f"{self.path}, line {number} is damaged: {why(error)}. {self.remedy}"
                ) from error
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
        rows: list[dict[str, Any]] = []
        self.check_covered(size, checksum, lambda: rows.extend(self.read(size)), whole=whole)
        return rows

    def extent(self, count: int) -> tuple[int, int]:
        """Number of bytes of the first ``count`` rows, and their checksum."""
        if count == 0:
            return 0, 0
        lines = read_stored(self.path).split(b"\n")[:count]
        size = sum(len(line) + 1 for line in lines)
        return size, self._checksum(size)


def _checked(row: Any) -> dict[str, Any]:
    """The row, if it can be one of a run.

    Raises:
        ValueError: a field is missing, or is not a number or numbers where rows have them.
    """
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
