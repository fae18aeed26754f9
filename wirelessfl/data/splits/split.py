"""The interface of splits, which deal training samples to clients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.data.labels import checked_number
from wirelessfl.errors import DataError
from wirelessfl.guard import UnfitError, of_project, returns
from wirelessfl.registry import Choice
from wirelessfl.returned import entries, indices


@dataclass(frozen=True)
class Samples:
    """Labels of a training set, and the natural client of each sample.

    Args:
        labels: [n, ...].
        groups: [n], integers, the natural client of each sample; None if the data set has none.
    """

    labels: NDArray[np.generic]
    groups: ArrayLike | None = None


def _dealt(
    value: Any, split: Split, samples: Samples, cell_of: IntArray, stream: Stream
) -> Sequence[IntArray]:
    """Check for an array of sample indices per client, none of them empty."""
    wanted = f"{len(cell_of)} arrays of sample indices, one per client"
    if isinstance(value, ClientSamples) and of_project(type(value)):
        return value  # computed on access, by a split of this project
    dealt = [
        indices(mine, len(samples.labels), f"{wanted} (client {client})")
        for client, mine in enumerate(entries(value, len(cell_of), wanted))
    ]
    for client, mine in enumerate(dealt):
        if not len(mine):
            raise UnfitError(f"no samples for client {client}", f"{wanted}, with at least one each")
    return dealt


def _owners(
    value: Any, split: Split, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream
) -> IntArray:
    """Check for a client per sample."""
    wanted = f"the client of each of the {len(labels)} samples"
    owner = indices(value, len(cell_of), wanted)
    if len(owner) != len(labels):
        raise UnfitError(f"{len(owner)} entries", wanted)
    return owner


@dataclass(frozen=True)
class Split(Choice, ABC):
    """Base class of splits."""

    by_groups: ClassVar[bool] = False
    """Whether clients are groups of the data set, so their labels cannot be chosen."""
    by_labels: ClassVar[bool] = False
    """Whether the split sorts samples by their label, of which each has one."""

    @returns(_dealt)
    @abstractmethod
    def deal(self, samples: Samples, cell_of: IntArray, stream: Stream) -> Sequence[IntArray]:
        """Indices of each client's samples, ascending.

        Args:
            samples: the training set.
            cell_of: [clients], sorted, the cell of each client.
            stream: randomness; equal streams give equal splits.

        Raises:
            DataError: the samples cannot be split in this way.
        """


@dataclass(frozen=True)
class OwnedSplit(Split):
    """Base class of splits that give every sample to exactly one client."""

    name = ""

    @returns(_owners)
    @abstractmethod
    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]; arguments as for ``deal``, with labels only."""

    @property
    def required(self) -> int:
        """Minimum number of samples per client."""
        return 1

    def deal(self, samples: Samples, cell_of: IntArray, stream: Stream) -> Sequence[IntArray]:
        """Indices of each client's samples, ascending."""
        check_count(len(samples.labels), len(cell_of), self.required)
        owner = self.owners(samples.labels, cell_of, stream)
        sizes = np.bincount(owner, minlength=len(cell_of))
        check_sizes(sizes, self.required)
        return by_owner(owner, sizes)


def check_count(samples: int, clients: int, required: int) -> None:
    """Raise unless there are enough samples for all clients.

    Raises:
        DataError: there are fewer than ``clients * required`` samples.
    """
    if clients * required > samples:
        each = f"{required} sample{'s' if required > 1 else ''}"
        raise DataError(
            f"{clients} clients with at least {each} each need {clients * required} samples, but "
            f"there are only {samples}. Use fewer clients{_lower(required)}."
        )


def check_sizes(sizes: IntArray, required: int) -> None:
    """Raise unless every client has enough samples.

    Args:
        sizes: [clients], number of samples of each client.
        required: minimum number of samples per client.

    Raises:
        DataError: a client has fewer than ``required`` samples.
    """
    if sizes.min() < required:
        fewer = f", fewer than min_samples={required}" if required > 1 else ""
        raise DataError(
            f"client {sizes.argmin()} has {sizes.min() or 'no'} samples{fewer}. Use fewer than "
            f"{len(sizes)} clients{_lower(required)}."
        )


def _lower(required: int) -> str:
    """The remedy of a smaller ``min_samples``, which only some splits have; empty if it is 1."""
    return " or lower min_samples" if required > 1 else ""


def by_owner(owner: IntArray, sizes: IntArray) -> list[IntArray]:
    """Indices of each client's samples, ascending because the sort is stable."""
    return np.split(np.argsort(owner, kind="stable"), np.cumsum(sizes)[:-1])


def blocks(length: int, count: int) -> IntArray:
    """Block index of each element, [length]; the sizes of ``count`` blocks differ by at most 1."""
    return np.arange(length, dtype=np.int64) * count // length


def check_shards(samples: int, shards: int, cell_of: IntArray) -> int:
    """Check that every client can get ``shards`` shards, and return ``shards`` as an int.

    Raises:
        DataError: a cell has too few samples for that many shards per client.
    """
    shards = checked_number("shards", shards, 1)
    sizes = np.bincount(cell_of)
    # The worst case: the cell with the most clients gets the fewest samples.
    needed, available = shards * int(sizes.max()), samples // len(sizes)
    if needed > available:
        where = " in a cell" if len(sizes) > 1 else ""
        raise DataError(
            f"{needed} shards{where} ({shards} per client) cannot be cut from {available} samples. "
            "Use fewer clients or shards."
        )
    return shards


def deal_shards(labels: NDArray[np.generic], clients: int, shards: int, stream: Stream) -> IntArray:
    """Deal ``shards`` random label shards to each client; returns the client of each sample."""
    return cut_shards(labels, stream.generator().permutation(shards * clients) // shards)


def cut_shards(labels: NDArray[np.generic], client_of_shard: IntArray) -> IntArray:
    """The client of each sample, [n], if the samples are sorted by label and cut into shards."""
    owner = np.empty(len(labels), dtype=np.int64)
    owner[np.argsort(labels, kind="stable")] = client_of_shard[
        blocks(len(labels), len(client_of_shard))
    ]
    return owner
