"""Writes the rows of a run to an experiment tracker: TensorBoard or Trackio."""

from __future__ import annotations

import importlib.util
from typing import Literal

from wirelessfl.errors import ConfigError
from wirelessfl.observers.observer import Row

Name = Literal["tensorboard", "trackio"]
"""The trackers."""


def check_installed(package: Name) -> None:
    """Check that the package of a tracker is installed, without importing it.

    Raises:
        ConfigError: it is not.
    """
    if importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"track is {package!r}, but its package is not installed: pip install "
            "'wirelessfl[trackers]'"
        )


def numbers_of(row: Row) -> dict[str, float]:
    """The numeric fields of a row by name; those of a task below its name, as ``task/accuracy``."""
    mark = f"{row['task']}/" if "task" in row else ""
    return {
        f"{mark}{name}": float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name != "numerics"
    }
