"""The ``half`` split by labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.label_splits import deal_labels
from wirelessfl.data.splits.split import OwnedSplit


@dataclass(frozen=True)
class Half(OwnedSplit):
    """Half of the labels for half of the clients, and the rest for the others (Chang et al., A.2).

    See ``deal_labels`` for the rounding.
    """

    by_labels: ClassVar[bool] = True

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        return deal_labels(labels, len(cell_of), self.name, stream)
