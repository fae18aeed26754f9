"""Files that are written whole or not at all, and folders that can be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wirelessfl.errors import ConfigError


class NotWrittenError(ConfigError):
    """A file of a run cannot be written, because there is no space, or it has been removed."""


def draft_of(path: Path) -> Path:
    """Temporary name of a file that is being written."""
    return path.with_name(path.name + ".part")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name for a file; rename the complete file once it is on disk."""
    draft = draft_of(path)
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


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
