"""A validation set: training samples that are held out before the others are dealt to clients."""

from __future__ import annotations

from typing import overload

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
    """Which training samples are held out, at random.

    Args:
        samples: n, in the training set.
        fraction: of them that is held out, in (0, 1).
        stream: where the randomness comes from; equal streams hold out equal samples.
        groups: [n], integers, the natural client of each sample. Groups are then held out whole,
            in random order, until they have ``fraction`` of the samples or more: samples of a
            group resemble each other, and may even overlap. None: single samples.

    Returns:
        Their indices, ascending: round(fraction n) of them, without groups.

    Raises:
        DataError: no sample would be held out, or none would be left.
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
    """Clients' samples of a training set from which some are held out.

    Args:
        samples: of each client, as places among the remaining ones.
        remaining: [remaining], their indices in the whole training set, ascending.
    """

    def __init__(self, samples: ClientSamples, remaining: IntArray) -> None:
        self._samples, self._remaining = samples, remaining

    @property
    def sizes(self) -> IntArray:
        """[clients], number of samples of each."""
        return self._samples.sizes

    @property
    def identity(self) -> tuple[object, ...]:
        """Also which samples remain."""
        return (*self._samples.identity, self._remaining)

    def __len__(self) -> int:
        return len(self._samples)

    @overload
    def __getitem__(self, index: int) -> IntArray: ...

    @overload
    def __getitem__(self, index: slice) -> list[IntArray]: ...

    def __getitem__(self, index: int | slice) -> IntArray | list[IntArray]:
        """Samples of a client, ascending; those of some clients, as a list."""
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self._remaining[self._samples[place]] for place in places]
        return self._remaining[self._samples[places]]
