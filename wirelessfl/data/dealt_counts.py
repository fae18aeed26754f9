"""Number of samples that each client gets from each deck; all clients get equally many in all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream

BLOCK = 128
"""Clients whose counts are drawn together."""
STATE = 11
"""Number of 64-bit words of a generator's state."""


class DealtCounts(ABC):
    """Counts [clients, decks], of which a block of clients is computed at a time.

    Args:
        clients: number of clients.
        samples: samples per client.
    """

    begins: IntArray
    """[blocks + 1, decks], sum of the counts of all clients before each block, and of all."""

    def __init__(self, clients: int, samples: int) -> None:
        self.clients, self.samples = clients, samples

    @abstractmethod
    def block(self, number: int) -> IntArray:
        """Counts of the clients of a block, [clients, decks]."""

    def of(self, client: int) -> tuple[IntArray, IntArray]:
        """Sum of the counts of all clients before ``client``, and its own counts, [decks] each."""
        number, row = divmod(client, BLOCK)
        counts = self.block(number)
        return self.begins[number] + counts[:row].sum(axis=0), counts[row]

    def whole(self) -> NDArray[np.integer[Any]]:
        """Counts of all clients, [clients, decks], in the smallest type."""
        counts = np.empty((self.clients, self.begins.shape[1]), np.min_scalar_type(self.samples))
        for number in range(len(self.begins) - 1):
            counts[number * BLOCK : (number + 1) * BLOCK] = self.block(number)
        return counts.astype(np.min_scalar_type(int(counts.max())), copy=False)

    def _sizes(self) -> Iterator[int]:
        """Number of clients of each block."""
        for first in range(0, self.clients, BLOCK):
            yield min(BLOCK, self.clients - first)


class EqualCounts(DealtCounts):
    """Every client gets all its samples from one deck."""

    def __init__(self, clients: int, samples: int) -> None:
        super().__init__(clients, samples)
        self.begins = samples * np.cumsum([0, *self._sizes()])[:, np.newaxis]

    def block(self, number: int) -> IntArray:
        """Counts of the clients of a block, [clients, 1]."""
        return np.broadcast_to(np.int64(self.samples), (BLOCK, 1))[: self.clients - number * BLOCK]


class MixtureCounts(DealtCounts):
    """Counts with class mixtures q_i ~ Dir(alpha), drawn again whenever they are read.

    The counts are drawn after the mixtures of all clients, so two generators draw in turn. Only
    their states before each block are stored.

    Args:
        clients: number of clients.
        samples: samples per client.
        alpha: [decks], concentration.
        stream: randomness.
    """

    def __init__(self, clients: int, samples: int, alpha: FloatArray, stream: Stream) -> None:
        super().__init__(clients, samples)
        self._alpha, self._stream = alpha, stream
        mixtures, draw = stream.generator(), stream.generator()
        for size in self._sizes():
            draw.dirichlet(alpha, size)
        blocks = -(-clients // BLOCK)
        self._states = np.empty((blocks, 2, STATE), dtype=np.uint64)
        self.begins = np.zeros((blocks + 1, len(alpha)), dtype=np.int64)
        for number, size in enumerate(self._sizes()):
            self._states[number] = _words_of(mixtures), _words_of(draw)
            totals = self._draw(mixtures, draw, size).sum(axis=0)
            self.begins[number + 1] = self.begins[number] + totals
        self._latest: tuple[int, IntArray] | None = None

    def block(self, number: int) -> IntArray:
        """Counts of the clients of a block, [clients, decks]; the latest is kept."""
        if self._latest is None or self._latest[0] != number:
            mixtures, draw = (self._generator(words) for words in self._states[number])
            size = min(BLOCK, self.clients - number * BLOCK)
            self._latest = number, self._draw(mixtures, draw, size)
        return self._latest[1]

    def _draw(
        self, mixtures: np.random.Generator, draw: np.random.Generator, size: int
    ) -> IntArray:
        return draw.multinomial(self.samples, mixtures.dirichlet(self._alpha, size))

    def _generator(self, words: NDArray[np.uint64]) -> np.random.Generator:
        """The stream's generator in the state with the given words, see ``_words_of``."""
        generator = self._stream.generator()
        state: dict[str, Any] = dict(generator.bit_generator.state)
        state["state"] = {"counter": words[:4], "key": state["state"]["key"]}
        state["buffer"] = words[4:8]
        state |= zip(("buffer_pos", "has_uint32", "uinteger"), words[8:].tolist(), strict=True)
        generator.bit_generator.state = state
        return generator


def _words_of(generator: np.random.Generator) -> list[int]:
    """The state of a Philox generator but for its key, as ``STATE`` words."""
    state: dict[str, Any] = dict(generator.bit_generator.state)
    return [
        *state["state"]["counter"].tolist(),
        *state["buffer"].tolist(),
        *(int(state[name]) for name in ("buffer_pos", "has_uint32", "uinteger")),
    ]
