"""Splits with a fixed number of samples per client, which may reuse samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from channels.streams import Stream
from wirelessfl.data.client_samples import DealtSamples
from wirelessfl.data.dealt_counts import EqualCounts, MixtureCounts
from wirelessfl.errors import DataError


def deal_fixed_sizes(
    labels: NDArray[np.generic],
    clients: int,
    samples: int,
    alpha: float | None,
    reuse: bool,
    stream: Stream,
) -> DealtSamples:
    """Deal ``samples`` samples to each client i, with class mixture q_i ~ Dir(alpha, ..., alpha).

    Every class (with ``alpha=None`` the whole set) is dealt in random order. With ``reuse`` it is
    shuffled and dealt again once it runs out, so no sample is used twice before all samples of its
    class have been used once.

    Args:
        labels: [n].
        clients: number of clients.
        samples: samples per client.
        alpha: concentration of the class mixture; None for the mixture of the whole set.
        reuse: whether samples may be used more than once.
        stream: randomness.

    Returns:
        For each client its indices into ``labels``, ascending; [samples] each. They are computed
        on access, see ``DealtSamples``.

    Raises:
        DataError: a class or the set has too few samples and ``reuse`` is false.
    """
    if alpha is None:
        # Clients get consecutive pieces of the shuffled set, reshuffled only once it is used up.
        if clients * samples > len(labels) and not reuse:
            raise DataError(
                f"{clients} clients with {samples} samples each need {clients * samples}, but "
                f"there are only {len(labels)}. Lower samples_per_client, or set reuse to use "
                "samples more than once."
            )
        decks, shuffles = [np.arange(len(labels))], [stream.child("pass")]
        return DealtSamples(decks, shuffles, EqualCounts(clients, samples))
    classes, sizes = np.unique(labels, return_counts=True)
    mixture = np.full(len(classes), alpha)
    counts = MixtureCounts(clients, samples, mixture, stream.child("mixture"))
    for label, size, wanted in zip(classes, sizes, counts.begins[-1], strict=True):
        if wanted > size and not reuse:
            raise DataError(
                f"label {label} has {size} samples, but this split needs {wanted}. Raise alpha, "
                "lower samples_per_client, or set reuse to use samples more than once."
            )
    decks = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    shuffles = [stream.child("class", number) for number in range(len(classes))]
    return DealtSamples(decks, shuffles, counts)
