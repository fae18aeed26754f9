"""What several threads of one process need: locks, shared contexts, and caches."""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")

process_state = threading.RLock()
"""Held while a thread changes what all threads see: the state of global random generators, methods
of torch's classes while a model is traced, the environment of processes that it starts.

A thread that holds it may call code of users. Code that needs it must therefore not run in another
lock, such as that of ``functools.cached_property``.
"""
parsing = threading.Lock()
"""Held while Python parses a source to a tree: in Python 3.11 this fails if threads overlap."""
_filters = threading.RLock()
"""Held while the filters of warnings are replaced; Python restores them in the wrong order if
threads overlap."""


def _release() -> None:
    """Release the locks in a forked process: the threads that hold them do not exist there."""
    for lock in (process_state, parsing, _filters):
        lock._at_fork_reinit()  # type: ignore[union-attr]


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_release)


@contextmanager
def ignored_warnings(message: str = "", category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore some warnings inside; other threads that do this wait.

    Args:
        message: regular expression for the beginning of their text.
        category: their class.
    """
    with _filters, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message, category)
        yield


class SharedContext:
    """A context that several threads share: the first one enters it, and the last one leaves it.

    Args:
        make: returns the context manager.

    Attributes:
        inside: number of times that threads have entered and not left.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[object]]) -> None:
        self._make, self._lock = make, threading.Lock()
        self.inside = 0
        self._entered = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self.inside:
                self._entered.enter_context(self._make())
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.inside -= 1
            if not self.inside:
                self._entered.close()


def once(function: Callable[..., T]) -> Callable[..., T]:
    """Like ``functools.cache``, but threads that call it at the same time get the same object."""
    results: dict[Any, T] = {}

    @functools.wraps(function)
    def get(*arguments: Any) -> T:
        if arguments not in results:
            results.setdefault(arguments, function(*arguments))
        return results[arguments]

    return get


class cached_property(functools.cached_property[T]):
    """``functools.cached_property`` without its lock, which Python 3.12 removed.

    All objects of a class share that lock. Code in it would wait forever for ``process_state`` if
    the thread that holds this evaluates the property of another object.
    """

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)
        self.lock = nullcontext()
