"""Find the class that a setting names, in a folder of this package or by import path."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass, make_dataclass
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast, get_origin, get_type_hints

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling, guard, of_project
from wirelessfl.base.import_paths import (
    SUFFIX,
    before_import,
    file_of,
    is_import_path,
    module_and_name,
    path_of,
)
from wirelessfl.base.needs import Needs
from wirelessfl.base.packages import load
from wirelessfl.base.sources import source_hashes
from wirelessfl.base.wording import SEVERAL, public_path, shown, suggestion

NAMES = ("name", "title")
"""Attributes of a choice that are not settings."""


@dataclass(frozen=True)
class Choice:
    """Base class of choices: frozen dataclasses that settings select by name.

    Their fields are settings: they become command-line flags and keys of the choice's TOML table,
    and ``Annotated[type, Field(...)]`` gives their limits and help text.
    """

    name: ClassVar[str]
    """Name of the choice; by default the name of its file."""
    title: ClassVar[str]
    """What selects the choice, for messages: ``name``, or the import path of a user's class."""
    overrides: ClassVar[tuple[str, ...]] = ()
    """Inherited settings that this class redefines on purpose, e.g. to change a default."""

    def __init_subclass__(cls) -> None:
        """Name the class after its file, unless it defines ``name``; check a user's class."""
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = file_name(cls.__module__)
        if "title" not in vars(cls):
            cls.title = cls.name if of_project(cls) else path_of(cls)
        if not of_project(cls):
            _check_hidden(cls)
        guard(cls)

    def __post_init__(self) -> None:
        """Check the settings; raise ValueError with the reason and a remedy.

        A subclass calls ``super().__post_init__()``, so that the checks of all base classes are
        made.
        """

    @property
    def setting_owners(self) -> tuple[Choice, ...]:
        """The choices whose fields are its settings: by default only itself."""
        return (self,)

    def all_settings(self) -> dict[str, Any]:
        """The settings by name, as in its table."""
        return dict(vars(self))

    def unused(self) -> Mapping[str, str]:
        """Settings of this choice that have no effect, given its other settings.

        Returns:
            The reason for each setting, by name. A message puts it after the setting's name and
            value, e.g. "conflicts with option=S" or "needs samples_per_client: set it".
        """
        return {}


def _check_hidden(cls: type[Choice]) -> None:
    """Check that a user's class hides no inherited setting, unless ``overrides`` names it."""
    inherited: dict[str, type] = {}
    for base in reversed(cls.__mro__[1:]):
        annotations = vars(base).get("__annotations__", {})
        inherited |= {f.name: base for f in fields_of(base) if f.name in annotations}
    annotated, allowed = vars(cls).get("__annotations__", {}), vars(cls).get("overrides", ())
    for name in allowed:
        if name not in inherited:
            raise ConfigError(
                f"{path_of(cls)}: overrides names {name!r}, which is not an inherited setting: "
                f"remove it.{suggestion(name, inherited)}"
            )
    for name, base in inherited.items():
        if name not in vars(cls) and name not in annotated:
            continue
        if name not in annotated:
            raise ConfigError(
                f"{path_of(cls)}: {name} hides the setting {name} of its base class "
                f"{base.__name__}, and has no type: give it another name; or, to change the "
                f'default, write {name}: TYPE = VALUE and overrides = ("{name}",).'
            )
        if name not in allowed:
            raise ConfigError(
                f"{path_of(cls)}: the setting {name} hides that of its base class "
                f"{base.__name__}, whose methods use it: give it another name; or, if this is "
                f'what you want, add overrides = ("{name}",).'
            )


def fields_of(cls: type) -> tuple[Any, ...]:
    """The fields of a dataclass; none of another class."""
    return fields(cls) if is_dataclass(cls) else ()


C = TypeVar("C", bound=Choice)


def adopt(
    base: type[Any],
    described: Mapping[str, Any],
    source: type[Any],
    name: str,
    text: str,
    *,
    more: Mapping[str, tuple[Any, Any]] = MappingProxyType({}),
    wrap: Callable[..., Any] | None = None,
) -> type[Any]:
    """A choice with the fields of a dataclass of ``channels``, an object of which it builds.

    Args:
        base: base class of the choice, in whose module it is.
        described: limits and description of each setting, a pydantic ``Field``, in their order.
        source: the dataclass; it gives types and defaults.
        name: name of the choice.
        text: its help text.
        more: type and default of settings besides the fields.
        wrap: gets the object and the settings ``more``; returns what is built.
    """
    types = get_type_hints(source)
    settings = {f.name: (types[f.name], f.default) for f in fields(source)}

    def build(self: Any) -> Any:
        adopted = source(**{key: getattr(self, key) for key in settings})
        return wrap(adopted, **{key: getattr(self, key) for key in more}) if wrap else adopted

    typed = settings | dict(more)
    entries = [
        (key, Annotated[typed[key][0], info], typed[key][1])
        for key, info in described.items()
        if key in typed
    ]
    body = {"name": name, "__doc__": text, "__module__": base.__module__, "build": build}
    return make_dataclass(source.__name__, entries, bases=(base,), namespace=body, frozen=True)


@dataclass(frozen=True)
class Kind(Generic[C]):
    """A kind of choice, whose classes are in the files of one folder, or in one file.

    Args:
        name: name of the setting that selects one.
        package: package of the folder, whose files are discovered automatically; or the module.
        base: base class of the choices.
        default: name of the default; empty if the algorithm determines it.
        needs: what a run needs to have such a choice.
        table: ``Needs``, ``Fits`` and ``Suits`` of all settings of its choices, including the name.
        text: description for help pages; empty for the name.
        heading: heading of help pages below which the choices are listed.
        prefix: prefix of the flags of its settings, if other kinds have the same settings.
    """

    name: str
    package: str
    base: type[Any]
    default: str = ""
    needs: tuple[Needs, ...] = ()
    table: tuple[Needs, ...] = ()
    text: str = ""
    heading: str = "training"
    prefix: str = ""

    def classes(self) -> Mapping[str, type[C]]:
        """All choices in the folder, by name."""
        return classes_in(self.package, cast(Hashable, self.base))

    def find(self, name: str) -> type[C]:
        """Find the choice called ``name``, or the user's class at this import path."""
        classes = self.classes()
        if isinstance(name, str) and name in classes:
            return classes[name]
        return cast(
            type[C], subclass(self.name, name, by_name(self.name, name, classes), self.base)
        )


def import_path(kind: str, path: str) -> Any:
    """Import the object at ``module:name`` or ``file.py:name``.

    Raises:
        ConfigError: the module does not exist, cannot be imported, or has no such attribute.
    """
    module, name = module_and_name(path)
    problem, place = f"{kind} {path!r} cannot be imported", file_of(module) or module
    load("torch")  # users' code may draw from its generator, which a run seeds
    before_import()
    with calling(problem, ConfigError):
        try:
            loaded = importlib.import_module(module) if all(module.split(".")) else None
        except ModuleNotFoundError as error:
            if not f"{module}.".startswith(f"{error.name}."):  # a module that this one imports
                raise
            loaded = None
        except TypeError as error:
            if "non-frozen dataclass" in str(error):
                error.args = (f"{error}: write @dataclass(frozen=True)",)
            raise
        if hasattr(loaded, name):
            source_hashes(module)  # now, because the file may change later
            return getattr(loaded, name)
    what = f"{'module' if place == module else 'file'} {str(place)!r}"
    if loaded is None:
        missing = f"there is no {what}."
    else:
        names = [key for key, value in vars(loaded).items() if _is_of(value, module)]
        missing = f"{what} has no {name!r}.{suggestion(name, names)}"
    raise ConfigError(
        f"{problem}: {missing} Write it as module:name, with the module's folder on PYTHONPATH, "
        "or as file.py:name; of a stored run, the file may be in the current folder."
    )


def by_name(kind: str, name: object, choices: Mapping[str, Any], other: str = "") -> Any:
    """Find the object called ``name`` in ``choices``, or at an import path, see ``import_path``.

    Args:
        kind: what the object is, for messages.
        name: the given name.
        choices: objects by name.
        other: what else may be given, for messages.
    """
    if not isinstance(name, str):
        raise ConfigError(f"{kind} is {shown(name)}: give a name, or an import path module:name.")
    if name in choices:
        return choices[name]
    if is_import_path(name):
        return import_path(kind, name)
    raise ConfigError(
        f"{kind} {name!r} is unknown.{_meant(name, choices)} Choose {', '.join(sorted(choices))}, "
        f"or your own by its path module:name or file.py:name{other}."
    )


def _is_of(value: object, module: str) -> bool:
    """Whether a module defines this class or function."""
    return callable(value) and getattr(value, "__module__", None) == module


def _meant(name: str, names: Mapping[str, Any]) -> str:
    """Suggest how to write a name that may be meant as an import path, or a similar known name."""
    module, dot, last = name.rpartition(".")
    if name.endswith(SUFFIX):
        return f" Name a class or function of the file, too: {name + ':Name'!r}."
    if dot and all(part.isidentifier() for part in name.split(".")):
        return f" Do you mean {f'{module}:{last}'!r}?"
    if name not in names and name.isidentifier() and os.path.isfile(name + SUFFIX):
        return f" Name a class or function of the file {name}{SUFFIX}, too: {name + ':Name'!r}."
    if "," in name and all(part.strip() in names for part in name.split(",")):
        return SEVERAL
    return suggestion(name, names)


def subclass(kind: str, name: str, cls: Any, base: type[Any]) -> Any:
    """Return ``cls`` if it is a concrete subclass of ``base`` with valid annotations."""
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ConfigError(
            f"{kind} {name!r} is {shown(cls)}: give a class derived from {public_path(base)}."
        )
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise ConfigError(
            f"{kind} {name!r} lacks {', '.join(missing)}, which {public_path(base)} requires: "
            f"define {'it' if len(missing) == 1 else 'them'}."
        )
    if is_import_path(name):
        with calling(f"the annotations of {kind} {name!r} cannot be read", ConfigError):
            hints = get_type_hints(cls)
        _check_settings(kind, name, cls, hints)
    return cls


def _check_settings(kind: str, name: str, cls: type[Any], hints: Mapping[str, Any]) -> None:
    """Raise if a user's class declares settings that ``@dataclass`` has not read."""
    for owner in cls.__mro__:
        if of_project(owner) or "__dataclass_fields__" in vars(owner):
            continue
        declared = [
            key
            for key in inspect.get_annotations(owner)
            if not (key.startswith("_") or key in NAMES or get_origin(hints[key]) is ClassVar)
        ]
        if declared and issubclass(owner, Choice):
            raise ConfigError(
                f"{kind} {name!r} declares {', '.join(declared)}, ignored because class "
                f"{owner.__name__} is not a dataclass: write @dataclass(frozen=True) above it."
            )


def file_name(module: str) -> str:
    """Name of a choice in ``module``: ``pkg.my_rule`` gives ``my-rule``."""
    file = file_of(module)
    name = module.rpartition(".")[2] if file is None else file.stem
    return name.replace("_", "-")


@cache
def classes_in(package: str, base: Any) -> Mapping[str, Any]:
    """All concrete, named subclasses of ``base`` in the modules of ``package``, by name.

    A new file in the folder is found automatically, and choices are in the order of their names. A
    module that is no package has its own, in its order.
    """
    classes: dict[str, Any] = {}
    folder = importlib.import_module(package)
    files = sorted(f.name for f in pkgutil.iter_modules(getattr(folder, "__path__", ())))
    for module in [importlib.import_module(f"{package}.{file}") for file in files] or [folder]:
        for value in vars(module).values():
            here = isinstance(value, type) and value.__module__ == module.__name__
            if not (here and issubclass(value, base)) or inspect.isabstract(value):
                continue
            if not value.name:  # a base class for other choices
                continue
            if classes.setdefault(value.name, value) is not value:
                raise ConfigError(
                    f"{value.__module__}.{value.__name__} is called {value.name!r}, and so is "
                    f"{classes[value.name].__module__}: give it another name."
                )
    return MappingProxyType(dict(sorted(classes.items())) if files else classes)
