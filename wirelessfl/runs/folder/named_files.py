"""Code and files that the settings of a run name: their hashes, and whether they have changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import SUFFIX, absolute, module_and_name, module_of, short
from wirelessfl.base.sources import NO_SOURCE, source_hashes
from wirelessfl.config import Config
from wirelessfl.config.named import import_paths, named_files

NAMED = "named"
"""Entry of ``about.json``: hashes of the code and files that settings name."""
WHOLE_BYTES = 64 << 20
"""Size up to which the whole content of a file is hashed; of larger files, parts are."""
PARTS, PART_BYTES = 64, 1 << 16
About = Callable[[], Mapping[str, Any]]
"""Reads the entries of ``about.json``."""


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


def changed_files(config: Config, about: About) -> str:
    """The first setting whose code or files differ from those of the run, and the file.

    Only settings that have hashes now and had them when the run began are compared.

    Returns:
        For example "model m:make: m.py"; empty if nothing differs.
    """
    current = named_hashes(config)
    began = about() if current else {}
    for setting, hashes in current.items():
        before = _hashes_at_start(began, setting) or hashes
        for file in sorted({*before, *hashes}):
            if before.get(file) != hashes.get(file):
                return f"{setting}: {file}"
    return ""


def with_code_here(tables: dict[str, Any], about: About, file: Path) -> dict[str, Any]:
    """Settings in which equal files of the current folder replace missing ones of code.

    The folder may be on another machine, where the paths of files differ.

    Args:
        tables: the settings.
        about: reads the hashes at the start.
        file: the file of the settings, for messages.
    """
    for setting, path in import_paths(tables):
        place, _, name = path.rpartition(":")
        if not place.endswith(SUFFIX) or os.path.exists(place):
            continue
        here = Path(place).name
        before = _hashes_at_start(about(), f"{setting} {path}")
        if not os.path.isfile(here) or before not in (None, source_hashes(module_of(here))):
            differs = ", and that in the current folder differs" if os.path.isfile(here) else ""
            raise ConfigError(
                f"{file}: {setting} is {path!r}: there is no such file{differs}. Copy {here} as it "
                "was when the run began into the current folder, with the modules that it imports."
            )
        tables = _replaced(tables, path, absolute(f"{here}:{name}"))
    return tables


def _replaced(value: Any, old: str, new: str) -> Any:
    """A value of TOML, in which one string replaces another."""
    if isinstance(value, dict):
        return {key: _replaced(one, old, new) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, old, new) for one in value]
    return new if value == old else value


def _hashes_at_start(entries: Mapping[str, Any], named: str) -> Mapping[str, str] | None:
    """The hashes of code or files when the run began, from the entries; None if there are none.

    Args:
        entries: those of ``about.json``.
        named: the setting and its value, e.g. "model /home/me/m.py:make". A file of code may have
            had another folder, see ``RunFolder.open``.
    """
    began: Mapping[str, Mapping[str, str]] = entries.get(NAMED, {})
    alike = (name for name in began if _without_folder(name) == _without_folder(named))
    return began.get(named) or began.get(next(alike, ""))


def _without_folder(named: str) -> str:
    setting, _, path = named.partition(" ")
    return f"{setting} {short(path)}"
