"""Default schedule and assignment of published methods, by the name of their algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wirelessfl.errors import ConfigError


@dataclass(frozen=True)
class Preset:
    """Defaults that the name of an algorithm implies; settings override them.

    Args:
        schedule: name of the schedule.
        settings: settings of the schedule that differ from its defaults.
        assignment: name of the assignment rule, used in rounds of several tasks.
    """

    schedule: str = "rounds"
    settings: Mapping[str, Any] = field(default_factory=dict)
    assignment: str = "random"


PRESETS: Mapping[str, Preset] = {
    "fedast": Preset("buffered"),
    "fedast-nobuffer": Preset("buffered", {"buffer": 1, "fixed_buffer": True}),
    "fedasync": Preset("buffered", {"buffer": 1, "fixed_buffer": True}),
    "fedbuff": Preset("buffered", {"buffer": 10}),
    "sync-st": Preset("simultaneous", {"first": 30}),
    "sync-bayes-st": Preset("simultaneous", {"first": 30}, "bayes"),
    "sync-ucb-st": Preset("simultaneous", {"first": 30}, "bandit"),
}
"""Presets by algorithm; all other algorithms train one model in synchronous rounds by default."""


def preset_of(algorithm: str) -> Preset:
    """The defaults that the name of an algorithm implies."""
    return PRESETS.get(algorithm, Preset())


def check_local(table: Mapping[str, Any]) -> None:
    """Refuse an algorithm inside cells whose name implies another schedule than ``rounds``.

    Args:
        table: the table of the algorithm.

    Raises:
        ConfigError: the algorithm's name implies such a schedule.
    """
    local = table.get("local", "")
    if local in PRESETS:
        raise ConfigError(
            f'local is "{local}", which implies schedule "{PRESETS[local].schedule}", but the '
            f'cells of algorithm "{table["name"]}" have synchronous edge rounds. Choose a '
            "synchronous algorithm, such as fedavg."
        )
