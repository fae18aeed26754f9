"""Optional solver packages: import on first use, and suppression of redundant output."""

from __future__ import annotations

import ctypes
import importlib
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from solvers.solution import SolverUnavailableError


def import_solver(module: str, instead: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: name of the module.
        instead: backend without optional packages, for the error message.

    Raises:
        SolverUnavailableError: the module cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise SolverUnavailableError(
            f"{package} cannot be imported ({error}): pip install {package}, or use backend "
            f"'{instead}'"
        ) from error


@contextmanager
def quiet_cvxpy() -> Iterator[None]:
    """Suppress cvxpy's warning about inaccurate solutions; the bounds are checked separately."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        yield


class _Silence:
    """Discards what is written to file descriptor 1 while a thread is inside.

    HiGHS writes a banner and debugging lines there, whatever its options.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._stdout = threading.Lock(), 0, -1

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside > 1:
                return
            _flush()
            with suppress(OSError):  # closed
                self._stdout = os.dup(1)
                sink = os.open(os.devnull, os.O_WRONLY)
                os.dup2(sink, 1)
                os.close(sink)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside or self._stdout < 0:
                return
            _flush()
            os.dup2(self._stdout, 1)
            os.close(self._stdout)
            self._stdout = -1


def _flush() -> None:
    """Write out the buffer of C's standard output."""
    with suppress(OSError, TypeError, AttributeError):  # no C library by this name, as on Windows
        ctypes.CDLL(None).fflush(None)


quiet_highs = _Silence()
"""Context in which HiGHS prints nothing; several threads may be inside."""
