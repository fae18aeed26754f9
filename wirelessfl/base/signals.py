"""Signals that ask a process to end: Ctrl-C, SIGTERM of clusters, SIGHUP of a closed terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""The signals; Windows has no SIGHUP."""

Handler = Callable[[int, FrameType | None], Any]


class Terminated(SystemExit):
    """SIGTERM or SIGHUP has ended the process, with exit status 128 + the number of the signal."""


def ended_by(number: int) -> KeyboardInterrupt | Terminated:
    """The exception with which a process ends after a signal."""
    return KeyboardInterrupt() if number == signal.SIGINT else Terminated(128 + number)


def end(number: int, frame: FrameType | None) -> None:
    """Handler that ends the process at once, in which ``finally`` blocks are executed."""
    raise ended_by(number)


@contextmanager
def handled_by(handler: Handler) -> Iterator[None]:
    """Pass the signals to ``handler``, except those that the caller handles or ignores."""
    default = (signal.SIG_DFL, signal.default_int_handler, end)
    with _replaced(handler, [number for number in ENDING if signal.getsignal(number) in default]):
        yield


@contextmanager
def ignored() -> Iterator[None]:
    """Ignore the signals; processes started inside ignore them from their start."""
    with _replaced(signal.SIG_IGN, ENDING):
        yield


@contextmanager
def _replaced(handler: Handler | signal.Handlers, numbers: Sequence[int]) -> Iterator[None]:
    """Replace the handlers of signals; without effect outside the main thread."""
    before: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                if signal.getsignal(number) is not None:  # None: of a library not in Python
                    before[number] = signal.signal(number, handler)
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
