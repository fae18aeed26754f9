"""A split that is random over cells and by label shards within each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.splits.split import OwnedSplit, blocks, check_shards, deal_shards


@dataclass(frozen=True)
class CellIID(OwnedSplit):
    """Equal random parts per cell, dealt within the cell by label shards (HIST, Section VI).

    With one cell the split equals ``noniid``.

    Args:
        shards: shards per client, >= 1.
    """

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
