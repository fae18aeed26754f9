"""Splits with Dirichlet class shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.base.needs import beside, without
from wirelessfl.data.dealt_samples import deal_fixed_sizes
from wirelessfl.data.splits.split import OwnedSplit, Samples

TRIES = 1000


@dataclass(frozen=True)
class Dirichlet(OwnedSplit):
    """Each class is shared among the clients in Dirichlet(alpha) proportions (Hsu et al., 2019).

    For each class, client i gets the share q_i of its samples (as in Yurochkin et al., ICML 2019).
    A smaller ``alpha`` is more unequal. Shares are redrawn until every client has ``min_samples``.
    With ``samples_per_client``, each client's class mixture is drawn instead.
    """

    by_labels: ClassVar[bool] = True

    alpha: Annotated[
        float, Field(gt=0, le=1e100, description="concentration of the Dirichlet split")
    ] = 0.5
    min_samples: Annotated[
        int | None,
        Field(ge=1, description="minimum number of samples per client (default: 1)"),
        without("samples_per_client", ": choose one of them"),
    ] = None
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

    @property
    def required(self) -> int:
        """Minimum number of samples per client."""
        return self.min_samples or 1

    def deal(self, samples: Samples, cell_of: IntArray, stream: Stream) -> Sequence[IntArray]:
        """Indices of each client's samples, ascending."""
        if not 0 < self.alpha < math.inf:
            raise DataError(f"alpha is {self.alpha}; it must be positive and finite.")
        if self.samples_per_client is None:
            return super().deal(samples, cell_of, stream)
        size, reuse = self.samples_per_client, self.reuse
        return deal_fixed_sizes(samples.labels, len(cell_of), size, self.alpha, reuse, stream)

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        clients = len(cell_of)
        _, class_sizes = np.unique(labels, return_counts=True)
        best = -1
        for attempt in range(TRIES):
            draw = stream.generator(attempt)
            shares = draw.dirichlet(np.full(clients, self.alpha), size=len(class_sizes))
            # Cumulative shares are rounded with one random offset per class: every sample is dealt,
            # and counts are unbiased and within one of the exact share, even for tiny classes.
            offsets = draw.random((len(class_sizes), 1))
            cuts = np.cumsum(shares, axis=1) * class_sizes[:, np.newaxis] + offsets
            cuts = np.minimum(cuts.astype(np.int64), class_sizes[:, np.newaxis])
            cuts[:, -1] = class_sizes
            counts = np.diff(cuts, axis=1, prepend=0)
            smallest = int(counts.sum(axis=0).min())
            if smallest >= self.required:
                break
            best = max(best, smallest)
        else:
            lower = ", lower min_samples," if self.required > 1 else ""
            raise DataError(
                f"no Dirichlet split with alpha={self.alpha} gave each of {clients} clients "
                f"min_samples={self.required} in {TRIES} draws; the best left a client with "
                f"{best}. Raise alpha{lower} or use fewer clients."
            )
        shuffled = draw.permutation(len(labels))
        by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
        owner = np.empty(len(labels), dtype=np.int64)
        owner[by_class] = np.repeat(np.tile(np.arange(clients), len(class_sizes)), counts.ravel())
        return owner
