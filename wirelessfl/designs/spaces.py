"""Numbers among which a design chooses, and the configurations that it compares and returns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.designs.pilot_plan import VALIDATION

LOCAL_STEPS = (2, 3, 5, 7, 10, 14, 20, 28, 40)
EDGE_ROUNDS = (1, 2, 3, 4, 5, 7, 10)


@dataclass(frozen=True)
class Space:
    """Numbers to choose from, in increasing order.

    Args:
        local_steps: H.
        edge_rounds: E.
        clients: S, clients per round; None stands for all clients.
    """

    local_steps: tuple[int, ...]
    edge_rounds: tuple[int, ...]
    clients: tuple[int | None, ...]

    @classmethod
    def of(
        cls,
        config: Config,
        local_steps: Any,
        edge_rounds: Any,
        clients: Any,
        number: int,
    ) -> Space:
        """The space of these arguments of ``wirelessfl.design``."""
        edges = config.training.edge_rounds or 1
        default: dict[str, set[int]] = {
            "local_steps": {*LOCAL_STEPS, config.training.local_steps},
            "edge_rounds": {*EDGE_ROUNDS, edges},
        }
        steps = (
            default["local_steps"] if local_steps is None else numbers("local_steps", local_steps)
        )
        rounds = (
            default["edge_rounds"] if edge_rounds is None else numbers("edge_rounds", edge_rounds)
        )
        choices: tuple[int | None, ...] = (config.training.clients_per_round,)
        if clients is not None:
            several = sorted(numbers("clients_per_round", clients))
            most = several[-1]
            if most > number:
                raise ConfigError(
                    f"clients_per_round contains {most}: the network has {number} clients."
                )
            choices = tuple(None if count == number else count for count in several)
        return cls(tuple(sorted(steps)), tuple(sorted(rounds)), choices)


def numbers(name: str, values: Any) -> set[int]:
    """Given integers >= 1, one or several."""
    listed = values if isinstance(values, Sequence | np.ndarray) and len(values) else [values]
    if isinstance(values, str) or not all(_whole(number) and number >= 1 for number in listed):
        raise ConfigError(f"{name} is {shown(values)}: give integers >= 1, e.g. 5,10,20.")
    return {int(number) for number in listed}


def _whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


DESIGNED = (
    *("mask_sizes", "mask_shares", "target", "stop_at_target", "patience", "min_delta"),
    *("max_seconds", "client_joules", "battery_joules", "availability_trace", "out", "predicted"),
)
"""Settings that a design chooses, and those of one run."""


def base_config(config: Config) -> Config:
    """The settings that all designs share: with validation data, without what is designed."""
    if not config.regime.common_rounds or config.task:
        if config.regime.in_sessions:
            raise ConfigError(
                "sessions conflict with design, which describes one run of common rounds: leave "
                "sessions out."
            )
        raise ConfigError(
            f"schedule {config.named('schedule')!r} with algorithm {config.named('algorithm')!r} "
            "has no common rounds of H local steps and E edge rounds to design: choose schedule "
            '"rounds" without tasks, or compare buffers by wirelessfl sweep --buffer.'
        )
    if config.training.local_epochs is not None:
        raise ConfigError(
            f"local_epochs={config.training.local_epochs:g} conflicts with design, which chooses "
            "the number of local steps: leave it out."
        )
    if config.evaluation.monitor not in (None, "accuracy", "validation_accuracy"):
        raise ConfigError(
            f"monitor={config.evaluation.monitor!r} conflicts with design, whose targets are "
            "validation accuracies: leave it out."
        )
    held = config.data.validation_fraction
    if not held and ("data", "validation_fraction") in config.places:
        raise ConfigError(
            "validation_fraction is 0: designs are fitted to validation accuracies, never to "
            f"test data. Give a fraction above 0, or leave it out for {VALIDATION:g}."
        )
    flags: dict[str, Any] = {**dict.fromkeys(DESIGNED), "validation_fraction": held or VALIDATION}
    return config.changed(on_idle="drop", uplink={"name": "tdma"}, **flags)


def with_algorithm(config: Config, entry: str) -> Config:
    """The settings with another algorithm, which keeps those that it shares with the given one.

    Args:
        config: the settings.
        entry: name of the algorithm, and settings of the alternative:
            ``fedavg+uplink_compression=sign``.

    Raises:
        ConfigError: the alternative is not valid, or has no rounds to design.
    """
    name, *words = re.split(r"\+(?=[^\d+])", entry)  # not that of 1e+3
    flags: dict[str, Any] = {}
    for word in words:
        key, equals, value = (part.strip() for part in word.partition("="))
        key = key.replace("-", "_")
        if not equals or not key or not value or key in flags:
            raise ConfigError(
                f"among contains {entry!r}, where {word!r} is not a setting with a value, or "
                "given twice: give ALGORITHM+setting=value, e.g. fedavg+uplink_compression=sign."
            )
        flags[key] = value
    named = _of_algorithm(config, name)
    return named.changed(**flags) if flags else named


def _of_algorithm(config: Config, name: str) -> Config:
    settings = config.tables["algorithm"]
    if name == settings["name"]:
        return config
    changed = config.changed(algorithm=name, local=settings.get("local"), on_idle="drop")
    shared = {
        flag: settings[key]
        for flag, (table, key) in changed.homes.items()
        if table == "algorithm" and key in settings and key != "name"
    }
    changed = changed.changed(on_idle="drop", **shared)
    if changed.regime != config.regime:
        raise ConfigError(
            f"among contains {name!r}, which with schedule {config.named('schedule')!r} has no "
            "rounds of H local steps and E edge rounds to design: leave it out."
        )
    return changed


def names_of(among: Any, config: Config) -> list[str]:
    """The algorithms to compare; None for that of the settings."""
    configured = str(config.named("algorithm"))
    names = [configured] if among is None else among
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
        raise ConfigError(f"among is {shown(among)}: give names of algorithms, e.g. hfedavg,hist.")
    if not listed:
        raise ConfigError("among is empty: give names of algorithms, e.g. hfedavg,hist.")
    return list(dict.fromkeys(listed))
