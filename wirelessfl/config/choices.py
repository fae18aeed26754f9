"""The objects that tables of settings name: algorithm, uplink and warm start."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from wirelessfl.algorithms import Algorithm
from wirelessfl.config.sections import refuse_bool
from wirelessfl.config.tables import class_of, hint, title_of
from wirelessfl.errors import ConfigError
from wirelessfl.uplinks import Uplink, find_uplink
from wirelessfl.warm_starts import WarmStart, find_warm_start
from wirelessfl.wording import explain


@dataclass(frozen=True)
class Choices:
    """What the tables of a configuration name, with its settings.

    Args:
        algorithm: client and server rule.
        uplink: how updates cross the air.
        warm_start: what a session begins with; None without sessions.
    """

    algorithm: Algorithm
    uplink: Uplink
    warm_start: WarmStart | None = None

    @classmethod
    def of(
        cls,
        algorithm: Mapping[str, Any],
        uplink: Mapping[str, Any],
        warm_start: Mapping[str, Any] | None,
    ) -> Choices:
        """From tables with a ``name``.

        Raises:
            ConfigError: a name or a setting is unknown, or a value is wrong.
        """
        started = None
        if warm_start is not None:
            started = _built(find_warm_start(warm_start["name"]), warm_start)
        return cls(
            algorithm=_built(class_of(algorithm), algorithm),
            uplink=_built(find_uplink(uplink["name"]), uplink),
            warm_start=started,
        )


@lru_cache(maxsize=256)
def _adapter(choice: Hashable) -> TypeAdapter[Any]:
    """What checks the values of a choice's table; making one takes milliseconds."""
    adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, choice))
    return adapter


def _built(choice: type[Any], table: Mapping[str, Any]) -> Any:
    """The object that a table describes, every value checked."""
    settings = {key: value for key, value in table.items() if key != "name"}
    known = [entry.name for entry in fields(choice)]
    hints = get_type_hints(choice, include_extras=True)
    for key in settings:
        if key not in known:
            raise ConfigError(
                f"unknown setting {key!r} of {title_of(table)}.{hint(key, known)} "
                f"It has {', '.join(known) or 'none'}."
            )
        refuse_bool(key, settings[key], hints[key])
    infos = {key: FieldInfo.from_annotation(hints[key]) for key in known}
    try:
        built = _adapter(cast(Hashable, choice)).validate_python(settings)
    except ValidationError as error:
        raise ConfigError(
            explain(error, lambda place: named_setting(place, infos), lambda *_: "")
        ) from None
    for key, value in vars(built).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{key} is {value}: a finite number is needed.")
    return built


def named_setting(
    place: tuple[Any, ...], infos: Mapping[str, FieldInfo]
) -> tuple[str, FieldInfo] | None:
    """The setting at a place of pydantic's findings, see ``explain``."""
    return (place[0], infos[place[0]]) if place and place[0] in infos else None
