"""Optional solver packages: import on first use, and suppression of redundant output."""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from channels.concurrency import SharedContext, ignored_warnings
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


def quiet_cvxpy() -> AbstractContextManager[None]:
    """Suppress cvxpy's warning about inaccurate solutions; the bounds are checked separately."""
    return ignored_warnings("Solution may be inaccurate", UserWarning)


@contextmanager
def _silence() -> Iterator[None]:
    """Discard what C's standard output gets inside.

    HiGHS writes a banner and lines for its developers there, whatever its options. Python and child
    processes write to file descriptor 1, which does not change.
    """
    streams = _output()
    if streams is None:
        yield
        return
    output, nowhere = streams
    usual, output.value = output.value, nowhere
    try:
        yield
    finally:
        output.value = usual


@cache
def _output() -> tuple[ctypes.c_void_p, int] | None:
    """C's variable ``stdout``, and a stream to nowhere; None if it cannot be assigned."""
    if sys.platform == "darwin":
        name = "__stdoutp"
    elif platform.libc_ver()[0] == "glibc":
        name = "stdout"
    else:
        return None
    library = ctypes.CDLL(None)
    library.fopen.restype = ctypes.c_void_p
    nowhere = library.fopen(os.devnull.encode(), b"w")
    return (ctypes.c_void_p.in_dll(library, name), nowhere) if nowhere else None


quiet_highs = SharedContext(_silence)
"""Context in which HiGHS prints nothing; several threads may be inside."""
