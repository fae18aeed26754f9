"""Validation sets: training samples held out before the others are dealt to clients."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.data.labels import checked_groups
from wirelessfl.errors import DataError


def hold_out(
    samples: int, fraction: float, stream: Stream, groups: ArrayLike | None = None
) -> IntArray:
    """Choose at random the training samples to hold out.

    Args:
        samples: number n of training samples.
        fraction: fraction of the samples to hold out, in (0, 1).
        stream: randomness; equal streams hold out equal samples.
        groups: [n], integers, the natural client of each sample. Whole groups are held out, in
            random order, until they have at least ``fraction`` of the samples, because samples of
            one group are similar and may overlap. None to hold out individual samples.

    Returns:
        Indices of the held-out samples, ascending; without groups, round(fraction * n) of them.

    Raises:
        DataError: no sample would be held out, or none would remain.
    """
    wanted = round(fraction * samples)
    if wanted == 0:
        raise DataError(
            f"validation_fraction is {fraction}, which holds out none of the {samples} training "
            f"samples. Give at least {1 / samples:.2g}, or 0 for no validation set."
        )
    if groups is None:
        held = stream.generator().permutation(samples)[:wanted]
    else:
        groups = checked_groups(groups, samples)
        _, group_of_sample, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        order = stream.generator().permutation(len(sizes))
        count = int(np.searchsorted(np.cumsum(sizes[order]), wanted)) + 1
        held = np.flatnonzero(np.isin(group_of_sample, order[:count]))
    if len(held) == samples:
        raise DataError(
            f"validation_fraction is {fraction}, which leaves none of the {samples} training "
            "samples to train on. Lower it."
        )
    return np.sort(held)


class RemainingSamples(ClientSamples):
    """Clients' samples in a training set from which some samples are held out.

    Args:
        samples: each client's samples, as indices into ``remaining``.
        remaining: indices of the remaining samples in the whole training set, ascending.
    """

    def __init__(self, samples: ClientSamples, remaining: IntArray) -> None:
        self._samples, self._remaining = samples, remaining

    @property
    def sizes(self) -> IntArray:
        """Number of samples of each client, [clients]."""
        return self._samples.sizes

    @property
    def identity(self) -> tuple[object, ...]:
        """The identity of ``samples``, and the indices of the remaining samples."""
        return (*self._samples.identity, self._remaining)

    @property
    def listed(self) -> bool:
        """Whether the samples are in memory."""
        return self._samples.listed

    def __len__(self) -> int:
        return len(self._samples)

    def _samples_of(self, client: int) -> IntArray:
        return self._remaining[self._samples[client]]
