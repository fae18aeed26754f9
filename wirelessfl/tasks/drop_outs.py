"""Clients that drop out during training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from channels.indexed import Draws, uniform
from channels.streams import Stream


@dataclass(frozen=True, eq=False)
class DropOuts:
    """Random drop-outs, drawn by training-run number, so independent of the order of events.

    Args:
        probability: probability that a client drops out of a training run, at a uniform time.
        stream: random stream of the drop-outs and their times.
    """

    probability: float
    stream: Stream

    @cached_property
    def _fates(self) -> Draws:
        return uniform(self.stream)

    def lost_after(self, number: int, seconds: float) -> float | None:
        """Seconds until the drop-out in training run ``number`` of ``seconds``, or None."""
        if not self.probability or (fate := self._fates[number]) >= self.probability:
            return None
        return seconds * fate / self.probability
