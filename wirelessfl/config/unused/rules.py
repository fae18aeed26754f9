"""Finds settings without effect: those of unused choices, and those that others replace.

Such a setting is refused if given, even with its default value, and is not stored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from wirelessfl.config.kinds import KINDS
from wirelessfl.config.settings import Settings
from wirelessfl.config.unused.choices import (
    algorithm_settings,
    choice_fields,
    data_settings,
    missing_choices,
)
from wirelessfl.config.unused.place import Place
from wirelessfl.config.unused.radio import cell_settings, gain_settings, link_settings
from wirelessfl.config.unused.replaced import replaced_settings
from wirelessfl.config.unused.rounds import (
    cutoff_settings,
    patience_settings,
    selection_settings,
    step_settings,
    target_settings,
)
from wirelessfl.config.unused.schedules import request_settings, schedule_settings, session_settings
from wirelessfl.wording import shown

RULES = (
    replaced_settings,
    schedule_settings,  # first: naming "sessions" explains more than naming its choices
    missing_choices,
    choice_fields,
    cell_settings,
    link_settings,
    gain_settings,
    request_settings,
    session_settings,
    selection_settings,
    step_settings,
    cutoff_settings,
    target_settings,
    patience_settings,
    algorithm_settings,
    data_settings,
)


def unused(settings: Settings) -> dict[Place, str]:
    """The reason for each setting without effect, given or not, by table and key."""
    found: dict[Place, str] = {}
    for rule in RULES:
        for place, reason in rule(settings):
            found.setdefault(place, reason)
    return found


def refusal(settings: Settings, place: Place, reason: str) -> str:
    """The error message for a setting without effect."""
    section, key = place
    table = getattr(settings, section)
    value = table[key] if isinstance(table, Mapping) else getattr(table, key)
    name = section if key == "name" and section in KINDS else key
    leave = ", or leave" if ": " in reason else ": leave"
    return f"{name}={shown(value)} {reason}{leave} {name} out."


def kept_tables(settings: Settings, dropped: Collection[Place]) -> dict[str, Any]:
    """The tables of all settings that are not in ``dropped``."""
    tables: dict[str, Any] = {}
    for section, values in settings.model_dump().items():
        if isinstance(values, Mapping):
            kept = {key: v for key, v in values.items() if (section, key) not in dropped}
            if section not in KINDS or kept:
                tables[section] = kept
        elif values is not None:
            tables[section] = values
    return tables
