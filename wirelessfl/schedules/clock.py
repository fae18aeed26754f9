"""The virtual clock: events in seconds, ordered by (time, sequence)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Clock:
    """A queue of future events; its time is that of the event last taken, and never runs back."""

    now: float = 0.0
    _queue: list[tuple[float, int, Any]] = field(default_factory=list)
    _sequence: int = 0

    def after(self, seconds: float, event: Any) -> None:
        """Let ``event`` happen ``seconds`` from now; events of one instant keep their order."""
        if not 0.0 <= seconds < math.inf:
            raise ValueError(
                f"an event {seconds} seconds from now: a finite time >= 0 is needed. "
                "Has a client no data rate?"
            )
        heapq.heappush(self._queue, (self.now + seconds, self._sequence, event))
        self._sequence += 1

    def at(self, seconds: float, event: Any) -> None:
        """Let ``event`` happen at a time that is not over."""
        if not self.now <= seconds < math.inf:
            raise ValueError(f"an event at {seconds} seconds, and it is {self.now}: that is over.")
        heapq.heappush(self._queue, (seconds, self._sequence, event))
        self._sequence += 1

    def next(self) -> Any:
        """Advance to the earliest event and return it; None when there is none."""
        if not self._queue:
            return None
        self.now, _, event = heapq.heappop(self._queue)
        return event

    @property
    def upcoming(self) -> float:
        """When the earliest event will happen; infinity when there is none."""
        return self._queue[0][0] if self._queue else math.inf

    def queued(self) -> list[tuple[float, Any]]:
        """All future events with their times, in order."""
        return [(seconds, event) for seconds, _, event in sorted(self._queue, key=lambda e: e[:2])]

    def requeue(self, now: float, events: Iterable[tuple[float, Any]]) -> None:
        """Be at ``now``, with these future events as from ``queued``."""
        self.now, self._queue = now, []
        for seconds, event in events:
            self.at(seconds, event)
