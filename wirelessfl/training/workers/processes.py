"""Available CPU cores, ranks under ``torchrun``, and children of this process."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from wirelessfl.base.errors import ConfigError


def cores() -> int:
    """Number of CPU cores that this process can use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def launched(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Rank of this process and number of processes started by ``torchrun``; (0, 1) without it.

    Raises:
        ConfigError: its environment variables are not whole numbers, or do not fit together.
    """
    rank, count = environment.get("RANK"), environment.get("WORLD_SIZE")
    if not (rank and count):
        return 0, 1
    if not (rank.isdecimal() and count.isdecimal() and int(rank) < int(count)):
        raise ConfigError(
            f"RANK is {rank!r} and WORLD_SIZE {count!r}: torchrun sets them to whole numbers "
            "0 <= RANK < WORLD_SIZE. Unset both, or start with torchrun."
        )
    return int(rank), int(count)


def from_standard_input() -> bool:
    """Whether the main program was read from standard input, so that children cannot import it."""
    file = getattr(__import__("__main__"), "__file__", None)
    return file is not None and not Path(file).is_file()


def end_with_parent() -> None:
    """Exit this process immediately when its parent process ends."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
