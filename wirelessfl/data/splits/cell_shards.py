"""A split by label shards whose cells have few labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.splits.split import OwnedSplit, check_shards, cut_shards


@dataclass(frozen=True)
class CellShards(OwnedSplit):
    """Label shards dealt cell by cell, so that a cell has fewer labels the more cells there are.

    The samples are sorted by label, in a random order of the labels, and cut into
    ``shards * clients`` shards. The first cell gets the first shards, and so on; each cell deals
    its shards at random to its clients. With ``noniid``, by contrast, cells of ten clients have
    nearly all of ten labels. HIST, Section VI-B, says that a cell has fewer labels with more cells,
    but not how its data are dealt. With one cell the shards are dealt as in ``noniid``.

    Args:
        shards: shards per client, >= 1.
    """

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
