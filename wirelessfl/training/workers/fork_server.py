"""Child processes: on Linux they are forked from a server process that has done their imports.

The server can be started early, e.g. while data are loading. If no server is available, child
processes are spawned, and each of them imports PyTorch and this package again, which takes seconds.

Freed memory that stays with the process, because new large blocks cost page faults.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from channels.concurrency import SharedContext, process_state
from wirelessfl.base.signals import ignored

PRELOADED = tuple(
    f"wirelessfl.training.{name}" for name in ("workers.worker_process", "stacked", "vmapped")
)
"""Modules that workers of a run import."""
CHILD = "wirelessfl child"
"""Name of child processes."""
UNGUARDED_CODE = 77
"""Exit code of a child process whose script starts children when it is imported."""


def unguarded(instead: str) -> str:
    """The message for a script that starts children when it is imported.

    Args:
        instead: the setting that needs no child processes.
    """
    return (
        "child processes could not start, because each of them imports your script again: put the "
        f'code that starts them below `if __name__ == "__main__":`, or choose {instead}.'
    )


def leave_if_child() -> None:
    """Exit if this process is a child that is importing the script that starts children."""
    process = torch.multiprocessing.current_process()
    if process.name == CHILD and getattr(process, "_inheriting", False):
        os._exit(UNGUARDED_CODE)


class ForkServer:
    """The process that children are forked from; each process with children has one."""

    def __init__(self) -> None:
        self.owner = 0  # a forked process cannot use its parent's fork server

    def start(self, *modules: str) -> bool:
        """Start the fork server if it is not running; returns False if it is not available.

        Args:
            modules: modules that a new server imports besides ``PRELOADED``.
        """
        if not sys.platform.startswith("linux") or self.owner not in (0, os.getpid()):
            return False
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload([*PRELOADED, *modules])
        try:
            with ignored(), safe_path():  # it ends with this process
                forkserver.ensure_running()
        except OSError:  # its socket cannot be created, e.g. because the path is too long
            return False
        self.owner = os.getpid()
        return True

    def context(self, *modules: str) -> Any:
        """The ``multiprocessing`` context that starts children: forked if possible, else spawned.

        Args:
            modules: see ``start``.
        """
        return torch.multiprocessing.get_context("forkserver" if self.start(*modules) else "spawn")


fork_server = ForkServer()


@contextmanager
def safe_path() -> Iterator[None]:
    """Keep interpreters started inside from searching the current folder, unless this one does.

    Python itself would search it first, e.g. for the modules of the standard library. Other threads
    wait before they start processes.
    """
    with process_state:
        before = os.environ.get("PYTHONSAFEPATH")
        if sys.path[:1] not in ([""], [os.getcwd()]):
            os.environ["PYTHONSAFEPATH"] = "1"
        try:
            yield
        finally:
            if before is None:
                os.environ.pop("PYTHONSAFEPATH", None)
            else:
                os.environ["PYTHONSAFEPATH"] = before


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
