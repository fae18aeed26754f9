"""Clients present in sessions: one group per session, or clients that join and leave."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from channels.arrays import BoolArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import UnfitError, described, returns
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.sessions.processes import Change, Presence, present_clients

Unit = Literal["seconds", "rounds"]


@dataclass(frozen=True)
class PresenceChanged:
    """Clock entry: a client joins or leaves now."""


def _changes(value: Any, attendance: Attendance) -> list[Change]:
    if not isinstance(value, list) or not all(isinstance(change, Change) for change in value):
        raise UnfitError(described(value), "a list of Change, empty for none")
    return value


class Attendance(Protocol):
    """Tracks which clients are present."""

    @returns(present_clients)
    def open(self, session: int) -> BoolArray:
        """Open a session, and return the clients that are present, [clients] boolean."""

    def labels(self, session: int) -> Collection[int] | None:
        """The labels that the clients of a session can have; None for all."""

    def start(self) -> None:
        """Schedule the next change on the clock."""

    def round_started(self, number: int, seconds: float) -> None:
        """Note that round ``number`` starts now and takes ``seconds``."""

    @returns(_changes)
    def new_changes(self) -> list[Change]:
        """Return the changes up to now that were not returned before."""

    def snapshot(self) -> dict[str, Any]:
        """The state as plain numbers."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""


class GroupsInTurn:
    """Groups of clients, one per session; no client joins or leaves during a session.

    Args:
        groups: groups of clients by labels.
        sessions: S, number of sessions.
    """

    def __init__(self, groups: LabelGroups, sessions: int) -> None:
        self.groups, self.sessions = groups, sessions

    def open(self, session: int) -> BoolArray:
        """Return the group of this session, [clients] boolean."""
        return np.asarray(self.groups.group_of == self.groups.group_in(session, self.sessions))

    def labels(self, session: int) -> Collection[int]:
        """The labels of this session's group."""
        return self.groups.labels[self.groups.group_in(session, self.sessions)]

    def start(self) -> None:
        """Do nothing: there are no changes."""

    def round_started(self, number: int, seconds: float) -> None:
        """Do nothing: there are no changes."""

    def new_changes(self) -> list[Change]:
        """Return an empty list: there are no changes."""
        return []

    def snapshot(self) -> dict[str, Any]:
        """The empty state."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Do nothing: there is no state."""


class Churn:
    """Clients that join and leave, at times in seconds or in rounds.

    Times in rounds count training rounds, T per session, without trial rounds; a fractional time
    lies within a round. All changes at the current time are applied, regardless of the order in
    which the events at this time are processed.

    Args:
        presence: clients present at time 0, and all later changes.
        unit: unit of the times.
        rounds: T, rounds per session.
        clock: virtual clock, on which the next change is scheduled.
    """

    def __init__(self, presence: Presence, unit: Unit, rounds: int, clock: Clock) -> None:
        self.presence, self.unit, self.rounds, self.clock = presence, unit, rounds, clock
        self._rewind(0)

    def _rewind(self, applied: int) -> None:
        """Set the state to that after the first ``applied`` changes, between two rounds."""
        self._present = self.presence.initial().copy()
        self._later: Iterator[Change] = self.presence.changes()
        self._next = next(self._later, None)
        self._applied = 0
        while self._applied < applied:
            self._apply()
        # The round in progress: its number, start and duration.
        self._round, self._began, self._lasts = -1, 0.0, 0.0
        self._marked = -1.0

    def _apply(self) -> Change:
        change, self._next = self._next, next(self._later, None)
        assert change is not None
        self._present[change.client] = change.joins
        self._applied += 1
        return change

    def _when(self, change: Change) -> float:
        """Time of a change on the clock; infinity if its round has not started yet."""
        if self.unit == "seconds":
            return change.time
        if change.time > self._round + 1:
            return math.inf
        return self._began + max(change.time - self._round, 0.0) * self._lasts

    def open(self, session: int) -> BoolArray:
        """Open a session, and return the clients that are present now, [clients] boolean."""
        self.new_changes()
        if self.unit == "rounds":  # a session that ended early skips rounds
            while self._next is not None and self._next.time <= session * self.rounds:
                self._apply()
        if not self._present.any() and self._next is None:
            raise ConfigError(
                f"session {session} has no client after {self.clock.now:.6g} simulated seconds, "
                "and none will join. Earlier sessions are saved. Start a new run with fewer "
                "sessions or rounds, or with longer stays."
            )
        return self._present.copy()

    @property
    def present(self) -> BoolArray:
        """Clients that are present after the changes so far, [clients] boolean, a copy."""
        return self._present.copy()

    @property
    def changes_later(self) -> bool:
        """Whether clients join or leave at a known time that is still to come."""
        return self._next is not None and self._when(self._next) < math.inf

    def labels(self, session: int) -> None:
        """Return None: clients can have all labels."""

    def start(self) -> None:
        """Schedule the next change on the clock, if its time is known."""
        if self._next is None:
            return
        when = max(self._when(self._next), self.clock.now)
        if when < math.inf and when != self._marked:
            self._marked = when
            self.clock.at(when, PresenceChanged())

    def round_started(self, number: int, seconds: float) -> None:
        """Note the start of a round, which fixes the clock times of its changes in rounds."""
        self._round, self._began, self._lasts = number, self.clock.now, seconds
        self.start()

    def new_changes(self) -> list[Change]:
        """Return the changes up to now that were not returned before."""
        changes = []
        while self._next is not None and self._when(self._next) <= self.clock.now:
            changes.append(self._apply())
        self.start()
        return changes

    def snapshot(self) -> dict[str, Any]:
        """Number of applied changes."""
        return {"changes": self._applied}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot; ``start`` schedules the next change again."""
        self._rewind(state["changes"])
