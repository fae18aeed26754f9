"""Random splits: of samples, by Dirichlet class shares, and of natural groups of samples."""

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
from wirelessfl.data.labels import checked_groups
from wirelessfl.data.splits.split import OwnedSplit, Samples, Split, blocks, by_owner

TRIES = 1000
SamplesPerClient = Annotated[
    int | None,
    Field(
        ge=1,
        le=10**9,
        description="number of samples of every client (default: split all samples)",
    ),
]
Reuse = Annotated[
    bool,
    Field(description="reuse samples once they run out (needs --samples-per-client)"),
    beside("samples_per_client"),
]


@dataclass(frozen=True)
class IID(OwnedSplit):
    """Random split into equal parts, whose sizes differ by at most one sample."""

    name = "iid"

    samples_per_client: SamplesPerClient = None
    reuse: Reuse = False

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


@dataclass(frozen=True)
class Dirichlet(OwnedSplit):
    """Each class is shared among the clients in Dirichlet(alpha) proportions (Hsu et al., 2019).

    For each class, client i gets the share q_i of its samples (as in Yurochkin et al., ICML 2019).
    A smaller ``alpha`` is more unequal. Shares are redrawn until every client has ``min_samples``.
    With ``samples_per_client``, each client's class mixture is drawn instead.
    """

    name = "dirichlet"

    by_labels: ClassVar[bool] = True

    alpha: Annotated[
        float, Field(gt=0, le=1e100, description="concentration of the Dirichlet split")
    ] = 0.5
    min_samples: Annotated[
        int | None,
        Field(ge=1, description="minimum number of samples per client (default: 1)"),
        without("samples_per_client", ": choose one of them"),
    ] = None
    samples_per_client: SamplesPerClient = None
    reuse: Reuse = False

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


@dataclass(frozen=True)
class Natural(Split):
    """Natural groups of the data set, such as speakers, one per client.

    Clients get groups that are drawn at random from those with at least ``min_samples`` samples.
    If there are fewer such groups than clients, ``reuse`` deals each of them repeatedly; the
    numbers of clients per group differ by at most one. Clients are sorted by group number.
    """

    name = "natural"

    by_groups: ClassVar[bool] = True

    min_samples: Annotated[
        int | None, Field(ge=1, description="minimum number of samples per client (default: 1)")
    ] = None
    reuse: Annotated[
        bool, Field(description="allow several clients to hold the same group of samples")
    ] = False

    def deal(self, samples: Samples, cell_of: IntArray, stream: Stream) -> Sequence[IntArray]:
        """Indices of each client's samples, ascending."""
        clients, required = len(cell_of), self.min_samples or 1
        if samples.groups is None:
            raise DataError(
                'split "natural" needs groups (the natural client of each sample), but this data '
                "set has none. Choose another split."
            )
        groups = checked_groups(samples.groups, len(samples.labels))
        _, group_of_sample, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        eligible = np.flatnonzero(sizes >= required)
        if len(eligible) < (1 if self.reuse else clients):
            fewer = f"Use at most {len(eligible)} clients, or set reuse to deal groups again."
            raise DataError(
                f"only {len(eligible)} of {len(sizes)} groups have at least {required} samples, "
                f"too few for {clients} clients. "
                f"{fewer if len(eligible) else 'Lower min_samples.'}"
            )
        whole, rest = divmod(clients, len(eligible))
        drawn = stream.generator().choice(eligible, rest, replace=False)
        chosen = np.sort(np.concatenate([np.tile(eligible, whole), drawn]))
        by_group = by_owner(group_of_sample, sizes)
        return [by_group[group] for group in chosen.tolist()]
