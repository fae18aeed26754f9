"""What the names of published methods stand for beside their rule: a schedule, an assignment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Preset:
    """Defaults that go with the name of an algorithm; settings replace any of them.

    Args:
        schedule: its name.
        settings: of this schedule, where they differ from its defaults.
        assignment: name of the rule, under a schedule with rounds of several tasks.
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
"""By algorithm. All others have synchronous rounds of one model."""


def preset_of(algorithm: str) -> Preset:
    """What goes with the name of an algorithm."""
    return PRESETS.get(algorithm, Preset())
