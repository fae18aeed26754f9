"""Checks the folders that commands write."""

from __future__ import annotations

import os
from pathlib import Path

from wirelessfl.errors import ConfigError


def check_writable(path: Path, name: str = "out") -> None:
    """Check that a folder can be written or created.

    Args:
        path: the folder.
        name: the setting that gives it, for the error.

    Raises:
        ConfigError: it can be neither.
    """
    try:
        there = next(p for p in (path, *path.absolute().parents) if p.exists())
    except OSError as error:  # such as a name that is too long
        raise ConfigError(f"{name} is {path}: {error.strerror}. Choose another folder.") from error
    if there.is_dir() and not os.access(there, os.W_OK):
        raise ConfigError(f"{name} is {path}: {there} is not writable. Choose another folder.")
    if not there.is_dir():
        raise ConfigError(f"{name} is {path}: {there} is not a folder. Choose another folder.")
