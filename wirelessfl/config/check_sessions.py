"""Checks of settings of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError


def check_sessions(settings: Settings) -> None:
    """Raise if the availability model conflicts with the sessions or the split.

    Raises:
        ConfigError: they conflict; the message names the setting.
    """
    presence, sessions = settings.choices.presence, settings.sessions.sessions
    if presence is None or sessions is None:
        return
    presence.check(sessions, settings.network.clients if settings.clients_known else None)
    if presence.by_labels and settings.choices.split.by_groups:
        raise ConfigError(
            f"split={settings.split['name']} conflicts with presence={presence.title}, which deals "
            "out samples by their labels: choose another split, or presence arrivals or trace."
        )


def check_pilot(sessions: int | None, warm_start: Mapping[str, Any]) -> None:
    """Raise unless at least one session follows the pilot sessions.

    Args:
        sessions: S; None without sessions.
        warm_start: table of the warm start, with every default filled in.

    Raises:
        ConfigError: every session is a pilot session.
    """
    pilot = warm_start.get("pilot_sessions")
    if sessions is not None and isinstance(pilot, int) and pilot >= sessions:
        raise ConfigError(
            f"pilot_sessions={pilot} conflicts with sessions={sessions}: no session would start "
            "from a pilot model. Lower pilot_sessions."
        )
