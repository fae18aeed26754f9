"""Base class of the sections of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, model_validator

from wirelessfl.errors import ConfigError


class Section(BaseModel):
    """An immutable table of settings; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_bools(cls, given: Any) -> Any:
        for key, value in given.items() if isinstance(given, Mapping) else ():
            if key in cls.model_fields:
                refuse_bool(key, value, cls.model_fields[key].annotation)
        return given

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


def refuse_bool(key: str, value: Any, annotation: Any) -> None:
    """Refuse booleans for numbers, alone or in lists: Python would accept True as 1."""
    if "bool" in str(annotation):
        return
    for each in value if isinstance(value, list | tuple) else [value]:
        if isinstance(each, bool):
            raise ConfigError(f"{key} is {value}: it does not accept true/false.")
