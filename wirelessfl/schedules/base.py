"""Events and decisions: a schedule turns one into the other, and knows no gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Started:
    """The run begins, or goes on from a checkpoint."""


@dataclass(frozen=True)
class Arrived:
    """All that was given out as ``work`` has come back."""

    work: int


Event = Started | Arrived


@dataclass(frozen=True)
class Give:
    """Give out work number ``work``: nodes and their clients train from the present model."""

    work: int


@dataclass(frozen=True)
class Merge:
    """Merge the results of ``work`` into the cloud's model."""

    work: int


@dataclass(frozen=True)
class Report:
    """Evaluate the model and write a row, as round ``round``."""

    round: int


@dataclass(frozen=True)
class Save:
    """Nothing is under way: the state may be saved here."""


@dataclass(frozen=True)
class Stop:
    """The run is over."""


Decision = Give | Merge | Report | Save | Stop


class Schedule(Protocol):
    """WHEN things happen. State of its own is covered by ``snapshot`` and ``restore``."""

    def decide(self, event: Event) -> list[Decision]:
        """What follows from ``event``; depends on the schedule's state and the event alone."""

    def snapshot(self) -> dict[str, int]:
        """The state as plain numbers."""

    def restore(self, state: dict[str, int]) -> None:
        """Go on from a snapshot; the next event is ``Started``."""
