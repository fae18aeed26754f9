"""What happened in a run of several tasks, for a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """What a client did: ``how`` is done, lost, cancelled or under way."""

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
    """Lists that grow as the run goes on.

    Args:
        spans: pieces of clients' work that are over, in the order of their ends.
        merges: of all tasks.
    """

    spans: list[Span] = field(default_factory=list)
    merges: list[Merged] = field(default_factory=list)
