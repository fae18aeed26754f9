"""Finding what a setting names: in a folder of this package, or by a user's import path."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from wirelessfl.errors import ConfigError


def import_path(kind: str, path: str) -> Any:
    """The object at ``module:attribute``.

    Raises:
        ConfigError: the module cannot be imported or has no such attribute.
    """
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{kind} {path!r} cannot be imported: {error}. Write it as module:name, with the "
            "module's folder on PYTHONPATH."
        ) from error


def by_name(kind: str, name: str, known: Mapping[str, Any]) -> Any:
    """The object that ``known`` calls ``name``, or the one at the import path ``module:name``.

    Raises:
        ConfigError: there is none; the message lists those there are.
    """
    if name in known:
        return known[name]
    if ":" in name:
        return import_path(kind, name)
    raise ConfigError(
        f"{kind} {name!r} is unknown. Choose {', '.join(sorted(known))}, or your own by its path "
        "module:name."
    )


def classes_in(package: str, base: type[Any]) -> dict[str, Any]:
    """Every concrete subclass of ``base`` in the modules of ``package``, by its ``name``.

    A new file in the folder is found by being there; nothing else needs editing.
    """
    found: dict[str, Any] = {}
    folder = importlib.import_module(package)
    for entry in sorted(pkgutil.iter_modules(folder.__path__), key=lambda e: e.name):
        module = importlib.import_module(f"{package}.{entry.name}")
        for value in vars(module).values():
            here = isinstance(value, type) and value.__module__ == module.__name__
            if here and issubclass(value, base) and value.name:
                found[value.name] = value
    return found
