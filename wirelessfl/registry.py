"""Finding what a setting names: in a folder of this package, or by a user's import path."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import Any

from wirelessfl.errors import ConfigError
from wirelessfl.wording import shown, suggestion


def import_path(kind: str, path: str) -> Any:
    """The object at ``module:attribute``.

    Raises:
        ConfigError: the module cannot be imported or has no such attribute.
    """
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{kind} {path!r} cannot be imported: {error}. Write it as module:name, with the "
            "module's folder on PYTHONPATH."
        ) from error


def by_name(kind: str, name: object, known: Mapping[str, Any]) -> Any:
    """The object that ``known`` calls ``name``, or the one at the import path ``module:name``.

    Raises:
        ConfigError: there is none; the message lists those there are.
    """
    if not isinstance(name, str):
        raise ConfigError(f"{kind} is {shown(name)}: give a name, or an import path module:name.")
    if name in known:
        return known[name]
    if ":" in name:
        return import_path(kind, name)
    raise ConfigError(
        f"{kind} {name!r} is unknown.{suggestion(name, known)} Choose {', '.join(sorted(known))}, "
        "or your own by its path module:name."
    )


def subclass(kind: str, name: str, found: Any, base: type[Any]) -> Any:
    """``found``, if it is a class that ``kind`` can be.

    Raises:
        ConfigError: it is something else, or abstract.
    """
    if not (isinstance(found, type) and issubclass(found, base)) or inspect.isabstract(found):
        raise ConfigError(
            f"{kind} {name!r} is {found!r}: a class derived from {base.__module__}.{base.__name__} "
            "that defines its methods is needed."
        )
    return found


def file_name(module: str) -> str:
    """The name that a class takes from its file: ``pkg.my_rule`` gives ``my-rule``."""
    return module.rpartition(".")[2].replace("_", "-")


def classes_in(package: str, base: type[Any]) -> dict[str, Any]:
    """Every concrete subclass of ``base`` with a name in the modules of ``package``, by it.

    A new file in the folder is found by being there; nothing else needs editing.

    Raises:
        ConfigError: two of them have the same name.
    """
    found: dict[str, Any] = {}
    folder = importlib.import_module(package)
    for entry in sorted(pkgutil.iter_modules(folder.__path__), key=lambda e: e.name):
        module = importlib.import_module(f"{package}.{entry.name}")
        for value in vars(module).values():
            here = isinstance(value, type) and value.__module__ == module.__name__
            if not (here and issubclass(value, base)) or inspect.isabstract(value):
                continue
            if not value.name:  # a part for others to derive from
                continue
            if found.setdefault(value.name, value) is not value:
                raise ConfigError(
                    f"{value.__module__}.{value.__name__} is called {value.name!r}, and so is "
                    f"{found[value.name].__module__}: give it a name of its own."
                )
    return found
