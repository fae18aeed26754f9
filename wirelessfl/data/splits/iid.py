"""Random splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.base.needs import beside
from wirelessfl.data.dealt_samples import deal_fixed_sizes
from wirelessfl.data.splits.split import OwnedSplit, Samples, blocks


@dataclass(frozen=True)
class IID(OwnedSplit):
    """Random split into equal parts, whose sizes differ by at most one sample."""

    name = "iid"

    samples_per_client: Annotated[
        int | None,
        Field(
            ge=1,
            le=10**9,
            description="number of samples of every client (default: split all samples)",
        ),
    ] = None
    reuse: Annotated[
        bool,
        Field(description="reuse samples once they run out (needs --samples-per-client)"),
        beside("samples_per_client"),
    ] = False

    def deal(self, samples: Samples, cell_of: IntArray, stream: Stream) -> Sequence[IntArray]:
        """Indices of each client's samples, ascending."""
        if self.samples_per_client is None:
            return super().deal(samples, cell_of, stream)
        size, reuse = self.samples_per_client, self.reuse
        return deal_fixed_sizes(samples.labels, len(cell_of), size, None, reuse, stream)

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        owner = np.empty(len(labels), dtype=np.int64)
        owner[stream.generator().permutation(len(labels))] = blocks(len(labels), len(cell_of))
        return owner
