"""Values in one line of text, for the representation of arrays of clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike

ROWS = 20
"""Maximum number of rows of a table in a notebook."""
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def count_of(number: int, word: str) -> str:
    """A number of things, e.g. "1 cell" or "2 cells"."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def span(values: ArrayLike, unit: str, digits: int = 3) -> str:
    """The range of some values, e.g. "3 to 41 dB"; "none" without values.

    Args:
        values: numbers of any shape; NaN is left out.
        unit: their unit.
        digits: significant digits.
    """
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    if not numbers.size:
        return "none"
    low, high = f"{numbers.min():.{digits}g}", f"{numbers.max():.{digits}g}"
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def hertz(values: ArrayLike) -> str:
    """The range of frequencies, e.g. "9 MHz"."""
    frequencies = np.asarray(values, dtype=np.float64)
    largest = float(frequencies.max(initial=0.0))
    factor, prefix = next(((f, p) for f, p in PREFIXES if largest >= f), (1.0, ""))
    return span(frequencies / factor, f"{prefix}Hz")


def text_table(heads: list[str], rows: list[list[str]]) -> str:
    """Lines of right-aligned columns, separated by two spaces.

    Args:
        heads: names of the columns, which may have several lines.
        rows: cells.
    """
    split = [head.split("\n") for head in heads]
    depth = max(map(len, split))
    tops = [[head[line - depth] if depth - line <= len(head) else "" for head in split]
            for line in range(depth)]  # fmt: skip
    lines = [*tops, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(heads))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def html_table(title: str, columns: Mapping[str, Sequence[str]], whole: int | None = None) -> str:
    """A small table for notebooks, at most ``ROWS`` rows; all text is escaped.

    Args:
        title: caption, one line.
        columns: cells by heading.
        whole: number of all rows, if ``columns`` has the first ones only.
    """
    count = max((len(cells) for cells in columns.values()), default=0)
    more = (count if whole is None else whole) - min(count, ROWS)
    head = "".join(f"<th style='text-align:right'>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:right'>{escape(c[row])}</td>" for c in columns.values())
        + "</tr>"
        for row in range(min(count, ROWS))
    )
    rest = f"<p>... and {more:,} more</p>" if more > 0 else ""
    caption = f"<caption style='text-align:left'>{escape(title)}</caption>"
    return f"<table>{caption}<tr>{head}</tr>{body}</table>{rest}"


def cells_of(values: ArrayLike, form: str, unit: float = 1.0) -> list[str]:
    """The first values of an array as cells of a table.

    Args:
        values: [...], of which the first ``ROWS`` are shown.
        form: format of a number, e.g. ".3g".
        unit: what the numbers are divided by.
    """
    first = np.asarray(values).reshape(-1)[:ROWS]
    return [format(value / unit if unit != 1 else value, form) for value in first]
