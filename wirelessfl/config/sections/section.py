"""Base class of the sections of a configuration."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, model_validator

from wirelessfl.errors import ConfigError
from wirelessfl.import_paths import expanded

if TYPE_CHECKING:  # the metaclass has no public name
    from pydantic._internal._model_construction import ModelMetaclass as _Metaclass
else:
    _Metaclass = type(BaseModel)

WHOLE = re.compile(r"[+-]?\d+(\.\d+)?[eE]\+?\d{1,2}")
"""A number in scientific notation."""
LARGE = re.compile(r"[+-]?0*[1-9]\d{19,}")
LARGEST = 2**63 - 1
"""Largest whole number that TOML holds; ``LARGE`` matches longer ones."""


class _Listed(_Metaclass):
    """Leaves the methods of pydantic out of ``help`` and of completions of the class."""

    def __dir__(cls) -> list[str]:
        names = (name for name in super().__dir__() if not name.startswith("__"))
        return [name for name in names if name not in _OF_PYDANTIC]


_OF_PYDANTIC = frozenset(dir(BaseModel))


class Section(BaseModel, metaclass=_Listed):
    """An immutable table of settings; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        read, kinds = dict(given), _kinds_of(cls)
        for key, value in given.items():
            if key in kinds:
                read[key] = read_value(key, value, kinds[key])
        return read

    def filled(self, **values: Any) -> Self:
        """A copy with derived values, which do not count as given in ``model_fields_set``.

        A replaced value still counts as given unless it was None, which means the default.
        """
        given = {
            name
            for name in self.model_fields_set
            if name not in values or getattr(self, name) is not None
        }
        return cast(Self, type(self).model_construct(given, **{**dict(self), **values}))


@cache  # thousands of configurations are read in a sweep
def _kinds_of(section: type[Section]) -> Mapping[str, frozenset[Any]]:
    """The types of each field, by name."""
    return {name: types_in(field.annotation) for name, field in section.model_fields.items()}


def read_value(key: str, value: Any, kinds: Collection[Any]) -> Any:
    """Read a whole number that is written as 1e3 and a path, and refuse booleans for numbers.

    Python would accept True as 1. Other values are returned unchanged; entries of lists count.

    Args:
        key: name of the setting.
        value: its value.
        kinds: the types that it accepts, see ``types_in``.

    Raises:
        ConfigError: the value is, or contains, a boolean, and the setting accepts none; or a whole
            number that TOML cannot hold.
    """
    if Path in kinds:
        return expanded(value) if isinstance(value, str | Path) else value
    if bool not in kinds:
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, bool):
                raise ConfigError(f"{key} is {value}: it does not accept true/false.")
    if int not in kinds:
        return value
    several = isinstance(value, list | tuple)
    read = [each if str in kinds else _whole(each) for each in (value if several else [value])]
    for each in read:
        long = isinstance(each, str) and LARGE.fullmatch(each.strip())
        number = isinstance(each, int if float in kinds else int | float)
        if long or (number and abs(each) > LARGEST):
            raise ConfigError(f"{key} is beyond 2**63 - 1, the largest whole number: give less.")
    return type(value)(read) if several else read[0]


def _whole(value: Any) -> Any:
    """The integer that a string such as "1e3" stands for; other values unchanged."""
    if isinstance(value, str) and WHOLE.fullmatch(value.strip()):
        number = Decimal(value.strip())
        if number == number.to_integral_value():
            return int(number)
    return value


def types_in(annotation: Any) -> frozenset[Any]:
    """All types in an annotation, e.g. int and NoneType in ``int | None``."""
    if get_origin(annotation) is Annotated:
        return types_in(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return frozenset()
    inner = frozenset(kind for entry in get_args(annotation) for kind in types_in(entry))
    return inner | {annotation} if isinstance(annotation, type) else inner
