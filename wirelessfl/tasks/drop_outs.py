"""Clients that drop out in the middle of a training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from channels.indexed import Draws, uniform
from channels.streams import Stream


@dataclass(frozen=True, eq=False)
class DropOuts:
    """Drop-outs that do not depend on the order of events, as each training has a number.

    Args:
        probability: that a client drops out of a training, at a time uniform over it.
        stream: randomness of who does, and when.
    """

    probability: float
    stream: Stream

    @cached_property
    def _fates(self) -> Draws:
        return uniform(self.stream)

    def lost_after(self, number: int, seconds: float) -> float | None:
        """When the client drops out of training ``number`` of ``seconds``; None: it does not."""
        if not self.probability or (fate := self._fates[number]) >= self.probability:
            return None
        return seconds * fate / self.probability
