"""Numbers by index from a named stream, drawn in blocks: one costs a fraction of a microsecond."""

from __future__ import annotations

from collections.abc import Callable

from channels.arrays import FloatArray
from channels.streams import Stream

BLOCK = 1024


class Draws:
    """Random numbers by index; equal indices give equal numbers, whatever was asked for before.

    Args:
        draw: ``BLOCK`` numbers of the block with this index.
    """

    def __init__(self, draw: Callable[[int], FloatArray]) -> None:
        self._draw = draw
        self._block, self._values = -1, list[float]()

    def __getitem__(self, index: int) -> float:
        block, place = divmod(index, BLOCK)
        if block != self._block:
            self._values = self._draw(block).tolist()
            self._block = block
        return self._values[place]


def uniform(stream: Stream) -> Draws:
    """Uniform in [0, 1)."""
    return Draws(lambda block: stream.generator(block).random(BLOCK))


def exponential(stream: Stream) -> Draws:
    """Exponential with mean 1."""
    return Draws(lambda block: stream.generator(block).exponential(size=BLOCK))
