"""Number of CPU threads that torch uses for the operations of the calling thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

_lock = threading.Lock()


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use ``count`` CPU threads for operations of the calling thread inside.

    The number affects rounding. Other threads keep theirs.
    """
    before = torch.get_num_threads()
    _set(count)
    try:
        yield
    finally:
        _set(before)


def _set(count: int) -> None:
    """Set the number of the calling thread.

    ``torch.set_num_threads`` also sets the number with which new threads start. A new thread can
    read that number and set it again.
    """
    if count == torch.get_num_threads():
        return
    with _lock, ThreadPoolExecutor(1) as other:
        start = other.submit(torch.get_num_threads).result()
        torch.set_num_threads(count)
        other.submit(torch.set_num_threads, start).result()
