"""Tables of settings as they are read, with typed values, and the choices built from them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from functools import lru_cache, partial
from typing import Any, NoReturn, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling, of_project
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.base.wording import explain
from wirelessfl.config.choices import CHOSEN, KINDS, Choices
from wirelessfl.config.kinds import PARTS, chosen_classes, title_of, words
from wirelessfl.config.named import GivenSection, check_text
from wirelessfl.config.sections import (
    SECTIONS,
    DataSection,
    EvaluationSection,
    NetworkSection,
    RunSection,
    Section,
    SessionsSection,
    TrainingSection,
    read_value,
    types_in,
)
from wirelessfl.config.tables import hint, named_tables, unknown_setting


def build_choices(tables: Mapping[str, Any]) -> Choices:
    """Build every choice from its table, which must have a ``name``.

    The run's seed determines what the constructors of users' choices draw.

    Args:
        tables: typed tables of all choices and sections, by name.

    Raises:
        ConfigError: a name or a setting is unknown, or a value is wrong.
    """
    classes = chosen_classes(tables)
    parts = {PARTS[kind]: classes.pop(kind) for kind in PARTS if kind in classes}
    of_users = not all(map(of_project, (*classes.values(), *parts.values())))
    with _seeded(tables["run"].seed) if of_users else nullcontext():  # ours draw nothing
        built = {
            kind: _built(kind, classes_of_kind, tables[kind], parts.get(kind))
            for kind, classes_of_kind in classes.items()
        }
    return Choices(**built)


def build_choice(kind: str, table: Mapping[str, Any], seed: int) -> Any:
    """Build one choice from its table; errors as for ``build_choices``.

    Args:
        kind: the kind of choice.
        table: its name and settings.
        seed: the run's seed.
    """
    with _seeded(seed):
        return _built(kind, KINDS[kind].find(table["name"]), table, None)


def _seeded(seed: int) -> AbstractContextManager[None]:
    """The context in which constructors of users' choices draw."""
    return seeded_generators(Stream(seed, ("users' choices",)))


@lru_cache(maxsize=256)
def _adapter(choice: Hashable) -> TypeAdapter[Any]:
    """The validator of a choice's settings; cached because building one takes milliseconds."""
    adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, choice))
    return adapter


@lru_cache(maxsize=256)
def _kinds_of(choice: Hashable) -> Mapping[str, frozenset[Any]]:
    """The types of each of a choice's settings, by name."""
    return {key: types_in(hint) for key, hint in _hints(choice).items()}


@lru_cache(maxsize=256)
def _hints(choice: Hashable) -> Mapping[str, Any]:
    """Annotations of a choice's settings, by name."""
    hints = get_type_hints(choice, include_extras=True)
    return {entry.name: hints[entry.name] for entry in fields(cast(Any, choice))}


def _built(kind: str, choice: type[Any], table: Mapping[str, Any], local: type[Any] | None) -> Any:
    """The object that a table describes, with every value checked."""
    with calling(f"{words(kind)} {title_of(table)} cannot be created", ConfigError):
        settings = {key: value for key, value in table.items() if key != "name"}
        inner = {} if local is None else _kinds_of(cast(Hashable, local))
        names = [*inner, *_kinds_of(cast(Hashable, choice))]
        for key in settings:
            if key not in names:
                raise ConfigError(
                    f"unknown setting {key!r} of {words(kind)} {title_of(table)}, which has "
                    f"{', '.join(names) or 'no settings'}.{hint(key, names)}"
                )
        if local is None:
            return _checked(choice, settings)
        plain = {key: value for key, value in settings.items() if key not in inner}
        inside = {key: value for key, value in settings.items() if key in inner}
        return _checked(choice, plain | {"local": _checked(local, inside)})


def _checked(choice: type[Any], settings: dict[str, Any]) -> Any:
    kinds = _kinds_of(cast(Hashable, choice))
    settings = {key: read_value(key, value, kinds[key]) for key, value in settings.items()}
    try:
        built = _adapter(cast(Hashable, choice)).validate_python(settings)
    except ValidationError as error:
        hints = _hints(cast(Hashable, choice))
        infos = {key: FieldInfo.from_annotation(hints[key]) for key in kinds}
        raise ConfigError(
            explain(error, lambda place: named_setting(place, infos), lambda *_: "")
        ) from None
    for key, value in vars(built).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{key} is {value}: give a finite number.")
    return built


def named_setting(
    place: tuple[Any, ...], infos: Mapping[str, FieldInfo]
) -> tuple[str, FieldInfo] | None:
    """Name and field of the setting at a location in pydantic's errors, see ``explain``."""
    return (place[0], infos[place[0]]) if place and place[0] in infos else None


class _Tables(Section):
    """The tables that belong to no choice."""

    given: GivenSection = GivenSection()
    data: DataSection = DataSection()
    network: NetworkSection = NetworkSection()
    training: TrainingSection = TrainingSection()
    sessions: SessionsSection = SessionsSection()
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()
    task: tuple[dict[str, Any], ...] = ()


_CHOICES: dict[str, Any] = dict.fromkeys(CHOSEN, (dict[str, Any] | None, None))
TypedTables = create_model("TypedTables", __base__=_Tables, **_CHOICES)
"""All settings, by table.

Choices are tables with a ``name`` and the settings of the named choice; None if the run has no
such choice. ``task`` has one table per task. ``given`` marks the Python objects that replace
settings and must be given to the run.
"""
ORDER = (*CHOSEN, "given", *SECTIONS, "task")
"""Names of all tables, in the order in which they are written."""


def read_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The typed tables of all sections and choices, from those given.

    Raises:
        ConfigError: an unknown key, or a wrong value.
    """
    named = named_tables(tables)
    try:
        return dict(TypedTables(**named))
    except ValidationError as error:
        raise ConfigError(explain(error, _setting, partial(unknown_setting, named))) from None


def typed(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of some settings of a section, read and checked as those of a file.

    Raises:
        ConfigError: a wrong value.
    """
    check_text(values)
    try:
        read = SECTIONS[section](**values)
    except ValidationError as error:
        unknown = partial(unknown_setting, {section: values})
        raise ConfigError(
            explain(error, lambda place: _setting((section, *place)), unknown)
        ) from None
    return {key: getattr(read, key) for key in values}


def _setting(place: tuple[Any, ...]) -> tuple[str, FieldInfo] | None:
    """Name and field of the setting at a location in the tables, see ``explain``."""
    section = SECTIONS.get(place[0]) if place else None
    setting = None if section is None else named_setting(place[1:], section.model_fields)
    return setting and (f"{place[0]}.{setting[0]}", setting[1])


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
            'configuration, e.g. config.model_copy(update={"algorithm": {...}}), or give them to '
            "Config.from_flags."
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[ChoiceTable], tuple[dict[str, Any]]]:
        """A copy with the same settings, for pickles and copies."""
        return ChoiceTable, (dict(self),)
