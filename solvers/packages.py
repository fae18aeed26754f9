"""Solvers of other packages: imported when used, and without the warnings that are answered."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from solvers.solution import SolverUnavailableError


def import_solver(module: str, instead: str) -> Any:
    """The module, if its package is installed.

    Args:
        module: its name.
        instead: the backend that needs no other package.

    Raises:
        SolverUnavailableError: it cannot be imported.
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
    """Without cvxpy's warning that a solution may be inaccurate: bounds are checked here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        yield
