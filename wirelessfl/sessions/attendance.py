"""Who attends a session: clients who come in turn, or who come and go as time passes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from channels.arrays import BoolArray
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.errors import ConfigError
from wirelessfl.schedules import Clock
from wirelessfl.sessions.presence import Change, Presence

Unit = Literal["seconds", "rounds"]


@dataclass(frozen=True)
class Passing:
    """It is time to look who has come or gone."""


class Attendance(Protocol):
    """Which clients are there."""

    def open(self, session: int) -> BoolArray:
        """[clients], who is there as the session opens."""

    def start(self) -> None:
        """Put the time of what is to come on the clock."""

    def given(self, number: int, seconds: float) -> None:
        """Round ``number`` begins now, and takes that long."""

    def passed(self) -> list[Change]:
        """All changes up to now that have not been told yet."""

    def snapshot(self) -> dict[str, Any]:
        """As plain numbers."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a snapshot."""


class InTurn:
    """Groups of clients, one in each session; nobody comes or goes meanwhile.

    Args:
        groups: who is in which.
        sessions: S.
    """

    def __init__(self, groups: LabelGroups, sessions: int) -> None:
        self.groups, self.sessions = groups, sessions

    def open(self, session: int) -> BoolArray:
        """The group whose turn it is."""
        return np.asarray(self.groups.group_of == self.groups.group_in(session, self.sessions))

    def start(self) -> None:
        """Nothing is to come."""

    def given(self, number: int, seconds: float) -> None:
        """Rounds change nothing."""

    def passed(self) -> list[Change]:
        """Nothing changes."""
        return []

    def snapshot(self) -> dict[str, Any]:
        """Likewise."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Likewise."""


class Comings:
    """Clients who come and go, at times in seconds or in rounds.

    Times in rounds count training rounds, T a session; one with a fraction lies in the middle of a
    round, whenever that is in seconds. Trial rounds take no time in rounds. All changes of an
    instant count, whatever else happens in it.

    Args:
        presence: who is there at first, and all changes.
        unit: of its times.
        rounds: T, rounds of a session.
        clock: virtual seconds; the time of the next change is put on it.
    """

    def __init__(self, presence: Presence, unit: Unit, rounds: int, clock: Clock) -> None:
        self.presence, self.unit, self.rounds, self.clock = presence, unit, rounds, clock
        self._rewind(0)

    def _rewind(self, told: int) -> None:
        """Be where the first ``told`` changes have happened, between two rounds."""
        self._there = self.presence.initial().copy()
        self._later: Iterator[Change] = self.presence.changes()
        self._next = next(self._later, None)
        self._told = 0
        while self._told < told:
            self._tell()
        # The round under way: its number, when it began, how long it takes.
        self._round, self._began, self._lasts = -1, 0.0, 0.0
        self._marked = -1.0

    def _tell(self) -> Change:
        """The next change has happened."""
        change, self._next = self._next, next(self._later, None)
        assert change is not None
        self._there[change.client] = change.joins
        self._told += 1
        return change

    def _when(self, change: Change) -> float:
        """Its time on the clock; infinity where no round has come to it yet."""
        if self.unit == "seconds":
            return change.time
        if change.time > self._round + 1:
            return math.inf
        return self._began + max(change.time - self._round, 0.0) * self._lasts

    def open(self, session: int) -> BoolArray:
        """Whoever is there now.

        Raises:
            ConfigError: nobody is, and nobody will come.
        """
        self.passed()
        if self.unit == "rounds":  # a session that ended early leaves rounds out
            while self._next is not None and self._next.time <= session * self.rounds:
                self._tell()
        if not self._there.any() and self._next is None:
            raise ConfigError(
                f"session {session} has no client after {self.clock.now:.6g} simulated seconds, "
                "and nobody comes later. What was done is kept; begin a run with fewer sessions "
                "or rounds, or a trace with longer stays."
            )
        return self._there.copy()

    def start(self) -> None:
        """The time of the next change, where it is known."""
        if self._next is None:
            return
        when = max(self._when(self._next), self.clock.now)
        if when < math.inf and when != self._marked:
            self._marked = when
            self.clock.at(when, Passing())

    def given(self, number: int, seconds: float) -> None:
        """Now the times of this round's changes are known, where they are in rounds."""
        self._round, self._began, self._lasts = number, self.clock.now, seconds
        self.start()

    def passed(self) -> list[Change]:
        """All changes up to now that have not been told yet."""
        changes = []
        while self._next is not None and self._when(self._next) <= self.clock.now:
            changes.append(self._tell())
        self.start()
        return changes

    def snapshot(self) -> dict[str, Any]:
        """Changes that have happened."""
        return {"changes": self._told}

    def restore(self, state: dict[str, Any]) -> None:
        """The clock is empty now: the next change is put there again."""
        self._rewind(state["changes"])
