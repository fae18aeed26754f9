"""The samples of each client, as a list of arrays or computed on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.dealt_counts import DealtCounts

_BLOCK = 256
_KEPT_SAMPLES = 1 << 22


class ClientSamples(Sequence[IntArray], ABC):
    """Indices of each client's samples in the training set, ascending."""

    @property
    @abstractmethod
    def sizes(self) -> IntArray:
        """Number of samples of each client, [clients]."""

    @property
    @abstractmethod
    def identity(self) -> tuple[object, ...]:
        """Arrays and values that determine the samples; equal identities mean equal samples."""

    @property
    def listed(self) -> bool:
        """Whether all samples are in memory, so that reading them takes no computation."""
        return False

    @abstractmethod
    def _samples_of(self, client: int) -> IntArray:
        """Samples of one client."""

    @overload
    def __getitem__(self, index: int) -> IntArray: ...

    @overload
    def __getitem__(self, index: slice) -> list[IntArray]: ...

    def __getitem__(self, index: int | slice) -> IntArray | list[IntArray]:
        """Samples of one client, ascending, or a list with those of several clients."""
        clients = range(len(self))[index]
        if isinstance(clients, range):
            return [self._samples_of(client) for client in clients]
        return self._samples_of(clients)

    @classmethod
    def of(cls, samples: Sequence[IntArray]) -> ClientSamples:
        """Wrap a list as returned by ``split``; a ``ClientSamples`` is returned unchanged."""
        return samples if isinstance(samples, ClientSamples) else ListedSamples(samples)


class ListedSamples(ClientSamples):
    """Samples stored in memory as one array per client.

    Args:
        samples: the indices of each client's samples.
    """

    def __init__(self, samples: Sequence[IntArray]) -> None:
        self._samples = list(samples)

    @property
    def sizes(self) -> IntArray:
        """Number of samples of each client, [clients]."""
        return np.fromiter(map(len, self._samples), np.int64, len(self._samples))

    @property
    def identity(self) -> tuple[object, ...]:
        """The arrays themselves."""
        return tuple(self._samples)

    @property
    def listed(self) -> bool:
        """True: the arrays are in memory."""
        return True

    def __len__(self) -> int:
        return len(self._samples)

    def _samples_of(self, client: int) -> IntArray:
        return self._samples[client]


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
        found = self._kept.pop((deck, number), None)
        if found is None:
            samples = self._decks[deck]
            shuffle = self._shuffles[deck].child(number).generator()
            found = samples[shuffle.permutation(len(samples))]
            self._kept_samples += len(samples)
        self._kept[deck, number] = found
        while self._kept_samples > self._max_kept:
            _, oldest = self._kept.popitem(last=False)
            self._kept_samples -= len(oldest)
        return found


class GroupedSamples(ClientSamples):
    """Samples of clients in groups, each of which splits its own samples.

    Args:
        group_of: [clients], group of each client, from 0.
        pools: samples of each group.
        dealt: samples of the clients of each group, in order, as indices into the group's pool.
    """

    def __init__(
        self,
        group_of: NDArray[np.integer[Any]],
        pools: Sequence[IntArray],
        dealt: Sequence[Sequence[IntArray]],
    ) -> None:
        self._group_of, self._pools = group_of, tuple(pools)
        self._dealt = [ClientSamples.of(samples) for samples in dealt]
        # Number of clients of each group before each block, from which ranks are counted.
        firsts = np.arange(0, len(group_of), _BLOCK)
        blocks = [np.add.reduceat(group_of == g, firsts, dtype=np.int64) for g in range(len(pools))]
        self._before = np.cumsum(blocks, axis=1) - blocks

    @property
    def sizes(self) -> IntArray:
        """Number of samples of each client, [clients]."""
        sizes = np.empty(len(self), dtype=np.int64)
        for group, samples in enumerate(self._dealt):
            sizes[self._group_of == group] = samples.sizes
        return sizes

    @property
    def identity(self) -> tuple[object, ...]:
        """The samples if all are stored in memory, otherwise groups, pools and identities."""
        if all(isinstance(samples, ListedSamples) for samples in self._dealt):
            return tuple(self)
        identities = (thing for samples in self._dealt for thing in samples.identity)
        return (self._group_of, *self._pools, *identities)

    @property
    def listed(self) -> bool:
        """Whether the samples of all groups are in memory."""
        return all(samples.listed for samples in self._dealt)

    def __len__(self) -> int:
        return len(self._group_of)

    def _samples_of(self, client: int) -> IntArray:
        group, block = int(self._group_of[client]), client // _BLOCK
        same = np.count_nonzero(self._group_of[block * _BLOCK : client] == group)
        return self._pools[group][self._dealt[group][int(self._before[group, block] + same)]]
