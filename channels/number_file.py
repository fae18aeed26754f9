"""Numbers of cells or clients from a file of text."""

from __future__ import annotations

import csv
import os
from os import PathLike
from pathlib import Path

import numpy as np

from channels.arrays import FloatArray


def read_numbers(path: str | PathLike[str]) -> FloatArray:
    """The numbers of a CSV file [lines, columns]; a first line without numbers is a header.

    Raises:
        ValueError: the file cannot be read, or a line has something else; the message names it.
    """
    try:
        with Path(os.path.expanduser(path)).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, skipinitialspace=True)
            lines = [(reader.line_num, line) for line in reader if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        raise ValueError(f"{path}: cannot be read as CSV: {text}.") from error
    if lines and not any(_number(entry) is not None for entry in lines[0][1]):
        del lines[0]
    rows: list[list[float]] = []
    for number, line in lines:
        values = [_number(entry) for entry in line]
        if None in values:
            entry = line[values.index(None)]
            raise ValueError(f"{path}, line {number}: {entry!r} is not a number. Give numbers.")
        if rows and len(line) != len(rows[0]):
            raise ValueError(
                f"{path}, line {number}: {len(line)} numbers, and {len(rows[0])} before. Give each "
                "line as many."
            )
        rows.append([value for value in values if value is not None])
    if not rows:
        raise ValueError(f"{path}: has no numbers. Give a line of them at least.")
    return np.array(rows)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
