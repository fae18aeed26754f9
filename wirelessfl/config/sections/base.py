"""The base of all sections of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, model_validator

from wirelessfl.errors import ConfigError


class Section(BaseModel):
    """A table of settings: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_yes_or_no(cls, given: Any) -> Any:
        for key, value in given.items() if isinstance(given, Mapping) else ():
            if key in cls.model_fields:
                refuse_bool(key, value, cls.model_fields[key].annotation)
        return given

    def filled(self, **values: Any) -> Self:
        """A copy with values that the user did not give: they are not in ``model_fields_set``.

        None is no value: it stands for the default.
        """
        given = {
            name
            for name in self.model_fields_set
            if name not in values or getattr(self, name) is not None
        }
        return cast(Self, type(self).model_construct(given, **{**dict(self), **values}))


def refuse_bool(key: str, value: Any, annotation: Any) -> None:
    """Refuse True for a number, though Python counts it as 1."""
    if isinstance(value, bool) and "bool" not in str(annotation):
        raise ConfigError(f"{key} is {value}: it does not accept true/false.")
