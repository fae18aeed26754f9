"""Number of CPU threads that torch uses for the operations of the calling thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

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
    with _lock:
        start = _in_new_thread(torch.get_num_threads)
        torch.set_num_threads(count)
        _in_new_thread(lambda: torch.set_num_threads(start))


def _in_new_thread(function: Callable[[], Any]) -> Any:
    """Call a function in a new thread; executors refuse this once the main thread has ended."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]
