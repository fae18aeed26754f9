"""The samples of each client, listed or computed on demand, and those held out for validation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.data.labels import checked_groups

_BLOCK = 256


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
        identities = (part for samples in self._dealt for part in samples.identity)
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


def hold_out(
    samples: int, fraction: float, stream: Stream, groups: ArrayLike | None = None
) -> IntArray:
    """Choose at random the training samples to hold out.

    >>> from channels import Stream
    >>> from wirelessfl.data import hold_out
    >>> len(hold_out(100, 0.2, Stream(1)))
    20

    Args:
        samples: number n of training samples.
        fraction: fraction of the samples to hold out, in (0, 1).
        stream: randomness; equal streams hold out equal samples.
        groups: [n], integers, the natural client of each sample. Whole groups are held out, in
            random order, until they have at least ``fraction`` of the samples, because samples of
            one group are similar and may overlap. None to hold out individual samples.

    Returns:
        Indices of the held-out samples, ascending; without groups, round(fraction * n) of them.

    Raises:
        DataError: no sample would be held out, or none would remain.
    """
    count_held = round(fraction * samples)
    if count_held == 0:
        raise DataError(
            f"validation_fraction is {fraction}, which holds out none of the {samples} training "
            f"samples. Give at least {1 / samples:.2g}, or 0 for no validation set."
        )
    if groups is None:
        held = stream.generator().permutation(samples)[:count_held]
    else:
        groups = checked_groups(groups, samples)
        _, group_of_sample, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        order = stream.generator().permutation(len(sizes))
        count = int(np.searchsorted(np.cumsum(sizes[order]), count_held)) + 1
        held = np.flatnonzero(np.isin(group_of_sample, order[:count]))
    if len(held) == samples:
        raise DataError(
            f"validation_fraction is {fraction}, which leaves none of the {samples} training "
            "samples to train on. Lower it."
        )
    return np.sort(held)


class RemainingSamples(ClientSamples):
    """Clients' samples in a training set from which some samples are held out.

    Args:
        samples: each client's samples, as indices into ``remaining``.
        remaining: indices of the remaining samples in the whole training set, ascending.
    """

    def __init__(self, samples: ClientSamples, remaining: IntArray) -> None:
        self._samples, self._remaining = samples, remaining

    @property
    def sizes(self) -> IntArray:
        """Number of samples of each client, [clients]."""
        return self._samples.sizes

    @property
    def identity(self) -> tuple[object, ...]:
        """The identity of ``samples``, and the indices of the remaining samples."""
        return (*self._samples.identity, self._remaining)

    @property
    def listed(self) -> bool:
        """Whether the samples are in memory."""
        return self._samples.listed

    def __len__(self) -> int:
        return len(self._samples)

    def _samples_of(self, client: int) -> IntArray:
        return self._remaining[self._samples[client]]
