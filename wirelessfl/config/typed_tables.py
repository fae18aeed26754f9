"""Tables of settings as they are read, with typed values, and the choices built from them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import nullcontext
from dataclasses import fields
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling, of_project
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.base.wording import explain, shown
from wirelessfl.config.choices import CHOSEN
from wirelessfl.config.kinds import PARTS, chosen_classes, prefix_of, title_of, words
from wirelessfl.config.named import GivenSection, check_text
from wirelessfl.config.sections import SECTIONS, Section
from wirelessfl.config.tables import hint, named_tables, unknown_setting

WHOLE = re.compile(r"[+-]?\d+(\.\d+)?[eE]\+?\d{1,2}")
"""A number in scientific notation."""
LARGE = re.compile(r"[+-]?0*[1-9]\d{19,}")
LARGEST = 2**63 - 1
"""Largest whole number that TOML holds; ``LARGE`` matches longer ones."""


def build_choices(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Every choice of the run by its kind, built from its table, which must have a ``name``.

    The run's seed determines what the constructors of users' choices draw.

    Args:
        tables: typed tables of all choices and sections, by name.

    Raises:
        ConfigError: a name or a setting is unknown, or a value is wrong.
    """
    classes = chosen_classes(tables)
    parts = {PARTS[kind]: classes.pop(kind) for kind in PARTS if kind in classes}
    of_users = not all(map(of_project, (*classes.values(), *parts.values())))
    stream = Stream(tables["run"].seed, ("users' choices",))
    with seeded_generators(stream) if of_users else nullcontext():  # ours draw nothing
        return {
            kind: _built(kind, classes_of_kind, tables[kind], parts.get(kind))
            for kind, classes_of_kind in classes.items()
        }


@lru_cache(maxsize=256)
def _adapter(owner: Hashable) -> TypeAdapter[Any]:
    """The validator of a section or choice; cached because building one takes milliseconds."""
    adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, owner))
    return adapter


@lru_cache(maxsize=256)  # thousands of configurations are read in a sweep
def _infos(owner: Hashable) -> Mapping[str, FieldInfo]:
    """Type, limits and description of each setting of a section or choice, by name."""
    hints = get_type_hints(owner, include_extras=True)
    names = [entry.name for entry in fields(cast(Any, owner))]
    return {name: FieldInfo.from_annotation(hints[name]) for name in names}


@lru_cache(maxsize=256)
def _kinds(owner: Hashable) -> Mapping[str, frozenset[Any]]:
    """The types of each setting of a section or choice, by name."""
    return {name: _types_in(info.annotation) for name, info in _infos(owner).items()}


def _read_value(key: str, value: Any, kinds: Collection[Any]) -> Any:
    """Read a whole number that is written as 1e3 and a path, and refuse booleans for numbers.

    Python would accept True as 1. Whole numbers that TOML cannot hold are refused, too; other
    values are returned unchanged. Entries of lists count.
    """
    if Path in kinds:
        if isinstance(value, str) and value in kinds:  # a name in place of a path
            return value
        number = _decimal(value) if float in kinds else None
        if number is not None:
            return number
        return expanded(value) if isinstance(value, str | Path) else value
    if bool not in kinds:
        for kind in value if isinstance(value, list | tuple) else [value]:
            if isinstance(kind, bool):
                raise ConfigError(f"{key} is {value}: it does not accept true/false.")
    if int not in kinds:
        return value
    several = isinstance(value, list | tuple)
    read = [kind if str in kinds else _whole(kind) for kind in (value if several else [value])]
    for kind in read:
        long = isinstance(kind, str) and LARGE.fullmatch(kind.strip())
        number = isinstance(kind, int if float in kinds else int | float)
        if long or (number and abs(kind) > LARGEST):
            raise ConfigError(f"{key} is beyond 2**63 - 1, the largest whole number: give less.")
    return type(value)(read) if several else read[0]


def _decimal(text: Any) -> float | None:
    """The number that a string stands for; None for other values."""
    try:
        return float(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _whole(value: Any) -> Any:
    """The integer that a string such as "1e3" stands for; other values unchanged."""
    if isinstance(value, str) and WHOLE.fullmatch(value.strip()):
        number = Decimal(value.strip())
        if number == number.to_integral_value():
            return int(number)
    return value


def _types_in(annotation: Any) -> frozenset[Any]:
    """All types and literals in an annotation, e.g. int and NoneType in ``int | None``."""
    if get_origin(annotation) is Annotated:
        return _types_in(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return frozenset(get_args(annotation))
    inner = frozenset(kind for entry in get_args(annotation) for kind in _types_in(entry))
    return inner | {annotation} if isinstance(annotation, type) else inner


def _built(kind: str, choice: type[Any], table: Mapping[str, Any], local: type[Any] | None) -> Any:
    """The object that a table describes, with every value checked."""
    with calling(f"{words(kind)} {title_of(table)} cannot be created", ConfigError):
        settings = {key: value for key, value in table.items() if key != "name"}
        inner = {} if local is None else _kinds(cast(Hashable, local))
        names = [*inner, *_kinds(cast(Hashable, choice))]
        for key in settings:
            if key not in names:
                raise ConfigError(
                    f"unknown setting {key!r} of {words(kind)} {title_of(table)}, which has "
                    f"{', '.join(names) or 'no settings'}.{hint(key, names)}"
                )
        if local is None:
            return _checked(choice, settings, prefix_of(kind))
        plain = {key: value for key, value in settings.items() if key not in inner}
        inside = {key: value for key, value in settings.items() if key in inner}
        return _checked(choice, plain | {"local": _checked(local, inside)})


def _checked(
    owner: type[Any],
    settings: Mapping[str, Any],
    prefix: str = "",
    unknown: Callable[[str, str, object], str] | None = None,
) -> Any:
    """A section or choice with these settings; for the other arguments see ``explain``."""
    kinds = _kinds(cast(Hashable, owner))
    settings = {
        key: _read_value(prefix + key, value, kinds[key]) if key in kinds else value
        for key, value in settings.items()
    }
    try:
        built = _adapter(cast(Hashable, owner)).validate_python(settings)
    except ValidationError as error:
        infos = _infos(cast(Hashable, owner))
        raise ConfigError(explain(error, infos, prefix, unknown)) from None
    for key, value in vars(built).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{key} is {value}: give a finite number.")
    return built


ORDER = (*CHOSEN, "given", *SECTIONS, "task")
"""Names of all tables, in the order in which they are written."""


def read_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The sections, and the tables of choices and tasks, from those given.

    Choices are tables with a ``name`` and the settings of the named choice; None if the run has no
    such choice. ``task`` has one table per task.

    Raises:
        ConfigError: an unknown key, or a wrong value of a section.
    """
    named = named_tables(tables)
    values: dict[str, Any] = {kind: named.get(kind) for kind in CHOSEN}
    values["task"] = named.get("task", ())
    problems = []
    for name, section in (("given", GivenSection), *SECTIONS.items()):
        try:
            values[name] = _section(section, name, named)
        except ConfigError as error:
            problems.append(str(error))
    problems += [unknown_setting(named, "", key, named[key]) for key in named if key not in ORDER]
    if problems:
        raise ConfigError(" ".join(problems))
    return values


def _section(section: type[Section], name: str, tables: Mapping[str, Any]) -> Section:
    table = tables.get(name)
    if table is None or table == {}:
        return section()
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name} is {shown(table)}: give a table of settings.")
    made: Section = _checked(section, table, f"{name}.", partial(unknown_setting, tables))
    return made


def typed(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of some settings of a section, read and checked as those of a file.

    Raises:
        ConfigError: a wrong value.
    """
    check_text(values)
    read = _section(SECTIONS[section], section, {section: values})
    return {key: getattr(read, key) for key in values}


class ChoiceTable(dict[str, Any]):
    """The settings of a choice by name, read-only.

    >>> import wirelessfl
    >>> config = wirelessfl.Config.from_flags("fedavg", lr=0.1)
    >>> config.tables["algorithm"]["lr"]
    0.1
    """

    def _refuse(self, *values: Any, **options: Any) -> NoReturn:
        raise ConfigError(
            f"the settings of {self.get('name', 'a choice')!r} are read-only: make another "
            "configuration, e.g. config.changed(lr=0.1), or give them to Config.from_flags."
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[ChoiceTable], tuple[dict[str, Any]]]:
        """A copy with the same settings, for pickles and copies."""
        return ChoiceTable, (dict(self),)
