"""When clients are present: arrivals and departures by a random process.

Times are in the unit that the settings choose, seconds or rounds.
"""

from __future__ import annotations

import heapq
import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from channels.arrays import BoolArray
from channels.indexed import exponential, uniform
from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.numbers import check_count, check_number


@dataclass(frozen=True, slots=True)
class Change:
    """A client that joins or leaves.

    Args:
        time: in seconds or rounds, > 0.
        client: its number.
        joins: whether it joins; otherwise it leaves.
    """

    time: float
    client: int
    joins: bool


class Presence(Protocol):
    """The clients present at time 0, and all later changes."""

    def initial(self) -> BoolArray:
        """[clients], clients present at time 0, after all changes of that instant."""
        ...

    def changes(self) -> Iterator[Change]:
        """All later changes by (time, leaves before joins, client), the same in every call.

        The iterator may be endless. A client joins only while absent, and leaves only while
        present.
        """
        ...


@dataclass(frozen=True)
class Arrivals:
    """Poisson arrivals and exponential stays.

    An arriving client is one of the absent clients, uniformly; if none is absent it is lost. The
    number present is that of a loss system with ``clients`` servers (M/M/n/n): in the long run
    Poisson with mean ``rate * mean_stay``, cut off above ``clients``, and the share of arrivals
    that are lost is Erlang's B.

    Args:
        clients: of the whole run, >= 1.
        rate: arrivals per unit of time, >= 0; 0: the clients present leave, and none arrives.
        mean_stay: > 0, in units of time.
        initially: clients present at time 0, from 0 to ``clients``, drawn at random; None:
            ``rate * mean_stay`` to the nearest whole number, at least 1 and at most ``clients``.
        stream: randomness of the process.

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
                f"initially is {self.initially}, and there are {self.clients} clients: give 0 to "
                f"{self.clients}."
            )

    def initial(self) -> BoolArray:
        """[clients], clients present at time 0."""
        present = np.zeros(self.clients, dtype=np.bool_)
        order = self.stream.child("initially").generator().permutation(self.clients)
        present[order[: self._first]] = True
        return present

    @property
    def _first(self) -> int:
        if self.initially is not None:
            return self.initially
        # Cut off before rounding: the product may be infinite.
        return max(1, round(min(self.rate * self.mean_stay, self.clients)))

    def changes(self) -> Iterator[Change]:
        """All later changes; endless if ``rate`` > 0."""
        present = self.initial()
        # Clients present at time 0 stay as long as others: exponential stays have no memory.
        firsts = exponential(self.stream.child("first stays"))
        leaving = [
            (_later(0.0, self.mean_stay * firsts[number]), client)
            for number, client in enumerate(np.flatnonzero(present).tolist())
        ]
        heapq.heapify(leaving)
        away: list[int] = np.flatnonzero(~present).tolist()
        gaps = exponential(self.stream.child("gaps"))
        stays = exponential(self.stream.child("stays"))
        places = uniform(self.stream.child("clients"))
        now = 0.0
        for number in itertools.count():
            # The time to an arrival has no memory either: it is redrawn after each change, and not
            # drawn while arrivals would be lost.
            arrives = math.inf
            if away and self.rate > 0:
                arrives = _later(now, gaps[number] / self.rate)
            if leaving and leaving[0][0] <= min(arrives, sys.float_info.max):
                now, client = heapq.heappop(leaving)
                away.append(client)
                yield Change(now, client, joins=False)
            elif arrives < math.inf:
                now, place = arrives, int(places[number] * len(away))
                away[place], away[-1] = away[-1], away[place]
                client = away.pop()
                heapq.heappush(leaving, (_later(now, self.mean_stay * stays[number]), client))
                yield Change(now, client, joins=True)
            else:
                return


def _later(time: float, span: float) -> float:
    """``span`` after ``time``; a span lost to rounding becomes the smallest step.

    So no client leaves in the instant in which it joined.
    """
    return max(time + span, math.nextafter(time, math.inf))


def check_sessions_by_rounds(presence: Presence, sessions: int, rounds: int) -> None:
    """Refuse a session whose first round would have no client; times are in rounds.

    Session s is rounds s T to (s + 1) T, and its clients are those present at time s T.

    Args:
        presence: a trace, or arrivals.
        sessions: >= 1.
        rounds: T >= 1, of a session.

    Raises:
        ConfigError: no client is present at time s T, or a number is out of its range.
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
                f"session {session} begins at round {begin} without a client: let a client join "
                f"by round {begin} and stay, or have other rounds or fewer sessions."
            )
