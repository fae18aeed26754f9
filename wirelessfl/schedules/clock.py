"""The virtual clock: events in seconds, ordered by (time, sequence)."""

from __future__ import annotations

import heapq
import math
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
        if not (seconds >= 0.0 and math.isfinite(seconds)):
            raise ValueError(
                f"an event {seconds} seconds from now: a finite time >= 0 is needed. "
                "Has a client no data rate?"
            )
        heapq.heappush(self._queue, (self.now + seconds, self._sequence, event))
        self._sequence += 1

    def next(self) -> Any:
        """Advance to the earliest event and return it; None when there is none."""
        if not self._queue:
            return None
        self.now, _, event = heapq.heappop(self._queue)
        return event
