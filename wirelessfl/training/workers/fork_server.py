"""Child processes: on Linux they are forked from a server process that has done their imports.

The server can be started early, e.g. while data are loading. If no server is available, child
processes are spawned, and each of them imports PyTorch and this package again, which takes seconds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from channels.concurrency import process_state
from wirelessfl.signals import ignored

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
