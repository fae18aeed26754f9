"""Notes: Python warnings about what is allowed, but probably not meant."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable
from types import FrameType

PACKAGES = ("channels", "solvers", "wirelessfl")


class Note(UserWarning):
    """Something about a call that is allowed, but probably not meant, such as a value in MHz.

    Nothing is refused or changed by it. ``warnings.simplefilter("error", wirelessfl.Note)`` makes
    an error of it.

    >>> import warnings, channels
    >>> network = channels.Network([0, 0], cpu_hz=1e9, gain_db=-100.0, bandwidth_hz=10)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", channels.Note)
    ...     budget = channels.link_budget(network)
    >>> print(caught[0].message)
    bandwidth_hz is 10 Hz: for 10 MHz, give 1e+07.
    """


class Notes:
    """Passes on the notes of a call, each kind once: as warnings, or to a function.

    Notes that differ in numbers only are of one kind.

    Args:
        on_note: receives the notes; None for warnings at the line that called the package.
    """

    def __init__(self, on_note: Callable[[str], None] | None = None) -> None:
        self.on_note = on_note
        self._kinds: set[str] = set()

    def __call__(self, *notes: str) -> None:
        """Pass on the notes of a new kind."""
        for note in notes:
            kind = _kind(note)
            if kind in self._kinds:
                continue
            self._kinds.add(kind)
            if self.on_note is None:
                warnings.warn(note, Note, stacklevel=_callers_level())
            else:
                self.on_note(note)


def of_each_kind(notes: Iterable[str]) -> list[str]:
    """The first note of each kind."""
    first: dict[str, str] = {}
    for note in notes:
        first.setdefault(_kind(note), note)
    return list(first.values())


def _kind(note: str) -> str:
    """The note without its numbers."""
    return re.sub(r"\d[\d.e+-]*", "#", note)


def _callers_level() -> int:
    """The ``stacklevel``, for the function that calls this one, of the first line outside."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and not is_outside(frame):
        level, frame = level + 1, frame.f_back
    return level


def is_outside(frame: FrameType) -> bool:
    """Whether a line of code is not one of these packages."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] not in PACKAGES
