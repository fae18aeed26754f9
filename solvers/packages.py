"""Optional solver packages: import on first use, and suppression of redundant warnings."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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
