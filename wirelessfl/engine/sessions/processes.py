"""Presence of clients over time, in seconds or in rounds, and random arrivals and departures."""

from __future__ import annotations

import heapq
import itertools
import math
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from channels.arrays import BoolArray
from channels.indexed import exponential, uniform
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import (
    UnfitError,
    calling,
    check_count,
    check_number,
    described,
    returns,
    title_of,
    wrong_result,
)


@dataclass(frozen=True, slots=True)
class Change:
    """A client that joins or leaves.

    Args:
        time: in seconds or rounds, > 0.
        client: client number.
        joins: True if the client joins, False if it leaves.
    """

    time: float
    client: int
    joins: bool


def present_clients(value: Any, *_: Any) -> BoolArray:
    """Check for a boolean per client."""
    if not isinstance(value, np.ndarray) or value.dtype != np.bool_ or value.ndim != 1:
        raise UnfitError(described(value), "a boolean NumPy array of shape [clients]")
    return value


def check_clients(kind: str, thing: object, method: str, present: BoolArray, clients: int) -> None:
    """Raise unless ``present``, which a method has returned, has an entry per client."""
    if present.shape != (clients,):
        value, expected = described(present), f"a boolean NumPy array of shape [{clients}]"
        raise wrong_result(kind, thing, method, value, expected)


def _later_changes(value: Any, presence: Presence) -> Iterator[Change]:
    """Check each change when it is reached: its type and client, and the order of times."""
    expected = "an iterator of Change, by time"
    if not isinstance(value, Iterator):
        raise UnfitError(described(value), expected)
    return _checked_changes(value, presence, expected)


def _checked_changes(value: Iterator[Any], presence: Presence, expected: str) -> Iterator[Change]:
    before, clients, kind = 0.0, len(presence.initial()), "presence"
    while True:
        with calling(f"{kind} {title_of(presence)!r}, changes"):
            change = next(value, None)
        if change is None:
            return
        valid = (
            isinstance(change, Change)
            and before <= change.time < math.inf
            and change.client in range(clients)
        )
        if not valid:
            limits = f"{expected}, with finite times >= {before:g} and clients below {clients}"
            raise wrong_result(kind, presence, "changes", described(change), limits)
        before = change.time
        yield change


class Presence(Protocol):
    """The clients present at time 0, and all later changes."""

    @returns(present_clients)
    def initial(self) -> BoolArray:
        """Clients present at time 0, after all changes at that time, [clients] boolean."""
        ...

    @returns(_later_changes)
    def changes(self) -> Iterator[Change]:
        """All later changes by (time, leaves before joins, client), identical in every call.

        The iterator may be infinite. A client joins only while absent, and leaves only while
        present.
        """
        ...


PERIODS = 32
"""Periods for each of which the stays of clients present at time 0 are drawn again."""


@dataclass(frozen=True)
class Arrivals:
    """Poisson arrivals and exponential stays.

    At each arrival a uniformly drawn absent client joins; if no client is absent, the arrival is
    lost. The number of present clients is that of an M/M/n/n loss system with n = ``clients``
    servers: its stationary distribution is Poisson with mean ``rate * mean_stay``, truncated above
    n, and the fraction of lost arrivals is given by the Erlang B formula.

    Args:
        clients: n, number of clients in the run, >= 1.
        rate: arrivals per unit of time, >= 0; with 0, clients only leave.
        mean_stay: mean length of a stay, in units of time, > 0.
        initially: number of clients present at time 0, from 0 to ``clients``, drawn at random. None
            for ``rate * mean_stay``, rounded, at least 1 and at most ``clients``.
        stream: random stream of the process.

    Raises:
        ConfigError: a number is out of its range.
    """

    clients: int
    rate: float
    mean_stay: float
    initially: int | None
    stream: Stream

    def __post_init__(self) -> None:
        try:
            check_count("clients", self.clients)
            check_number("rate", self.rate)
            check_number("mean_stay", self.mean_stay, positive=True)
            if self.initially is not None:
                check_count("initially", self.initially, min_value=0)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        if self.initially is not None and self.initially > self.clients:
            raise ConfigError(
                f"initially={self.initially} conflicts with clients={self.clients}: choose "
                f"initially 0 to {self.clients}."
            )

    def initial(self) -> BoolArray:
        """Clients present at time 0, [clients] boolean."""
        present = np.zeros(self.clients, dtype=np.bool_)
        numbers = np.arange(self.clients, dtype=np.int32)
        order = self.stream.child("initially").generator().permutation(numbers)
        present[order[: self._first]] = True
        return present

    @property
    def _first(self) -> int:
        if self.initially is not None:
            return self.initially
        # Clip before rounding: the product may be infinite.
        return max(1, round(min(self.rate * self.mean_stay, self.clients)))

    def changes(self) -> Iterator[Change]:
        """Yield all later changes, infinitely many if ``rate`` > 0."""
        present = self.initial()
        initial = self._initial_stays(np.packbits(present))
        leaving = Stays()
        ends = next(initial, None)
        away = array("i", np.flatnonzero(~present).astype(np.int32).tobytes())
        del present
        gaps = exponential(self.stream.child("gaps"))
        stays = exponential(self.stream.child("stays"))
        choices = uniform(self.stream.child("clients"))
        now = 0.0
        for number in itertools.count():
            first, initially = leaving.first, False
            if ends is not None and (first is None or ends < first):
                first, initially = ends, True
            # The time to the next arrival is memoryless too: it is redrawn after each change, and
            # not drawn while arrivals would be lost.
            arrives = math.inf
            if away and self.rate > 0:
                arrives = _later(now, gaps[number] / self.rate)
            if first is not None and first[0] <= min(arrives, sys.float_info.max):
                now, client = first
                if initially:
                    ends = next(initial, None)
                else:
                    leaving.remove_first()
                away.append(client)
                yield Change(now, client, joins=False)
            elif arrives < math.inf:
                now, index = arrives, int(choices[number] * len(away))
                away[index], away[-1] = away[-1], away[index]
                client = away.pop()
                leaving.add(_later(now, self.mean_stay * stays[number]), client)
                yield Change(now, client, joins=True)
            else:
                return

    def _initial_stays(self, packed: NDArray[np.uint8]) -> Iterator[tuple[float, int]]:
        """End and client of each stay that began at time 0, in order of their ends.

        The stays are drawn again for each of several periods, and only those that end in it are
        stored.
        """
        begin = 0.0
        for period in range(1, PERIODS + 1):
            quantile = -math.log1p(-period / PERIODS) if period < PERIODS else math.inf
            end = self.mean_stay * quantile
            yield from self._stays_between(packed, begin, end)
            begin = end

    def _stays_between(
        self, packed: NDArray[np.uint8], begin: float, end: float
    ) -> Iterator[tuple[float, int]]:
        """The stays from time 0 that end after ``begin``, and not after ``end``."""
        who = np.flatnonzero(np.unpackbits(packed, count=self.clients)).astype(np.int32)
        # Exponential stays are memoryless: those of clients present at time 0 need no correction.
        firsts = exponential(self.stream.child("first stays")).first(len(who))
        with np.errstate(over="ignore"):
            ends = np.maximum(self.mean_stay * firsts, math.nextafter(0.0, math.inf))
        some = np.flatnonzero((ends > begin) & (ends <= end))
        some = some[np.argsort(ends[some], kind="stable")]
        return zip(array("d", ends[some].tobytes()), array("i", who[some].tobytes()), strict=True)


def _later(time: float, span: float) -> float:
    """Return ``time + span``, or the next larger float if the span is lost to rounding.

    So no client leaves at the time at which it joined.
    """
    return max(time + span, math.nextafter(time, math.inf))


def check_sessions_by_rounds(presence: Presence, sessions: int, rounds: int) -> None:
    """Raise an error if the first round of a session has no client; times are in rounds.

    Session s lasts from time s T to (s + 1) T, and its clients are those present at time s T.

    Args:
        presence: clients present at time 0, and all later changes.
        sessions: number of sessions, >= 1.
        rounds: T, rounds per session, >= 1.
    """
    try:
        check_count("sessions", sessions)
        check_count("rounds", rounds)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    present, changes = int(presence.initial().sum()), presence.changes()
    change = next(changes, None)
    for session in range(sessions):
        begin = session * rounds
        while change is not None and change.time <= begin:
            present += 1 if change.joins else -1
            change = next(changes, None)
        if not present:
            raise ConfigError(
                f"session {session} begins at round {begin} without a client. Add a client that is "
                f"present at round {begin}, or choose other rounds or fewer sessions."
            )


SOON = 256
"""Minimum number of the earliest ends that are taken from the arrays at a time."""


SHARE = 64
"""The earliest ends are at least this fraction of all."""


class Stays:
    """Clients that are present until the ends of their stays.

    The earliest ends are in a heap. All others are in arrays, which are only searched once the
    heap is empty.
    """

    def __init__(self) -> None:
        self._soon = list[tuple[float, int]]()
        self._until = -np.inf
        """The heap has all ends up to this time."""
        self._times, self._clients = array("d"), array("i")

    def add(self, end: float, client: int) -> None:
        """Add a stay; one without an end is not stored."""
        if end <= self._until:
            heapq.heappush(self._soon, (end, client))
            if len(self._soon) > 2 * self._at_once(len(self._soon) + len(self._times)):
                self._times.extend(end for end, _ in self._soon)
                self._clients.extend(client for _, client in self._soon)
                self._search()
        elif end < math.inf:
            self._times.append(end)
            self._clients.append(client)

    @property
    def first(self) -> tuple[float, int] | None:
        """The end of the earliest stay, and its client; None if there is no stay."""
        if not self._soon and self._times:
            self._search()
        return self._soon[0] if self._soon else None

    def remove_first(self) -> None:
        """Remove the earliest stay."""
        heapq.heappop(self._soon)

    @staticmethod
    def _at_once(stays: int) -> int:
        """Number of stays that are moved to the heap at a time, of so many."""
        return max(SOON, stays // SHARE)

    def _search(self) -> None:
        """Move the earliest ends from the arrays to the heap."""
        times, clients = np.array(self._times), np.array(self._clients)
        last = min(self._at_once(len(times)), len(times)) - 1
        self._until = float(np.partition(times, last)[last])
        soon = times <= self._until
        self._soon = sorted(zip(times[soon].tolist(), clients[soon].tolist(), strict=True))
        self._times = array("d", times[~soon].tobytes())
        self._clients = array("i", clients[~soon].tobytes())
