"""Processes: how many could run here, who started this one, and how it ends."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Mapping


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def launched(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Number of this process, and of all, as ``torchrun`` started them; (0, 1) without it."""
    rank, count = environment.get("RANK"), environment.get("WORLD_SIZE")
    return (int(rank), int(count)) if rank and count else (0, 1)


def end_with_parent() -> None:
    """From now on leave as soon as the parent is gone, in the middle of whatever is done."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
