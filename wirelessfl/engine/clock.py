"""The virtual clock: events in seconds, ordered by (time, sequence)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Clock:
    """Queue of future events. The current time is that of the last event, and never decreases."""

    now: float = 0.0
    _queue: list[tuple[float, int, Any]] = field(default_factory=list)
    _sequence: int = 0

    def after(self, seconds: float, event: Any) -> None:
        """Schedule ``event`` after ``seconds``; simultaneous events keep the order of the calls."""
        if not 0.0 <= seconds < math.inf:
            raise ValueError(
                f"seconds is {seconds}: give a finite time >= 0 until the event. Is a client's "
                "data rate 0?"
            )
        heapq.heappush(self._queue, (self.now + seconds, self._sequence, event))
        self._sequence += 1

    def at(self, seconds: float, event: Any) -> None:
        """Schedule ``event`` at ``seconds``, which must not be in the past."""
        if not self.now <= seconds < math.inf:
            raise ValueError(
                f"seconds is {seconds}: give a finite time >= the current time {self.now}."
            )
        heapq.heappush(self._queue, (seconds, self._sequence, event))
        self._sequence += 1

    def next(self) -> Any:
        """Advance to the earliest event and return it; None if the queue is empty."""
        if not self._queue:
            return None
        self.now, _, event = heapq.heappop(self._queue)
        return event

    @property
    def upcoming(self) -> float:
        """Time of the earliest event; infinity if the queue is empty."""
        return self._queue[0][0] if self._queue else math.inf

    def queued(self) -> list[tuple[float, Any]]:
        """All future events with their times, in order."""
        return [(seconds, event) for seconds, _, event in sorted(self._queue, key=lambda e: e[:2])]

    def requeue(self, now: float, events: Iterable[tuple[float, Any]]) -> None:
        """Set the time to ``now`` and the future events to ``events``, as ``queued`` returns."""
        self.now, self._queue = now, []
        for seconds, event in events:
            self.at(seconds, event)
