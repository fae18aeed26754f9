"""Checks of the settings of sessions, and of step sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError

OF_PRESENCE = {
    "labels": ("overlap", "shared_labels", "unseen_labels"),
    "arrivals": ("arrival_rate", "mean_stay", "initially_present"),
    "trace": ("trace",),
}
"""Settings that one kind of presence has, and the others have not."""


def check_sessions(settings: Settings) -> None:
    """Refuse settings of sessions that change nothing, or do not go together.

    Raises:
        ConfigError: there are such; the message names the setting.
    """
    sessions = settings.sessions
    changed = [
        key
        for key, info in type(sessions).model_fields.items()
        if key != "sessions" and getattr(sessions, key) != info.default
    ]
    if sessions.sessions is None:
        if settings.warm_start is not None:
            raise ConfigError(
                f"warm_start is {settings.warm_start['name']!r}, and there are no sessions. Give "
                "sessions, how many there are, or leave it out."
            )
        if settings.evaluation.eval_first:
            raise ConfigError(
                f"eval_first is {settings.evaluation.eval_first}, and there are no sessions. Give "
                "sessions, how many there are, or leave it out."
            )
        if changed:
            key = changed[0]
            raise ConfigError(
                f"{key} is {getattr(sessions, key)!r}, and there are no sessions. Give sessions, "
                "how many there are, or leave it out."
            )
        return
    for presence, keys in OF_PRESENCE.items():
        for key in keys:
            if presence != sessions.presence and key in changed:
                raise ConfigError(
                    f"{key} is {getattr(sessions, key)}, which is for presence {presence!r}, and "
                    f"presence is {sessions.presence!r}. Leave one out."
                )
    if sessions.presence == "labels":
        if "presence_unit" in changed:
            raise ConfigError(
                f"presence_unit is {sessions.presence_unit!r}, and presence is 'labels': its "
                "sessions change after --rounds rounds. Leave it out, or choose arrivals or trace."
            )
        _check_label_sessions(settings)
        if settings.data.split == "natural":
            raise ConfigError(
                "split is 'natural', and presence is 'labels', which deals out samples by their "
                "labels. Choose another split, or presence arrivals or trace."
            )
        return
    needed = {"arrivals": ("arrival_rate", "mean_stay"), "trace": ("trace",)}[sessions.presence]
    for key in needed:
        if getattr(sessions, key) is None:
            raise ConfigError(f"presence is {sessions.presence!r}, which needs {key}: give it.")
    present = sessions.initially_present
    if present is not None and settings.clients_known and present > settings.network.clients:
        raise ConfigError(
            f"initially_present is {present}, and there are {settings.network.clients} clients: "
            "lower it."
        )


def _check_label_sessions(settings: Settings) -> None:
    """Refuse groups of clients that would not come, or do not differ.

    Raises:
        ConfigError: there are such; the message names the setting.
    """
    sessions = settings.sessions
    groups = 3 if sessions.unseen_labels else 2
    assert sessions.sessions is not None
    if sessions.sessions < groups:
        third = f", unseen_labels is {sessions.unseen_labels}" if groups == 3 else ""
        raise ConfigError(
            f"sessions is {sessions.sessions}{third}, and presence is 'labels', whose {groups} "
            f"groups of clients come one after the other. Have at least {groups} sessions, or "
            "choose arrivals or trace."
        )
    if sessions.shared_labels == "both" and sessions.overlap == 0:
        raise ConfigError(
            "shared_labels is 'both', and overlap is 0: no label is shared. Leave it out, or give "
            "an overlap."
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
            "begin with their past. Lower it."
        )


def check_step_sizes(settings: Settings) -> None:
    """Refuse settings of step sizes that change nothing.

    Raises:
        ConfigError: there are such.
    """
    training, fields = settings.training, type(settings.training).model_fields
    if training.lr_schedule == "constant":
        for key in ("lr_ratio", "lr_power"):
            if getattr(training, key) != fields[key].default:
                raise ConfigError(
                    f"{key} is {getattr(training, key)}, and lr_schedule is 'constant'. Choose "
                    "lr_schedule poly, or leave it out."
                )
