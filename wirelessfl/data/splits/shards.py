"""Splits by label shards: over all clients, within random cells, and with few labels per cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.data.labels import checked_number
from wirelessfl.data.splits.split import OwnedSplit, blocks


@dataclass(frozen=True)
class NonIID(OwnedSplit):
    """Label shards dealt at random over all clients (McMahan et al., AISTATS 2017, Section 3).

    The samples, sorted by label, are cut into ``shards * clients`` shards.
    """

    name = "noniid"
    by_labels: ClassVar[bool] = True

    shards: Annotated[int, Field(ge=1, description="label shards per client")] = 2

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        clients = len(cell_of)
        shards = check_shards(len(labels), self.shards, np.zeros(clients, dtype=np.int64))
        return deal_shards(labels, clients, shards, stream.child("cell", 0))


@dataclass(frozen=True)
class CellIID(OwnedSplit):
    """Equal random parts per cell, dealt within the cell by label shards (HIST, Section VI).

    With one cell the split equals ``noniid``.
    """

    name = "cell-iid"
    by_labels: ClassVar[bool] = True

    shards: Annotated[int, Field(ge=1, description="label shards per client")] = 2

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        shards = check_shards(len(labels), self.shards, cell_of)
        cells = int(cell_of[-1]) + 1
        cell_of_sample = np.empty(len(labels), dtype=np.int64)
        cell_of_sample[stream.generator().permutation(len(labels))] = blocks(len(labels), cells)
        owner = np.empty(len(labels), dtype=np.int64)
        for cell in range(cells):
            members = np.flatnonzero(cell_of == cell)
            mine = np.flatnonzero(cell_of_sample == cell)
            dealt = deal_shards(labels[mine], len(members), shards, stream.child("cell", cell))
            owner[mine] = members[dealt]
        return owner


@dataclass(frozen=True)
class CellShards(OwnedSplit):
    """Label shards dealt cell by cell, so that a cell has fewer labels the more cells there are.

    The samples are sorted by label, in a random order of the labels, and cut into
    ``shards * clients`` shards. The first cell gets the first shards, and so on; each cell deals
    its shards at random to its clients. With ``noniid``, by contrast, cells of ten clients have
    nearly all of ten labels. HIST, Section VI-B, says that a cell has fewer labels with more cells,
    but not how its data are dealt. With one cell the shards are dealt as in ``noniid``.
    """

    name = "cell-shards"
    by_labels: ClassVar[bool] = True

    shards: Annotated[int, Field(ge=1, description="label shards per client")] = 2

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        clients = len(cell_of)
        shards = check_shards(len(labels), self.shards, np.zeros(clients, dtype=np.int64))
        _, label = np.unique(labels, return_inverse=True)
        place = stream.child("labels").generator().permutation(label.max() + 1)
        client_of_shard = np.repeat(np.arange(clients), shards)
        for cell in range(int(cell_of[-1]) + 1):
            mine = np.flatnonzero(cell_of[client_of_shard] == cell)
            owners = client_of_shard[mine]
            client_of_shard[mine] = stream.child("cell", cell).generator().permutation(owners)
        return cut_shards(place[label], client_of_shard)


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
