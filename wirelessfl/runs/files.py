"""Reads and writes files of runs, with errors that name the file and the remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from wirelessfl.drafts import draft_of, replacing
from wirelessfl.errors import ConfigError


class NotWrittenError(ConfigError):
    """A file of a run cannot be written, because there is no space, or it has been removed."""


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


@contextmanager
def reading(file: Path, remedy: str) -> Iterator[None]:
    """Name the file and the remedy if a file of a run is damaged.

    Args:
        file: the file that is read.
        remedy: what to do, the last sentence of the message.

    Raises:
        ConfigError: the file is missing or damaged, or may not be read.
    """
    if not file.exists():
        raise ConfigError(f"{file} is missing. {remedy}")
    if not os.access(file, os.R_OK):
        raise ConfigError(f"{file} cannot be read: permission denied.")
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file} is damaged: {error}. {remedy}") from error


@contextmanager
def writing(file: Path, folder: Path) -> Iterator[None]:
    """Name the file, and the command that resumes the run, if the disk is full.

    Args:
        file: the file that is written.
        folder: folder of the run.

    Raises:
        NotWrittenError: the file cannot be written.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        cause = getattr(error, "strerror", None) or error
        raise NotWrittenError(
            f"{file} cannot be written: {cause}. Free disk space, then resume: "
            f"wirelessfl resume {folder}"
        ) from error


__all__ = ["NotWrittenError", "check_writable", "draft_of", "reading", "replacing", "writing"]
