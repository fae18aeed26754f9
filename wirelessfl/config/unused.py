"""Settings without effect, found by what they need: refused if given, and not stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from wirelessfl.config.choices import CHOSEN, KINDS
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.settings import Place, Settings
from wirelessfl.errors import ConfigError
from wirelessfl.needs import Fits, Needs, needs_of
from wirelessfl.registry import Choice
from wirelessfl.wording import shown


def unused(settings: Settings) -> dict[Place, str]:
    """The reason for each setting without effect, given or not, by table and key."""
    found: dict[Place, str] = {}
    for table in (*SECTIONS, *CHOSEN):
        for key, reason in _unused(settings, table):
            found.setdefault((table, key), reason)
    return found


def _unused(settings: Settings, name: str) -> Iterator[tuple[str, str]]:
    """The settings of a table without effect, with reasons; the first one of a setting counts."""
    run, table = settings.frame, settings.table(name)
    own = settings.choice(name) if name in CHOSEN else table
    if isinstance(table, Mapping):
        reason = run.why_not(name)
        for need in of_kind(name, Needs):
            reason = reason or need.why_not(run, table)
        if reason is not None:
            yield from ((key, reason) for key in table)
    for part in _parts(own):
        cls: Any = type(part)
        for key, needs in needs_of(cls).items():
            reasons = (need.why_not(run, part) for need in needs)
            yield from ((key, why) for why in reasons if why is not None)
        if isinstance(part, Choice):
            yield from part.unused().items()


def _parts(own: Any) -> tuple[Any, ...]:
    """The objects whose fields are the settings of a section or choice."""
    if isinstance(own, Choice):
        return own.setting_owners
    return () if own is None else (own,)


def of_kind(name: str, condition: type[Needs]) -> tuple[Needs, ...]:
    """The conditions of all settings of a kind of choices: ``Needs``, or ``Fits``."""
    kind = KINDS.get(name)
    return () if kind is None else tuple(need for need in kind.table if type(need) is condition)


def check_values(settings: Settings) -> None:
    """Raise if a value does not fit the run.

    Raises:
        ConfigError: it does not; the message names the setting and what it conflicts with.
    """
    run = settings.frame
    for name in (*SECTIONS, *CHOSEN):
        table = settings.table(name)
        own = settings.choice(name) if name in CHOSEN else table
        found = [("name", table, of_kind(name, Fits))]
        for part in _parts(own):
            cls: Any = type(part)
            found += [(key, part, needs) for key, needs in needs_of(cls, Fits).items()]
        for key, owner, needs in found if own is not None else ():
            for need in needs:
                if (reason := need.why_not(run, owner)) is not None:
                    raise ConfigError(f"{_stated(settings, (name, key))} {reason}.")


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
