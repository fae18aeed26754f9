"""The file ``rows.jsonl``: one row per line, and a checksum of all lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from wirelessfl.errors import ConfigError
from wirelessfl.runs.appended_file import AppendedFile


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
                if not isinstance(row, dict) or "loss" not in row:
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
        rows: list[dict[str, Any]] = []
        self.check_covered(size, checksum, lambda: rows.extend(self.read(size)))
        there = self.length
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
