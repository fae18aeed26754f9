"""Splits with a fixed number of samples per client, which may reuse samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.data.client_samples import DealtSamples
from wirelessfl.errors import DataError

BLOCK = 1 << 14
"""Clients whose class mixtures are drawn together."""


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
        counts = np.broadcast_to(samples, (clients, 1))
        return DealtSamples([np.arange(len(labels))], [stream.child("pass")], counts)
    classes, sizes = np.unique(labels, return_counts=True)
    counts = _drawn_counts(clients, samples, np.full(len(classes), alpha), stream.child("mixture"))
    for label, size, wanted in zip(classes, sizes, counts.sum(axis=0), strict=True):
        if wanted > size and not reuse:
            raise DataError(
                f"label {label} has {size} samples, but this split needs {wanted}. Raise alpha, "
                "lower samples_per_client, or set reuse to use samples more than once."
            )
    decks = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    shuffles = [stream.child("class", number) for number in range(len(classes))]
    return DealtSamples(decks, shuffles, counts)


def _drawn_counts(
    clients: int, samples: int, alpha: FloatArray, stream: Stream
) -> NDArray[np.integer[Any]]:
    """Samples of each class that each client gets, [clients, classes], from its mixture.

    The counts are drawn after the mixtures of all clients. A second generator draws the mixtures
    again, in blocks, so that they are never in memory together.
    """
    mixtures, draw = stream.generator(), stream.generator()
    counts = np.empty((clients, len(alpha)), dtype=np.min_scalar_type(samples))
    blocks = [counts[first : first + BLOCK] for first in range(0, clients, BLOCK)]
    for block in blocks:
        draw.dirichlet(alpha, len(block))
    for block in blocks:
        block[:] = draw.multinomial(samples, mixtures.dirichlet(alpha, len(block)))
    return counts
