"""The one way of text to the terminal: control characters are escaped, and failures are told.

A display (stderr) that fails is given up, and the run continues. Standard output that fails ends
the command. Tables are text, as wide as they need to be.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, Literal, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as Drawn
from rich.text import Text

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that are escaped: all but tabs and line ends, and bytes of undecodable paths."""
PLAIN = {**dict.fromkeys("━─╌╍", "-"), **dict.fromkeys("┃│╎", "|"), "█": "#", "░": ".", "…": "."}
"""Replacements of characters that a terminal's encoding lacks."""
REPLACED = "wirelessfl.replaced"
Name = Literal["stdout", "stderr"]


def escaped(text: str) -> str:
    """The text with control characters as ``\\x1b``, so that a terminal obeys none of them."""
    return CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100 or 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}"


def _replaced(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    text = (PLAIN.get(letter, "+" if "─" <= letter <= "╿" else "?") for letter in letters)
    return "".join(text), error.end


codecs.register_error(REPLACED, _replaced)


class OutputError(OSError):
    """Standard output cannot be written."""


class Stream:
    """The standard output, or stderr, which is not written any more once it has failed.

    Args:
        name: name of the stream in ``sys``.
    """

    def __init__(self, name: Name) -> None:
        self.name, self.failed = name, False

    def write(self, text: str) -> int:
        """Write text.

        Raises:
            OutputError: this is the standard output, and it is full or has no reader.
        """
        self._attempt("write", text)
        return len(text)

    def flush(self) -> None:
        """Pass on what is written; errors are those of ``write``."""
        self._attempt("flush")

    def _attempt(self, method: str, *arguments: str) -> None:
        stream = self._stream
        if self.failed or getattr(stream, "closed", stream is None):  # objects of users have none
            return
        try:
            getattr(stream, method)(*arguments)
        except OSError as error:
            self.failed = True
            if self.name == "stdout":
                raise OutputError(error.errno, error.strerror) from error

    @property
    def _stream(self) -> Any:
        stream = getattr(sys, self.name)
        return getattr(stream, "rich_proxied_file", stream)  # while rich shows bars

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Terminal(Console):
    """A console that shows text as it is: without markup, emoji, and control characters.

    Args:
        stderr: whether it writes to stderr.
        options: further arguments of ``rich.console.Console``.
    """

    def __init__(self, *, stderr: bool = False, **options: Any) -> None:
        file = cast(IO[str], Stream("stderr" if stderr else "stdout"))
        super().__init__(file=file, markup=False, emoji=False, highlight=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments of anything that is shown, escaped unless they control the terminal."""
        for segment in super().render(renderable, options):
            hostile = not segment.control and CONTROL.search(segment.text)
            yield Segment(escaped(segment.text), segment.style) if hostile else segment

    def tell(self, text: str) -> None:
        """Print a line, which is not wrapped."""
        self.print(text, soft_wrap=True)


def say(text: object = "", *, error: bool = False, end: str = "\n", flush: bool = False) -> None:
    """Print text on the standard output, or with ``error`` on stderr.

    Raises:
        OutputError: the standard output is full or has no reader.
    """
    stream = Stream("stderr" if error else "stdout")
    stream.write(escaped(str(text)) + end)
    if flush or error:
        stream.flush()


@contextmanager
def standard_streams() -> Iterator[None]:
    """Make stdout and stderr take any text, and end without an error of the interpreter.

    Characters that their encodings lack are replaced, and a closed one discards what is written.
    """
    if sys.stdout is None or sys.stderr is None:
        while (nowhere := os.open(os.devnull, os.O_RDWR)) < 3:
            pass  # files that are opened later do not get the numbers of standard streams
        os.close(nowhere)
    before = []
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            before.append((stream, stream.errors))
            stream.reconfigure(errors=REPLACED)
    try:
        yield
    finally:
        for stream, errors in before:
            try:
                stream.flush()
            except OSError:  # Python flushes once more at its end
                with suppress(OSError), open(os.devnull, "w", encoding="utf-8") as file:
                    os.dup2(file.fileno(), stream.fileno())
            with suppress(OSError, ValueError):
                stream.reconfigure(errors=errors)


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
