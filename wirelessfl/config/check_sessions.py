"""Checks of the settings of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError


def check_sessions(settings: Settings) -> None:
    """Refuse an availability model that does not fit the sessions or the split.

    Raises:
        ConfigError: it does not; the message names the setting.
    """
    presence, sessions = settings.choices.presence, settings.sessions.sessions
    if presence is None or sessions is None:
        return
    presence.check(sessions, settings.network.clients if settings.clients_known else None)
    if presence.by_labels and settings.choices.split.by_groups:
        raise ConfigError(
            f"split={settings.split['name']} conflicts with presence={presence.name}, which deals "
            "out samples by their labels: choose another split, or presence arrivals or trace."
        )


def check_pilot(sessions: int | None, warm_start: Mapping[str, Any]) -> None:
    """Refuse pilot sessions after which no session is left.

    Args:
        sessions: S.
        warm_start: its table, with every default filled in.

    Raises:
        ConfigError: no session is left.
    """
    pilot = warm_start.get("pilot_sessions")
    if sessions is not None and isinstance(pilot, int) and pilot >= sessions:
        raise ConfigError(
            f"pilot_sessions is {pilot}, and there are {sessions} sessions: none would be left to "
            "start from them. Lower it."
        )
