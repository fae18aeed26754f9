"""Splits by the natural clients of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.data.labels import checked_groups
from wirelessfl.data.splits.split import Samples, Split, by_owner


@dataclass(frozen=True)
class Natural(Split):
    """Natural groups of the data set, such as speakers, one per client.

    Clients get groups that are drawn at random from those with at least ``min_samples`` samples.
    If there are fewer such groups than clients, ``reuse`` deals each of them repeatedly; the
    numbers of clients per group differ by at most one. Clients are sorted by group number.
    """

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
