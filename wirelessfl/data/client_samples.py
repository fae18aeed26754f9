"""Which samples each client has: as a list of arrays, or computed on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from channels.arrays import IntArray
from channels.streams import Stream

_BLOCK = 256
_KEPT_SAMPLES = 1 << 22


class ClientSamples(Sequence[IntArray], ABC):
    """For each client the indices of its samples in the training set, ascending."""

    @property
    @abstractmethod
    def sizes(self) -> IntArray:
        """[clients], number of samples of each."""

    @property
    @abstractmethod
    def identity(self) -> tuple[object, ...]:
        """Arrays and values that determine the samples: equal ones mean equal samples."""

    @classmethod
    def of(cls, samples: Sequence[IntArray]) -> ClientSamples:
        """``samples`` of each client, as ``split`` returns them."""
        return samples if isinstance(samples, ClientSamples) else ListedSamples(samples)


class ListedSamples(ClientSamples):
    """Samples held in memory, one array for each client.

    Args:
        samples: for each client its indices.
    """

    def __init__(self, samples: Sequence[IntArray]) -> None:
        self._samples = list(samples)

    @property
    def sizes(self) -> IntArray:
        """[clients], number of samples of each."""
        return np.fromiter(map(len, self._samples), np.int64, len(self._samples))

    @property
    def identity(self) -> tuple[object, ...]:
        """The arrays themselves."""
        return tuple(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    @overload
    def __getitem__(self, index: int) -> IntArray: ...

    @overload
    def __getitem__(self, index: slice) -> list[IntArray]: ...

    def __getitem__(self, index: int | slice) -> IntArray | list[IntArray]:
        """Samples of a client; those of some clients, as a list."""
        return self._samples[index]


class DealtSamples(ClientSamples):
    """Samples of clients, dealt from endless decks: each class shuffled, handed out, and so on.

    Client i takes ``counts[i, c]`` samples of deck c, behind those that the clients before it have
    taken. Only the counts are stored. A client's samples are computed on demand from shuffles,
    which are drawn again by their names. The most recently used shuffles are cached, in about 16
    MiB or the memory of the set's labels, whichever is larger.

    Args:
        decks: the samples of each class, ascending.
        shuffles: for each deck the stream whose child i shuffles its pass i.
        counts: [clients, decks], samples that each client takes of each.
    """

    def __init__(
        self,
        decks: Sequence[IntArray],
        shuffles: Sequence[Stream],
        counts: NDArray[np.integer[Any]],
    ) -> None:
        samples = sum(map(len, decks))
        self._shuffles = tuple(shuffles)
        self._decks = [deck.astype(np.min_scalar_type(int(deck[-1]))) for deck in decks]
        self._counts = counts.astype(np.min_scalar_type(int(counts.max())))
        # Where blocks of clients begin in each deck: a client sums over its own block alone.
        blocks = np.add.reduceat(counts, np.arange(0, len(counts), _BLOCK), axis=0, dtype=np.int64)
        self._begins = np.cumsum(blocks, axis=0) - blocks
        self._max_kept = max(_KEPT_SAMPLES, 2 * samples)
        self._kept: OrderedDict[tuple[int, int], NDArray[Any]] = OrderedDict()
        self._kept_samples = 0

    @property
    def sizes(self) -> IntArray:
        """[clients], number of samples of each."""
        sizes: IntArray = self._counts.sum(axis=1, dtype=np.int64)
        return sizes

    @property
    def identity(self) -> tuple[object, ...]:
        """The shuffles, decks and counts that the samples follow from."""
        return (repr(self._shuffles), *self._decks, self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    @overload
    def __getitem__(self, index: int) -> IntArray: ...

    @overload
    def __getitem__(self, index: slice) -> list[IntArray]: ...

    def __getitem__(self, index: int | slice) -> IntArray | list[IntArray]:
        """Samples of a client, ascending; those of some clients, as a list."""
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self._samples_of(place) for place in places]
        return self._samples_of(places)

    def __getstate__(self) -> dict[str, Any]:
        """Without the shuffles that are kept."""
        return self.__dict__ | {"_kept": OrderedDict(), "_kept_samples": 0}

    def _samples_of(self, client: int) -> IntArray:
        block = client // _BLOCK
        before = self._counts[block * _BLOCK : client].sum(axis=0, dtype=np.int64)
        begins, counts = self._begins[block] + before, self._counts[client]
        pieces = []
        for deck in np.flatnonzero(counts).tolist():
            size = len(self._decks[deck])
            begin, left = int(begins[deck]), int(counts[deck])
            while left:
                turn, place = divmod(begin, size)
                piece = self._shuffled(deck, turn)[place : place + left]
                pieces.append(piece)
                begin, left = begin + len(piece), left - len(piece)
        return np.sort(np.concatenate(pieces).astype(np.int64))

    def _shuffled(self, deck: int, turn: int) -> NDArray[Any]:
        """The samples of a deck in the order of a pass over it."""
        found = self._kept.pop((deck, turn), None)
        if found is None:
            samples = self._decks[deck]
            shuffle = self._shuffles[deck].child(turn).generator()
            found = samples[shuffle.permutation(len(samples))]
            self._kept_samples += len(samples)
        self._kept[deck, turn] = found
        while self._kept_samples > self._max_kept:
            _, oldest = self._kept.popitem(last=False)
            self._kept_samples -= len(oldest)
        return found
