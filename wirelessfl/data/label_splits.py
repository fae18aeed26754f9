"""Splits that say which labels a client holds (Chang et al., "Federated Learning with Dynamic
Client Arrival and Departure", Appendix A.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.errors import DataError

LABEL_SPLITS = ("two-shard", "half", "partial-overlap", "distinct")
"""Kinds of split by labels."""

_BATCHES = 10


def deal_labels(labels: NDArray[np.generic], clients: int, kind: str, stream: Stream) -> IntArray:
    """Whose each sample is, where labels are dealt to clients; every sample is somebody's.

    Which labels, clients and samples come together is drawn; cells play no part.

    - ``two-shard``: each label is cut into shards, 2m for m clients and as many of each label, give
      or take one; every client gets two shards of two labels. Where there are more labels than
      shards (100 labels, 20 clients), ten batches of labels (2m if that is less) take the place of
      labels, and a shard has its share of each label of its batch.
    - ``half``: half of the labels for half of the clients, the rest for the others, each label in
      equal parts for all clients of a half.
    - ``partial-overlap``: likewise, but each half of the clients has 60 % of the labels, so that
      20 % are in common; of their samples each half gets half. Few labels are rounded, so that at
      least one is in common.
    - ``distinct``: every client has labels that nobody else has, as many as the others, give or
      take one.

    "Equal parts" differ by one sample at most, in all and of each label; halves of odd numbers by
    one.

    Args:
        labels: [n], at least one.
        clients: number of clients.
        kind: one of ``LABEL_SPLITS``.
        stream: where the randomness comes from; equal streams give equal splits.

    Returns:
        [n], the client of each sample.

    Raises:
        DataError: too few labels or clients, or fewer samples of a label than shards.
    """
    names, label_of = np.unique(labels, return_inverse=True)
    draw = stream.generator()
    if kind == "two-shard":
        return _two_shard(names, label_of, clients, draw)
    if kind == "distinct":
        if clients > len(names):
            raise DataError(
                f'clients is {clients}: split "distinct" gives each labels of its own, and there '
                f"are {len(names)} labels. Have at most {len(names)} clients, or choose two-shard."
            )
        owner: IntArray = draw.permutation(np.arange(len(names)) % clients)[label_of]
        return owner
    if clients < 2:
        raise DataError(f'clients is {clients}: split "{kind}" needs two halves. Choose iid.')
    min_labels = 2 if kind == "half" else 3
    if len(names) < min_labels:
        raise DataError(
            f'split "{kind}" needs at least {min_labels} labels, and labels has {len(names)}. '
            "Choose iid."
        )
    if kind == "half":
        half = draw.permutation(np.arange(len(names)) % 2)[label_of]
    else:
        half = _overlapping(len(names), label_of, draw)
    half_of_client = draw.permutation(np.arange(clients) % 2)
    owner = np.empty(len(labels), dtype=np.int64)
    for number in range(2):
        members, mine = np.flatnonzero(half_of_client == number), np.flatnonzero(half == number)
        owner[mine] = members[deal_evenly(label_of[mine], len(members), draw)]
    return owner


def deal_evenly(labels: NDArray[np.generic], shares: int, draw: np.random.Generator) -> IntArray:
    """[n], a part for each sample, at random: equal numbers in all and of each label, within one.

    Args:
        labels: [n].
        shares: how many.
        draw: shuffles the samples of each label.
    """
    shuffled = draw.permutation(len(labels))
    by_label = shuffled[np.argsort(labels[shuffled], kind="stable")]
    dealt = np.empty(len(labels), dtype=np.int64)
    dealt[by_label] = np.arange(len(labels)) % shares
    return dealt


def _overlapping(count: int, label_of: IntArray, draw: np.random.Generator) -> IntArray:
    """[n], the half of the clients that gets each sample; of common labels, one after the other."""
    each = max((6 * count + 5) // 10, count // 2 + 1)  # labels of a half: 60 %, more than half
    place = draw.permutation(count)[label_of]
    half = np.where(place < each, 0, 1)
    common = np.flatnonzero((place >= count - each) & (place < each))
    half[common] = deal_evenly(label_of[common], 2, draw)
    return half


def _two_shard(
    names: NDArray[np.generic], label_of: IntArray, clients: int, draw: np.random.Generator
) -> IntArray:
    shards = 2 * clients
    if len(names) < 2:
        raise DataError(
            f'split "two-shard" gives each client two labels, and labels has {len(names)}. '
            "Choose iid."
        )
    decks = len(names) if len(names) <= shards else min(_BATCHES, shards)
    deck_of_label = draw.permutation(np.arange(len(names)) % decks)
    deck_of_shard = draw.permutation(decks)[np.arange(shards) % decks]
    client_of_shard = _two_decks_each(deck_of_shard, decks, draw)
    owner = np.empty(len(label_of), dtype=np.int64)
    for deck in range(decks):
        shards_here = np.flatnonzero(deck_of_shard == deck)
        mine = np.flatnonzero(deck_of_label[label_of] == deck)
        if len(mine) < len(shards_here):
            inside = names[deck_of_label == deck].tolist()
            raise DataError(
                f'labels {inside} have {len(mine)} samples, and split "two-shard" cuts them into '
                f"{len(shards_here)} shards. Have fewer clients ({clients}), or choose dirichlet."
            )
        owner[mine] = client_of_shard[
            shards_here[deal_evenly(label_of[mine], len(shards_here), draw)]
        ]
    return owner


def _two_decks_each(deck_of_shard: IntArray, decks: int, draw: np.random.Generator) -> IntArray:
    """[2 clients], the client of each shard: two at random, of two decks."""
    held = draw.permutation(len(deck_of_shard)).reshape(-1, 2)
    for deck in range(decks):
        # Who has two of this deck changes one with somebody who has none. There are enough of
        # these: no deck has more shards than there are clients.
        of_deck = deck_of_shard[held] == deck
        twice, never = np.flatnonzero(of_deck.all(axis=1)), np.flatnonzero(~of_deck.any(axis=1))
        other = draw.choice(never, len(twice), replace=False)
        held[twice, 0], held[other, 0] = held[other, 0], held[twice, 0]
    client_of_shard = np.empty(len(deck_of_shard), dtype=np.int64)
    client_of_shard[held] = np.arange(len(held))[:, np.newaxis]
    return client_of_shard
