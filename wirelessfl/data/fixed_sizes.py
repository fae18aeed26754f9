"""Splits with a given number of samples a client, re-using samples where that is asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from channels.streams import Stream
from wirelessfl.data.checks import IntArray
from wirelessfl.errors import DataError


def deal_fixed_sizes(
    labels: NDArray[np.generic],
    clients: int,
    samples: int,
    alpha: float | None,
    reuse: bool,
    stream: Stream,
) -> list[IntArray]:
    """``samples`` samples for each client, classes mixed as q_i ~ Dir(alpha, ..., alpha).

    Every class is handed out in a random order; with ``reuse`` it is shuffled and handed out again
    once it is used up, so that no sample is used twice before all of its class are used once.

    Args:
        labels: [n].
        clients: number of clients.
        samples: of each client.
        alpha: concentration of the class mixture; None for that of the whole set.
        reuse: whether a sample may be used more than once.
        stream: where the randomness comes from.

    Returns:
        For each client its indices into ``labels``, ascending; [samples] each.

    Raises:
        DataError: a class has too few samples, and they may not be used again.
    """
    classes, sizes = np.unique(labels, return_counts=True)
    if alpha is None:
        # Consecutive pieces of one shuffled set: of n samples, the first n are all different.
        passes = -(-clients * samples // len(labels))
        if passes > 1 and not reuse:
            raise DataError(
                f"{clients} clients with {samples} samples each need {clients * samples}, and "
                f"there are {len(labels)}. Lower samples_per_client, or let samples be used again: "
                "reuse."
            )
        shuffles = [stream.child("pass", i).generator() for i in range(passes)]
        order = np.concatenate([shuffle.permutation(len(labels)) for shuffle in shuffles])
        order = order[: clients * samples]
        return [np.sort(part) for part in order.reshape(clients, samples)]
    draw = stream.child("mixture").generator()
    shares = draw.dirichlet(np.full(len(classes), alpha), size=clients)
    counts = draw.multinomial(samples, shares)  # [clients, classes]
    parts: list[list[IntArray]] = [[] for _ in range(clients)]
    for number, (label, size) in enumerate(zip(classes, sizes, strict=True)):
        wanted = counts[:, number]
        passes = max(1, -(-int(wanted.sum()) // int(size)))
        if passes > 1 and not reuse:
            raise DataError(
                f"label {label} has {size} samples, and this split wants {wanted.sum()}. Raise "
                "alpha, lower samples_per_client, or let samples be used again: reuse."
            )
        own = np.flatnonzero(labels == label)
        shuffles = [stream.child("class", number, i).generator() for i in range(passes)]
        order = np.concatenate([own[shuffle.permutation(size)] for shuffle in shuffles])
        for part, piece in zip(parts, np.split(order, np.cumsum(wanted))[:clients], strict=True):
            part.append(piece)
    return [np.sort(np.concatenate(part)) for part in parts]
