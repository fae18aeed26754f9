"""Finding what a setting names: in a folder of this package, or by a user's import path."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar, cast

from wirelessfl.errors import ConfigError
from wirelessfl.wording import shown, suggestion


@dataclass(frozen=True)
class Choice:
    """Something with a name that settings choose: a frozen dataclass whose fields are settings.

    They become flags of the command line and keys of its table, checked and explained by their
    ``Annotated[type, Field(...)]``.
    """

    name: ClassVar[str]
    """What it is called; without one of its own, a class is called after its file."""

    def __init_subclass__(cls) -> None:
        """Name the class after its file, if it does not say otherwise."""
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = file_name(cls.__module__)

    def unused(self) -> Mapping[str, str]:
        """Settings of this choice that its other settings leave without effect.

        Returns:
            By name, why, as the end of a sentence that begins with the name and value:
            "conflicts with option=S" or "needs samples_per_client".
        """
        return {}


C = TypeVar("C", bound=Choice)


@dataclass(frozen=True)
class Kind(Generic[C]):
    """A kind of choices that lie in a folder, one a file.

    Args:
        name: of the setting that names one.
        package: the folder; a file put there is found by being there.
        base: what all are derived from.
    """

    name: str
    package: str
    base: type[Any]

    def classes(self) -> Mapping[str, type[C]]:
        """All in the folder, by name."""
        return classes_in(self.package, cast(Hashable, self.base))

    def find(self, name: str) -> type[C]:
        """The one called ``name``, or the user's at the import path ``module:Class``.

        Raises:
            ConfigError: there is none, or it is no such class.
        """
        found: type[C] = subclass(
            self.name, name, by_name(self.name, name, self.classes()), self.base
        )
        return found


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


@cache
def classes_in(package: str, base: Any) -> Mapping[str, Any]:
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
    return MappingProxyType(found)
