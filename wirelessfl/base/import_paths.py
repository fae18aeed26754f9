"""Import paths of the user's objects: ``module:name``, or ``file.py:name``.

A file is imported as a module whose name encodes its path. Every process that has imported this
package can import such a name, so objects of these modules can be sent to other processes.
"""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

SUFFIX = ".py"
_searching = False
"""Whether the current folder is searched for the user's modules."""


def search_current_folder(*, at_once: bool) -> None:
    """Search the current folder for modules too, after all others, as commands do.

    Args:
        at_once: whether now; otherwise once the user's code is imported.
    """
    global _searching
    _searching = True
    if at_once:
        before_import()


def before_import() -> None:
    """Prepare the import of the user's code."""
    folder = os.getcwd()
    if _searching and folder not in sys.path:
        sys.path.append(folder)


def has_separator(name: str) -> bool:
    """Whether a name contains a path separator."""
    return any(separator in name for separator in (os.sep, os.altsep) if separator)


def is_import_path(name: str) -> bool:
    """Whether a name is ``module:name`` or ``file.py:name``."""
    place, colon, _ = name.rpartition(":")
    return bool(colon) and (place.endswith(SUFFIX) or not has_separator(place))


def module_and_name(path: str) -> tuple[str, str]:
    """The module and the attribute at an import path."""
    place, _, name = path.rpartition(":")
    return (module_of(place) if place.endswith(SUFFIX) else place), name


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path that a user gives; ``~`` is the home folder, also where no shell has expanded it."""
    return Path(os.path.expanduser(path))


def absolute(name: Any) -> Any:
    """The import path ``file.py:name`` with an absolute path of the file; else ``name`` itself.

    A run may be resumed from another working directory.
    """
    place, _, attribute = name.rpartition(":") if isinstance(name, str) else ("", "", "")
    return f"{os.path.abspath(expanded(place))}:{attribute}" if place.endswith(SUFFIX) else name


def short(name: str) -> str:
    """A name without the folders of its file, for titles and names of folders."""
    return Path(name).name if is_import_path(name) else name


def path_of(cls: type) -> str:
    """The import path of a class."""
    return f"{file_of(cls.__module__) or cls.__module__}:{cls.__qualname__}"


def module_of(file: str) -> str:
    """Name of the module of a file: its path without ``.py``, in which dots are encoded."""
    return quote(os.path.abspath(expanded(file)).removesuffix(SUFFIX)).replace(".", "%2E")


def file_of(module: str) -> Path | None:
    """The file that a module's name encodes; None for other modules."""
    path = unquote(module)
    return Path(path + SUFFIX) if os.path.isabs(path) else None


class FileFinder(MetaPathFinder):
    """Finds the modules of files by their names."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The specification of a file's module; None for other modules and missing files."""
        file = file_of(fullname)
        exists = file is not None and file.is_file()
        return spec_from_file_location(fullname, file) if exists else None


sys.meta_path.append(FileFinder())
