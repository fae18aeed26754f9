"""Random numbers by index from a named stream, drawn in blocks for speed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from channels.arrays import FloatArray
from channels.streams import Stream

BLOCK = 1024
BLOCKS = 64
"""Maximum number of blocks that are kept: work in progress has indices of several."""


class Draws:
    """Random numbers by index; each depends only on its index, not on earlier accesses.

    Args:
        draw: function that returns the ``BLOCK`` numbers of the block with a given index.
    """

    def __init__(self, draw: Callable[[int], FloatArray]) -> None:
        self._draw = draw
        self._kept = lru_cache(BLOCKS)(draw)
        self._block, self._values = -1, np.empty(0)

    def __getitem__(self, index: int) -> float:
        block, offset = divmod(index, BLOCK)
        if block != self._block:
            self._block, self._values = block, self._kept(block)
        return self._values.item(offset)

    def first(self, count: int) -> FloatArray:
        """The numbers with indices 0 to ``count`` - 1."""
        blocks = [self._draw(block) for block in range(-(-count // BLOCK))]
        return np.concatenate([np.empty(0), *blocks])[:count]


def uniform(stream: Stream) -> Draws:
    """Uniform numbers in [0, 1)."""
    return Draws(lambda block: stream.generator(block).random(BLOCK))


def exponential(stream: Stream) -> Draws:
    """Exponential numbers with mean 1."""
    return Draws(lambda block: stream.generator(block).exponential(size=BLOCK))
