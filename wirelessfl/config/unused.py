"""Settings without effect, found by what they need: refused if given, and not stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from wirelessfl.config.choices import CHOSEN, KINDS
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.settings import Place, Settings
from wirelessfl.errors import ConfigError
from wirelessfl.needs import Asked, Fits, Needs, Suits, needs_of, unmet
from wirelessfl.registry import Choice
from wirelessfl.wording import shown


def unused(settings: Settings) -> dict[Place, str]:
    """The reason for each setting without effect, given or not, by table and key.

    The first of these counts: a need of the whole table, a need of the field, what the choice says.
    """
    parts, run = _parts(settings), settings.frame
    whole = unmet([*_of_kinds(settings, Needs)], run)
    found = {(name, key): why for (name, _), why in whole.items() for key in settings.tables[name]}
    found = unmet([*_of_fields(parts, Needs)], run) | found
    said = [(name, part.unused()) for name, part in parts if isinstance(part, Choice)]
    found = {(name, key): why for name, whys in said for key, why in whys.items()} | found
    order = {name: place for place, name in enumerate((*SECTIONS, *CHOSEN))}
    return dict(sorted(found.items(), key=lambda entry: order[entry[0][0]]))


def _parts(settings: Settings) -> list[tuple[str, Any]]:
    """The objects whose fields are the settings of sections and choices, with their tables."""
    sections = [(name, getattr(settings, name)) for name in SECTIONS]
    choices = [(name, getattr(settings, name)) for name in CHOSEN]
    owners = [(name, choice.setting_owners) for name, choice in choices if choice is not None]
    return [*sections, *((name, part) for name, parts in owners for part in parts)]


def _of_kinds(settings: Settings, condition: type[Needs]) -> Iterator[Asked]:
    """The conditions of whole tables of choices: ``Needs``, ``Fits`` or ``Suits``."""
    for name in KINDS:
        if name in settings.tables:
            kind, table = KINDS[name], settings.tables[name]
            needs = (*kind.needs, *kind.table) if condition is Needs else kind.table
            yield (name, "name"), tuple(n for n in needs if type(n) is condition), table


def _of_fields(parts: Iterable[tuple[str, Any]], condition: type[Needs]) -> Iterator[Asked]:
    """The conditions of the fields of sections and choices: ``Needs``, ``Fits`` or ``Suits``."""
    wanted: Any = condition
    for name, part in parts:
        cls: Any = type(part)
        for key, needs in needs_of(cls, wanted).items():
            yield (name, key), needs, part


def check_values(settings: Settings) -> None:
    """Raise if a value does not fit the run, or values do not suit each other.

    Raises:
        ConfigError: they do not; the message names the settings that conflict.
    """
    parts, run = _parts(settings), settings.frame
    for place, why in unmet([*_of_kinds(settings, Fits), *_of_fields(parts, Fits)], run).items():
        raise ConfigError(f"{_stated(settings, place)} {why}.")
    for why in unmet([*_of_kinds(settings, Suits), *_of_fields(parts, Suits)], run).values():
        raise ConfigError(f"{why}.")


def refusal(settings: Settings, place: Place, reason: str) -> str:
    """The error message for a setting without effect."""
    stated, leave = _stated(settings, place), ", or leave" if ": " in reason else ": leave"
    return f"{stated} {reason}{leave} {stated.partition('=')[0]} out."


def _stated(settings: Settings, place: Place) -> str:
    """A setting with its value, as in messages."""
    section, key = place
    table = settings.table(section)
    value = table[key] if isinstance(table, Mapping) else getattr(table, key)
    return f"{section if key == 'name' and section in KINDS else key}={shown(value)}"


def kept_tables(settings: Settings, dropped: Collection[Place]) -> dict[str, Any]:
    """The tables of all settings that are not in ``dropped``."""
    tables: dict[str, Any] = {}
    for section, values in settings.all_tables().items():
        if isinstance(values, BaseModel):
            values = values.model_dump()
        if isinstance(values, Mapping):
            kept = {key: v for key, v in values.items() if (section, key) not in dropped}
            if section not in KINDS or kept:
                tables[section] = kept
        elif values is not None:
            tables[section] = values
    return tables
