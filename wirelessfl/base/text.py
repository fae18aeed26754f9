"""Tables as text, as wide as they need to be, and characters in LaTeX."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from wirelessfl.base.terminal import escaped

LATEX = str.maketrans(
    {
        "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    }
)  # fmt: skip
"""Characters that LaTeX would not print as they are."""
WIDEST = 10_000


def narrow(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as ``rendered`` without lines, for tables of many columns."""
    return rendered(headings, rows, lines=False)


def rendered(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, lines: bool = True
) -> str:
    """A table as text; no cell is cut or wrapped, however narrow the terminal is.

    Args:
        headings: one per column.
        rows: the cells of each row.
        left: number of columns that are aligned to the left; the others are to the right unless a
            cell is not a number.
        lines: whether lines are drawn between cells.
    """
    drawn = Drawn() if lines else Drawn(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(headings):
        numbers = place >= left and all(_number(cells[place]) for cells in rows)
        drawn.add_column(_text(heading), justify="right" if numbers else "left", no_wrap=True)
    for cells in rows:
        drawn.add_row(*map(_text, cells))
    file = io.StringIO()
    Console(file=file, width=WIDEST).print(drawn)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


def _text(cell: str) -> Text:
    """A cell on one line, without characters that control the terminal."""
    return Text(escaped(cell).replace("\n", "\\n"))


def _number(text: str) -> bool:
    """Whether a cell begins with a digit, or has no value."""
    return text[:1].isdigit() or text[:1] in "-+" or text.startswith("not ")
