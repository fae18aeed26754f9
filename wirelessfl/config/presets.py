"""Defaults of schedule and assignment that the names of published methods imply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
"""Presets by algorithm. All other algorithms use synchronous rounds of one model."""


def preset_of(algorithm: str) -> Preset:
    """The defaults that an algorithm's name implies."""
    return PRESETS.get(algorithm, Preset())
