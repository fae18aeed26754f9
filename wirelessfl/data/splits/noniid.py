"""Splits by label shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.splits.split import OwnedSplit, check_shards, deal_shards


@dataclass(frozen=True)
class NonIID(OwnedSplit):
    """Label shards dealt at random over all clients (McMahan et al., AISTATS 2017, Section 3).

    The samples, sorted by label, are cut into ``shards * clients`` shards.

    Args:
        shards: shards per client, >= 1.
    """

    by_labels: ClassVar[bool] = True

    shards: Annotated[int, Field(ge=1, description="label shards per client")] = 2

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        clients = len(cell_of)
        shards = check_shards(len(labels), self.shards, np.zeros(clients, dtype=np.int64))
        return deal_shards(labels, clients, shards, stream.child("cell", 0))
