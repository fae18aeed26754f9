"""Freed memory that stays with the process, because new large blocks cost page faults."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

from channels.concurrency import SharedContext

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt in glibc."""
DYNAMIC = {TRIM_THRESHOLD: 1 << 26, MMAP_THRESHOLD: 1 << 25}
"""The largest thresholds that glibc sets by itself, once a process has freed large blocks."""
KEEPING = {TRIM_THRESHOLD: (1 << 31) - 1, MMAP_THRESHOLD: 1 << 30}


def keep_freed_memory() -> None:
    """Make malloc keep freed blocks of up to 1 GiB for later use; no effect without glibc.

    By default glibc returns blocks above its thresholds, which grow to at most 32 MiB, and a free
    end of its heap. The kernel then clears each page when it is used again: with activations of a
    few megabytes that takes up to half of the time of a local step.
    """
    _set(KEEPING)


@contextmanager
def _kept() -> Iterator[None]:
    keep_freed_memory()
    try:
        yield
    finally:
        _set(DYNAMIC)
        if (trim := _function("malloc_trim")) is not None:
            trim(0)


freed_memory_kept = SharedContext(_kept)
"""Context in which the process keeps freed memory, which it returns to the system at the end."""


def _set(thresholds: dict[int, int]) -> None:
    if (mallopt := _function("mallopt")) is not None:
        for parameter, value in thresholds.items():
            mallopt(parameter, value)


def _function(name: str) -> ctypes._NamedFuncPointer | None:
    """A function of the C library; None if it has none of this name."""
    return getattr(ctypes.CDLL(None), name, None) if os.name == "posix" else None
