"""Hashes of the source files of the user's modules."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from channels.concurrency import ignored_warnings, parsing
from wirelessfl.base.guard import PROJECT

INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed packages."""
NO_SOURCE = "no source file"
"""Stands for the hash of a module that has no file, such as that of an interactive session."""


@dataclass(frozen=True)
class Source:
    """The source of a module.

    Args:
        loaded: the module's specification, which is another object once the module is reloaded.
        file: path of the file, relative to the folder that modules are imported from.
        digest: hash of the file.
        imports: names that the file imports; not all of them are modules.
    """

    loaded: Any
    file: str
    digest: str
    imports: tuple[str, ...] = ()


_sources: dict[str, Source] = {}
"""Known sources. A file that changes after its import does not change the module."""


def source_hashes(module: str) -> dict[str, str]:
    """Hashes of the source files of a module and of the user's modules that it imports, by file.

    The user's modules are those outside of Python, its installed packages, and this package. They
    are found by the import statements of the files, also inside functions.
    """
    sources: dict[str, Source] = {}
    todo = [module]
    while todo:
        name = todo.pop()
        source = None if name in sources else _source(name)
        if source is not None:
            sources[name] = source
            todo += [imported for imported in source.imports if _of_user(imported)]
    return dict(sorted((source.file, source.digest) for source in sources.values()))


def is_installed(name: str) -> bool:
    """Whether a module belongs to Python, to an installed package, or to this package."""
    return name != "__main__" and not _of_user(name)


def _of_user(name: str) -> bool:
    """Whether the top-level package of a module belongs to the user."""
    top = name.partition(".")[0]
    if top in PROJECT or top in sys.stdlib_module_names:
        return False
    spec = _spec(top)
    places = [getattr(spec, "origin", None), *(_folders(spec) or ())]
    place = next((place for place in places if place is not None), None)
    return place is not None and not any(part in INSTALLED for part in Path(place).parts)


def _folders(spec: Any) -> Sequence[str] | None:
    """Folders of the modules of a package, which may have no file; None for other modules."""
    folders: Sequence[str] | None = getattr(spec, "submodule_search_locations", None)
    return folders


def _spec(name: str) -> Any:
    """Specification of a module, which is not imported; None if there is no such module."""
    if name in sys.modules:
        module = sys.modules[name]
        return getattr(module, "__spec__", None) or module
    parent = name.rpartition(".")[0]
    with suppress(ImportError, ValueError, AttributeError):
        if not parent:
            return find_spec(name)
        folders = _folders(_spec(parent))
        return None if folders is None else PathFinder.find_spec(name, folders)
    return None


def _source(name: str) -> Source | None:
    """The source of a module; None if there is no such module, or only a folder of modules."""
    spec, source = _spec(name), _sources.get(name)
    if spec is None or (_folders(spec) is not None and spec.origin is None):
        return None
    if source is None or source.loaded is not spec:
        source = _sources[name] = _read(name, spec)
    return source


def _read(name: str, spec: Any) -> Source:
    """Read the source file of a module."""
    # The main program has no specification.
    file = Path(getattr(spec, "__file__", None) or getattr(spec, "origin", None) or "")
    try:
        content = file.read_bytes()
    except OSError:
        return Source(spec, name, NO_SOURCE)
    package = file.stem == "__init__"
    depth = name.count(".") + 1 + package
    imports: tuple[str, ...] = ()
    with suppress(SyntaxError, ValueError), ignored_warnings(), parsing:  # the file is not Python
        parent = name if package else name.rpartition(".")[0]
        imports = tuple(dict.fromkeys(_imported(ast.parse(content), parent)))
    digest = hashlib.blake2b(content, digest_size=8).hexdigest()
    return Source(spec, "/".join(file.parts[-depth:]), digest, imports)


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Names that a file imports, with their parents."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            with suppress(ImportError):
                base = resolve_name("." * node.level + base, package)
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


__all__ = ["NO_SOURCE", "is_installed", "source_hashes"]
