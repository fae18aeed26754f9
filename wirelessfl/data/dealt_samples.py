"""Splits with a fixed number of samples per client, dealt on demand from decks of samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.data.client_samples import ClientSamples

_KEPT_SAMPLES = 1 << 22
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


class DealtSamples(ClientSamples):
    """Samples dealt in client order from decks, one per class; used-up decks are reshuffled.

    Client i gets the next ``counts[i, c]`` samples of deck c after those of clients 0 to i - 1.
    Neither samples nor counts are stored. A client's samples are computed on demand from the
    shuffled decks, which are regenerated from their streams. The most recently used ones are
    cached, in about 16 MiB or the memory of the set's labels, whichever is larger.

    Args:
        decks: the samples of each class, ascending.
        shuffles: one stream per deck; its child i shuffles the deck for pass i over it.
        counts: number of samples that each client gets from each deck.
    """

    def __init__(
        self,
        decks: Sequence[IntArray],
        shuffles: Sequence[Stream],
        counts: DealtCounts,
    ) -> None:
        samples = sum(map(len, decks))
        self._shuffles = tuple(shuffles)
        self._decks = [deck.astype(np.min_scalar_type(int(deck[-1]))) for deck in decks]
        self._counts = counts
        self._max_kept = max(_KEPT_SAMPLES, 2 * samples)
        self._kept: OrderedDict[tuple[int, int], NDArray[Any]] = OrderedDict()
        self._kept_samples = 0

    @property
    def sizes(self) -> IntArray:
        """Number of samples of each client, [clients]."""
        return np.broadcast_to(np.int64(self._counts.samples), len(self))

    @property
    def identity(self) -> tuple[object, ...]:
        """The streams, decks and counts, which determine the samples."""
        return (repr(self._shuffles), *self._decks, self._counts.whole())

    def __len__(self) -> int:
        return self._counts.clients

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling, without the cached shuffles."""
        return self.__dict__ | {"_kept": OrderedDict(), "_kept_samples": 0}

    def _samples_of(self, client: int) -> IntArray:
        begins, counts = self._counts.of(client)
        pieces = []
        for deck in np.flatnonzero(counts).tolist():
            size = len(self._decks[deck])
            begin, left = int(begins[deck]), int(counts[deck])
            while left:
                number, first = divmod(begin, size)
                piece = self._shuffled(deck, number)[first : first + left]
                pieces.append(piece)
                begin, left = begin + len(piece), left - len(piece)
        return np.sort(np.concatenate(pieces).astype(np.int64))

    def _shuffled(self, deck: int, number: int) -> NDArray[Any]:
        """The samples of a deck in the order of pass ``number`` over it."""
        order = self._kept.pop((deck, number), None)
        if order is None:
            samples = self._decks[deck]
            shuffle = self._shuffles[deck].child(number).generator()
            order = samples[shuffle.permutation(len(samples))]
            self._kept_samples += len(samples)
        self._kept[deck, number] = order
        while self._kept_samples > self._max_kept:
            _, oldest = self._kept.popitem(last=False)
            self._kept_samples -= len(oldest)
        return order


def deal_fixed_sizes(
    labels: NDArray[np.generic],
    clients: int,
    samples: int,
    alpha: float | None,
    reuse: bool,
    stream: Stream,
) -> DealtSamples:
    """Deal ``samples`` samples to each client i, with class mixture q_i ~ Dir(alpha, ..., alpha).

    Every class (with ``alpha=None`` the whole set) is dealt in random order. With ``reuse`` it is
    shuffled and dealt again once it runs out, so no sample is used twice before all samples of its
    class have been used once.

    Args:
        labels: [n].
        clients: number of clients.
        samples: samples per client.
        alpha: concentration of the class mixture; None for the mixture of the whole set.
        reuse: whether samples may be used more than once.
        stream: randomness.

    Returns:
        For each client its indices into ``labels``, ascending; [samples] each. They are computed
        on access, see ``DealtSamples``.
    """
    if alpha is None:
        # Clients get consecutive pieces of the shuffled set, reshuffled only once it is used up.
        if clients * samples > len(labels) and not reuse:
            raise DataError(
                f"{clients} clients with {samples} samples each need {clients * samples}, but "
                f"there are only {len(labels)}. Lower samples_per_client, or set reuse to use "
                "samples more than once."
            )
        decks, shuffles = [np.arange(len(labels))], [stream.child("pass")]
        return DealtSamples(decks, shuffles, EqualCounts(clients, samples))
    classes, sizes = np.unique(labels, return_counts=True)
    mixture = np.full(len(classes), alpha)
    counts = MixtureCounts(clients, samples, mixture, stream.child("mixture"))
    for label, size, needed in zip(classes, sizes, counts.begins[-1], strict=True):
        if needed > size and not reuse:
            raise DataError(
                f"label {label} has {size} samples, but this split needs {needed}. Raise alpha, "
                "lower samples_per_client, or set reuse to use samples more than once."
            )
    decks = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    shuffles = [stream.child("class", number) for number in range(len(classes))]
    return DealtSamples(decks, shuffles, counts)
