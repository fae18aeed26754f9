"""What settings name: objects by import path, which run code, and files and folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import absolute, expanded, is_import_path
from wirelessfl.config.choices import KINDS
from wirelessfl.config.sections import PLACES
from wirelessfl.config.sections.training import listed
from wirelessfl.config.task_tables import parse_task
from wirelessfl.data.files import is_folder_path

OBJECTS = ("algorithm", "local", "network", "augment", *KINDS)
"""Settings that name an object, in a table of their own or in the table of a task."""
FOLDERS = ("tokenizer", "pretrained")
"""Settings that name a folder if it exists, else something on the hub."""
Trust = bool | frozenset[str]
"""Whether a file may name code to import; or the import paths that it may name."""


def import_paths(tables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each setting that names an object by its import path, with the path."""
    for setting, value in _entries(tables):
        several = setting == "metric"  # names in a list or separated by commas
        for name in listed(value) or () if several else (value,):
            known = setting in OBJECTS or several
            if known and isinstance(name, str) and is_import_path(name):
                yield setting, name


def named_files(tables: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Yield each setting that names an existing file or folder, with its path."""
    for setting, value in _entries(tables):
        folder = isinstance(value, str) and (
            (setting in FOLDERS and not is_import_path(value))
            or (setting == "dataset" and is_folder_path(value))
        )
        if folder or (isinstance(value, Path) and setting not in PLACES):
            path = expanded(value)
            if os.path.isdir(path) if folder else os.path.exists(path):
                yield setting, path


def check_text(tables: Mapping[str, Any]) -> None:
    """Refuse names and paths that a stored configuration cannot hold.

    Raises:
        ConfigError: one contains bytes that are not UTF-8.
    """
    for setting, value in _entries(tables):
        if isinstance(value, str | Path) and any("\ud800" <= one <= "\udfff" for one in str(value)):
            raise ConfigError(
                f"{setting} is {str(value)!r}, which contains bytes that are not UTF-8: rename it."
            )


def _entries(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield all settings with their values; the name in a table is the value of its kind."""
    for section, table in tables.items():
        if section == "task" and isinstance(table, list | tuple | str):
            for task in [table] if isinstance(table, str) else table:
                found = parse_task(task) if isinstance(task, str) else task
                if isinstance(found, Mapping):
                    yield from ((key, value) for key, value in found.items() if key != "name")
        elif isinstance(table, Mapping):
            if section != "given":
                yield from ((section if key == "name" else key, v) for key, v in table.items())
        else:
            yield section, table


def absolute_name(kind: str, name: Any) -> Any:
    """The name of a choice, with an absolute path if it is the path of a file or a folder.

    A run may be resumed from another working directory.
    """
    folder = kind == "dataset" and isinstance(name, str) and is_folder_path(name)
    return str(expanded(name).absolute()) if folder else absolute(name)


def with_absolute_paths(table: Mapping[str, Any], kind: str = "") -> dict[str, Any]:
    """The table of a choice or of a task, whose names of code and folders are absolute paths.

    Args:
        table: the table.
        kind: the kind of choice; "" for a task.
    """
    of_kind = {"name": kind, **{key: key for key in OBJECTS}}
    return {
        key: absolute_name(of_kind[key], value) if key in of_kind else value
        for key, value in table.items()
    }


def check_trust(tables: Mapping[str, Any], file: Path, trust: Trust) -> None:
    """Raise if a file names code that it may not name; nothing is imported.

    Args:
        tables: the tables of the file.
        file: the file, for the message.
        trust: see ``Trust``.

    Raises:
        ConfigError: the file names an object by an import path.
    """
    for setting, path in import_paths(tables):
        if trust is not True and not (isinstance(trust, frozenset) and path in trust):
            raise ConfigError(
                f"{file}: {setting} is {path!r}, and importing it runs code. If you trust this "
                "code, add --trust, or in Python trust=True."
            )


__all__ = [
    "Trust",
    "absolute_name",
    "check_trust",
    "import_paths",
    "named_files",
    "with_absolute_paths",
]
