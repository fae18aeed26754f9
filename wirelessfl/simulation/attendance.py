"""Who attends a session: clients who come in turn, or who come and go as time passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol

import numpy as np

from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.errors import ConfigError
from wirelessfl.schedules import Clock
from wirelessfl.simulation.presence import Change, Presence
from wirelessfl.uplinks.base import BoolArray

Unit = Literal["seconds", "rounds"]


class Attendance(Protocol):
    """Which clients are there."""

    def open(self, session: int) -> BoolArray:
        """[clients], who is there as the session opens."""

    def start(self) -> None:
        """Put what is to come on the clock."""

    def given(self, work: int, seconds: float) -> None:
        """Round number ``work`` begins now, and takes that long."""

    def take(self, change: Change) -> None:
        """A change that was put on the clock has happened."""

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

    def given(self, work: int, seconds: float) -> None:
        """Rounds change nothing."""

    def take(self, change: Change) -> None:
        """There are none."""

    def snapshot(self) -> dict[str, Any]:
        """Nothing changes."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Likewise."""


class Comings:
    """Clients who come and go, at times in seconds or in rounds.

    Times in rounds count training rounds, T a session; one with a fraction lies in the middle of a
    round, whenever that is in seconds. Trial rounds take no time in rounds.

    Args:
        presence: who is there at first, and all changes.
        unit: of its times.
        rounds: T, rounds of a session.
        clock: virtual seconds; changes are put on it.
    """

    def __init__(self, presence: Presence, unit: Unit, rounds: int, clock: Clock) -> None:
        self.presence, self.unit, self.rounds, self.clock = presence, unit, rounds, clock
        self._rewind(0)

    def _rewind(self, taken: int) -> None:
        """Be where the first ``taken`` changes have happened, and no later one is queued."""
        self._there = self.presence.initial().copy()
        self._taken = self._queued = 0
        self._later: Iterator[Change] = self.presence.changes()
        self._next = next(self._later, None)
        while self._taken < taken:
            self._happen(self._pop())

    def _pop(self) -> Change:
        """The next change that is not on the clock yet."""
        change, self._next = self._next, next(self._later, None)
        assert change is not None
        self._queued += 1
        return change

    def _happen(self, change: Change) -> None:
        self._there[change.client] = change.joins
        self._taken += 1

    def open(self, session: int) -> BoolArray:
        """Whoever is there now.

        Raises:
            ConfigError: nobody is, and nobody will come.
        """
        if self.unit == "rounds":  # a session that ended early leaves rounds out
            while self._next is not None and self._next.time <= session * self.rounds:
                self._happen(self._pop())
        if not self._there.any() and self._queued == self._taken and self._next is None:
            raise ConfigError(
                f"session {session} has no client after {self.clock.now:.6g} simulated seconds, "
                "and nobody comes later. Have fewer sessions or rounds, or let clients stay longer."
            )
        return self._there.copy()

    def start(self) -> None:
        """The next change, where times are in seconds."""
        if self.unit == "seconds" and self._next is not None and self._queued == self._taken:
            change = self._pop()
            self.clock.at(max(change.time, self.clock.now), change)

    def given(self, work: int, seconds: float) -> None:
        """The changes of this round, where times are in rounds."""
        if self.unit == "seconds":
            return
        while self._next is not None and self._next.time <= work + 1:
            change = self._pop()
            self.clock.after(max(change.time - work, 0.0) * seconds, change)

    def take(self, change: Change) -> None:
        """Note who is there, and look for the next one."""
        self._happen(change)
        self.start()

    def snapshot(self) -> dict[str, Any]:
        """Changes that have happened."""
        return {"changes": self._taken}

    def restore(self, state: dict[str, Any]) -> None:
        """The clock is empty now: later changes are put there again."""
        self._rewind(state["changes"])
