"""Records of a run of several tasks, for the timeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """A client's work on a request; ``how`` is done, lost, cancelled or under way."""

    task: int
    client: int
    begin: float
    end: float
    how: str


@dataclass(frozen=True)
class Merged:
    """A merge: its task, its simulated time, and the staleness of its updates."""

    task: int
    seconds: float
    staleness: tuple[int, ...]


@dataclass(frozen=True)
class Records:
    """Lists that are filled during the run.

    Args:
        spans: finished work of clients, in order of completion.
        merges: merges of all tasks, in order.
    """

    spans: list[Span] = field(default_factory=list)
    merges: list[Merged] = field(default_factory=list)
