"""Records of a run of several tasks, for a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """A client's work on a request; ``how`` it ended: done, lost, cancelled or under way."""

    task: int
    client: int
    begin: float
    end: float
    how: str


@dataclass(frozen=True)
class Merged:
    """A merge: of which task, when, with updates how stale."""

    task: int
    seconds: float
    staleness: tuple[int, ...]


@dataclass(frozen=True)
class Records:
    """Lists that grow during the run.

    Args:
        spans: finished work of clients, in the order of their ends.
        merges: of all tasks.
    """

    spans: list[Span] = field(default_factory=list)
    merges: list[Merged] = field(default_factory=list)
