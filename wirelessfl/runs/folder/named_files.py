"""Hashes of the code and files that the settings of a run name, and what differs at a resume."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from wirelessfl.base.import_paths import SUFFIX, module_and_name, short
from wirelessfl.base.sources import NO_SOURCE, source_hashes
from wirelessfl.config import Config
from wirelessfl.config.named import import_paths, named_files

NAMED, HASHES = "named", "hashes"
"""Entries of ``about.json``: hashes of the code and files that settings name, and of objects."""
WHOLE_BYTES = 64 << 20
"""Size up to which the whole content of a file is hashed; of larger files, parts are."""
PARTS, PART_BYTES = 64, 1 << 16


def named_hashes(config: Config) -> dict[str, dict[str, str]]:
    """Hashes of the code and files that settings name.

    Returns:
        For each named object, e.g. "model m:make", the hashes of the files of its module and of the
        user's modules that it imports; for each file or folder, e.g. "dataset /data/images", those
        of the file, or of the files of the folder and its subfolders. Settings whose files are
        missing are left out.
    """
    tables = config.used_tables()
    code = {
        f"{setting} {path}": source_hashes(module_and_name(path)[0])
        for setting, path in import_paths(tables)
    }
    return code | {f"{setting} {path}": _file_hashes(path) for setting, path in named_files(tables)}


def _file_hashes(path: Path) -> dict[str, str]:
    """Hashes of a file, or of the files of a folder, except hidden ones.

    Files of sub-subfolders, such as the images of a class, have one hash together.
    """
    if path.is_file():
        return {path.name: _content(path)}
    files = sorted(file for form in ("*", "*/*") for file in path.glob(form) if file.is_file())
    names = {file.relative_to(path).as_posix(): file for file in files}
    contents = {name: _content(file) for name, file in names.items() if "/." not in f"/{name}"}
    for folder in sorted(path.glob("*/*/")):
        name = folder.relative_to(path).as_posix()
        inside = sorted(file for file in folder.rglob("*") if file.is_file())
        if inside and "/." not in f"/{name}":
            hashes = [(file.relative_to(folder).as_posix(), _content(file)) for file in inside]
            checksum = hashlib.blake2b(repr(hashes).encode(), digest_size=8)
            contents[f"{name}/"] = checksum.hexdigest()
    return contents


def _content(file: Path) -> str:
    stat = file.stat()
    return _hash_of(file, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4096)
def _hash_of(file: Path, size: int, changed: int) -> str:
    """Hash of a file's size and content, or of evenly spaced parts of a large file."""
    checksum = hashlib.blake2b(str(size).encode(), digest_size=8)
    with file.open("rb") as content:
        if size <= WHOLE_BYTES:
            checksum.update(content.read())
        else:
            for part in range(PARTS):
                content.seek(part * (size - PART_BYTES) // (PARTS - 1))
                checksum.update(content.read(PART_BYTES))
    return checksum.hexdigest()


def unnoticed(config: Config) -> list[str]:
    """A line for each named object without a source file, whose changes are not detected."""
    return [
        f"{setting} has no source file: changes to its code are not detected."
        for setting, hashes in named_hashes(config).items()
        if NO_SOURCE in hashes.values()
    ]


def difference(began: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first thing that is another one than when the run began, among those with hashes then.

    Args:
        began: entries of ``about.json``.
        now: hashes by what they are of; of what has several files, by file.

    Returns:
        For example "model m.py:make: m.py"; empty if nothing differs.
    """
    hashes = began.get(NAMED, {}) | began.get(HASHES, {})
    moved = {short(name): value for name, value in hashes.items()}  # to another folder
    for name, value in now.items():
        before = hashes.get(name, moved.get(short(name), value))
        if before != value and isinstance(value, str):
            return name
        for file in sorted({*before, *value}) if before != value else ():
            if before.get(file) != value.get(file):
                return f"{name}: {file}"
    return ""


def with_code_here(value: Any) -> Any:
    """Stored settings, in which files of the current folder replace missing files of code.

    The run may have begun on another machine, where the files have other paths.
    """
    if isinstance(value, dict):
        return {key: with_code_here(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_code_here(one) for one in value]
    place, _, name = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    here = os.path.abspath(os.path.basename(place))
    moved = place.endswith(SUFFIX) and not os.path.exists(place) and os.path.isfile(here)
    return f"{here}:{name}" if moved else value
