"""Settings of sessions: which go together, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wirelessfl.algorithms import Algorithm
from wirelessfl.errors import ConfigError

if TYPE_CHECKING:
    from wirelessfl.config import Config

OF_PRESENCE = {
    "labels": ("overlap", "shared_labels", "unseen_labels"),
    "arrivals": ("arrival_rate", "mean_stay", "initially_present"),
    "trace": ("trace",),
}
"""Settings that one kind of presence has, and the others have not."""


def check_sessions(config: Config, algorithm: Algorithm) -> None:
    """Refuse settings of sessions that change nothing, or do not go together.

    Raises:
        ConfigError: there are such; the message names the setting.
    """
    own = config.sessions
    name = config.algorithm["name"]
    changed = [
        key
        for key, info in type(own).model_fields.items()
        if key != "sessions" and getattr(own, key) != info.default
    ]
    _check_schedule(config, algorithm)
    if own.sessions is None:
        if config.warm_start is not None:
            raise ConfigError(
                f"warm_start is {config.warm_start['name']!r}, and there are no sessions. Give "
                "sessions, how many there are, or leave it out."
            )
        if config.evaluation.eval_first:
            raise ConfigError(
                f"eval_first is {config.evaluation.eval_first}, and there are no sessions. Give "
                "sessions, how many there are, or leave it out."
            )
        if changed:
            key = changed[0]
            raise ConfigError(
                f"{key} is {getattr(own, key)!r}, and there are no sessions. Give sessions, how "
                "many there are, or leave it out."
            )
        return
    if not algorithm.timing.rounds:
        raise ConfigError(
            f'sessions is {own.sessions}, and algorithm "{name}" has a time of its own. Choose an '
            'algorithm with synchronous rounds, such as "fedavg" or "hist".'
        )
    for presence, keys in OF_PRESENCE.items():
        for key in keys:
            if presence != own.presence and key in changed:
                raise ConfigError(
                    f"{key} is {getattr(own, key)}, which is for presence {presence!r}, and "
                    f"presence is {own.presence!r}. Leave one out."
                )
    if own.presence == "labels":
        if "presence_unit" in changed:
            raise ConfigError(
                f"presence_unit is {own.presence_unit!r}, and presence is 'labels': its sessions "
                "change after --rounds rounds. Leave it out, or choose arrivals or trace."
            )
        _check_label_sessions(config)
        if config.data.split == "natural":
            raise ConfigError(
                "split is 'natural', and presence is 'labels', which deals out samples by their "
                "labels. Choose another split, or presence arrivals or trace."
            )
        return
    needed = {"arrivals": ("arrival_rate", "mean_stay"), "trace": ("trace",)}[own.presence]
    for key in needed:
        if getattr(own, key) is None:
            raise ConfigError(f"presence is {own.presence!r}, which needs {key}: give it.")
    most = own.initially_present
    if most is not None and config.clients_known and most > config.network.clients:
        raise ConfigError(
            f"initially_present is {most}, and there are {config.network.clients} clients: lower "
            "it."
        )


def _check_label_sessions(config: Config) -> None:
    """Refuse groups of clients that would not come, or do not differ.

    Raises:
        ConfigError: there are such; the message names the setting.
    """
    own, least = config.sessions, 3 if config.sessions.unseen_labels else 2
    assert own.sessions is not None
    if own.sessions < least:
        third = f", unseen_labels is {own.unseen_labels}" if least == 3 else ""
        raise ConfigError(
            f"sessions is {own.sessions}{third}, and presence is 'labels', whose {least} groups of "
            f"clients come one after the other. Have at least {least} sessions, or choose arrivals "
            "or trace."
        )
    if own.shared_labels == "both" and own.overlap == 0:
        raise ConfigError(
            "shared_labels is 'both', and overlap is 0: no label is shared. Leave it out, or give "
            "an overlap."
        )


def check_pilot(sessions: int | None, warm_start: Mapping[str, Any]) -> None:
    """Refuse pilot sessions behind which no session is left.

    Args:
        sessions: S.
        warm_start: its table, with every default filled in.

    Raises:
        ConfigError: there is none left.
    """
    pilot = warm_start.get("pilot_sessions")
    if sessions is not None and isinstance(pilot, int) and pilot >= sessions:
        raise ConfigError(
            f"pilot_sessions is {pilot}, and there are {sessions} sessions: none would be left to "
            "begin with their past. Lower it."
        )


def _check_schedule(config: Config, algorithm: Algorithm) -> None:
    """Refuse settings of step sizes that change nothing.

    Raises:
        ConfigError: there are such.
    """
    training, fields = config.training, type(config.training).model_fields
    if training.lr_schedule == "constant":
        for key in ("lr_ratio", "lr_power"):
            if getattr(training, key) != fields[key].default:
                raise ConfigError(
                    f"{key} is {getattr(training, key)}, and lr_schedule is 'constant'. Choose "
                    "lr_schedule poly, or leave it out."
                )
    elif not algorithm.timing.rounds:
        raise ConfigError(
            f"lr_schedule is {training.lr_schedule!r}, and algorithm "
            f'"{config.algorithm["name"]}" has a time of its own. Choose lr_schedule constant.'
        )
