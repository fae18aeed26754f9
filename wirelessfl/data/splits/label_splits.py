"""Splits by labels: shards of samples sorted by label, and labels that are assigned to clients.

The latter are those of Chang et al., "Federated Learning with Dynamic Client Arrival and
Departure", Appendix A.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.data.labels import checked_number
from wirelessfl.data.splits.split import OwnedSplit, blocks

BATCHES = 10
"""Number of batches of labels that are cut into shards if there are too many labels."""


@dataclass(frozen=True)
class NonIID(OwnedSplit):
    """Label shards dealt at random over all clients (McMahan et al., AISTATS 2017, Section 3).

    The samples, sorted by label, are cut into ``shards * clients`` shards.
    """

    name = "noniid"
    by_labels: ClassVar[bool] = True

    shards: Annotated[int, Field(ge=1, description="label shards per client")] = 2

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        clients = len(cell_of)
        shards = check_shards(len(labels), self.shards, np.zeros(clients, dtype=np.int64))
        return deal_shards(labels, clients, shards, stream.child("cell", 0))


@dataclass(frozen=True)
class CellIID(OwnedSplit):
    """Equal random parts per cell, dealt within the cell by label shards (HIST, Section VI).

    With one cell the split equals ``noniid``.
    """

    name = "cell-iid"
    by_labels: ClassVar[bool] = True

    shards: Annotated[int, Field(ge=1, description="label shards per client")] = 2

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        shards = check_shards(len(labels), self.shards, cell_of)
        cells = int(cell_of[-1]) + 1
        cell_of_sample = np.empty(len(labels), dtype=np.int64)
        cell_of_sample[stream.generator().permutation(len(labels))] = blocks(len(labels), cells)
        owner = np.empty(len(labels), dtype=np.int64)
        for cell in range(cells):
            members = np.flatnonzero(cell_of == cell)
            mine = np.flatnonzero(cell_of_sample == cell)
            dealt = deal_shards(labels[mine], len(members), shards, stream.child("cell", cell))
            owner[mine] = members[dealt]
        return owner


@dataclass(frozen=True)
class CellShards(OwnedSplit):
    """Label shards dealt cell by cell, so that a cell has fewer labels the more cells there are.

    The samples are sorted by label, in a random order of the labels, and cut into
    ``shards * clients`` shards. The first cell gets the first shards, and so on; each cell deals
    its shards at random to its clients. With ``noniid``, by contrast, cells of ten clients have
    nearly all of ten labels. HIST, Section VI-B, says that a cell has fewer labels with more cells,
    but not how its data are dealt. With one cell the shards are dealt as in ``noniid``.
    """

    name = "cell-shards"
    by_labels: ClassVar[bool] = True

    shards: Annotated[int, Field(ge=1, description="label shards per client")] = 2

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        clients = len(cell_of)
        shards = check_shards(len(labels), self.shards, np.zeros(clients, dtype=np.int64))
        _, label = np.unique(labels, return_inverse=True)
        place = stream.child("labels").generator().permutation(label.max() + 1)
        client_of_shard = np.repeat(np.arange(clients), shards)
        for cell in range(int(cell_of[-1]) + 1):
            mine = np.flatnonzero(cell_of[client_of_shard] == cell)
            owners = client_of_shard[mine]
            client_of_shard[mine] = stream.child("cell", cell).generator().permutation(owners)
        return cut_shards(place[label], client_of_shard)


def check_shards(samples: int, shards: int, cell_of: IntArray) -> int:
    """Check that every client can get ``shards`` shards, and return ``shards`` as an int."""
    shards = checked_number("shards", shards, 1)
    sizes = np.bincount(cell_of)
    # The worst case: the cell with the most clients gets the fewest samples.
    needed, available = shards * int(sizes.max()), samples // len(sizes)
    if needed > available:
        where = " in a cell" if len(sizes) > 1 else ""
        raise DataError(
            f"{needed} shards{where} ({shards} per client) cannot be cut from {available} samples. "
            "Use fewer clients or shards."
        )
    return shards


def deal_shards(labels: NDArray[np.generic], clients: int, shards: int, stream: Stream) -> IntArray:
    """Deal ``shards`` random label shards to each client; returns the client of each sample."""
    return cut_shards(labels, stream.generator().permutation(shards * clients) // shards)


def cut_shards(labels: NDArray[np.generic], client_of_shard: IntArray) -> IntArray:
    """The client of each sample, [n], if the samples are sorted by label and cut into shards."""
    owner = np.empty(len(labels), dtype=np.int64)
    owner[np.argsort(labels, kind="stable")] = client_of_shard[
        blocks(len(labels), len(client_of_shard))
    ]
    return owner


@dataclass(frozen=True)
class LabelSplit(OwnedSplit):
    """Base class of splits by labels; see ``deal_labels`` for the rounding."""

    name = ""
    by_labels: ClassVar[bool] = True

    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]."""
        return deal_labels(labels, len(cell_of), self.name, stream)


@dataclass(frozen=True)
class TwoShard(LabelSplit):
    """Two shards with different labels for each client (Chang et al., Appendix A.2)."""

    name = "two-shard"


@dataclass(frozen=True)
class Half(LabelSplit):
    """Half of the labels for half of the clients, and the rest for the others (Chang et al., A.2).

    With an odd number of labels or clients, the halves differ by one.
    """

    name = "half"


@dataclass(frozen=True)
class PartialOverlap(LabelSplit):
    """60 % of the labels for each half of the clients, so 20 % are shared (Chang et al., A.2)."""

    name = "partial-overlap"


@dataclass(frozen=True)
class Distinct(LabelSplit):
    """Different labels for every client (Chang et al., Appendix A.2)."""

    name = "distinct"


def deal_labels(labels: NDArray[np.generic], clients: int, kind: str, stream: Stream) -> IntArray:
    """Assign labels to clients, and every sample to a client that has its label.

    The assignment is random and independent of cells.

    - ``two-shard``: labels are cut into 2m shards for m clients; the numbers of shards per label
      differ by at most one. Every client gets two shards with different labels. If there are more
      labels than shards (e.g. 100 labels and 20 clients), labels are grouped into ten batches (or
      2m, if that is less), which are cut into shards instead of the labels; a shard has an equal
      share of each label of its batch.
    - ``half``: half of the clients have half of the labels, the other clients have the rest; each
      label is divided equally among the clients of its half.
    - ``partial-overlap``: as ``half``, but each half of the clients has 60 % of the labels. The two
      halves share 20 % of the labels, and each gets half of the samples of a shared label. Numbers
      are rounded so that at least one label is shared.
    - ``distinct``: no two clients have a label in common; numbers of labels differ by at most one.

    Equal parts differ by at most one sample, in total and per label. Halves of an odd number of
    labels or clients differ by one.

    Args:
        labels: [n], at least one.
        clients: number of clients.
        kind: one of the above.
        stream: randomness; equal streams give equal splits.

    Returns:
        [n], the client of each sample.
    """
    names, label_of = np.unique(labels, return_inverse=True)
    draw = stream.generator()
    if kind == "two-shard":
        return _two_shard(names, label_of, clients, draw)
    if kind == "distinct":
        if clients > len(names):
            raise DataError(
                f'clients is {clients}: split "distinct" gives each client different labels, '
                f"but there are only {len(names)} labels. Use at most {len(names)} clients, or "
                "choose two-shard."
            )
        owner: IntArray = draw.permutation(np.arange(len(names)) % clients)[label_of]
        return owner
    if clients < 2:
        raise DataError(
            f'clients is {clients}: split "{kind}" needs at least 2 clients. Add clients, or '
            "choose iid."
        )
    min_labels = 2 if kind == "half" else 3
    if len(names) < min_labels:
        raise DataError(
            f'split "{kind}" needs at least {min_labels} labels, but labels has {len(names)}. '
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
    """Divide samples into random parts whose sizes differ by at most one, in total and per label.

    Args:
        labels: [n].
        shares: number of parts.
        draw: generator that shuffles the samples of each label.

    Returns:
        [n], the part of each sample, from 0.
    """
    shuffled = draw.permutation(len(labels))
    by_label = shuffled[np.argsort(labels[shuffled], kind="stable")]
    dealt = np.empty(len(labels), dtype=np.int64)
    dealt[by_label] = np.arange(len(labels)) % shares
    return dealt


def _overlapping(count: int, label_of: IntArray, draw: np.random.Generator) -> IntArray:
    """The half of the clients that gets each sample, [n]; shared labels are divided evenly."""
    per_half = max((6 * count + 5) // 10, count // 2 + 1)  # labels: 60 %, but more than half
    rank = draw.permutation(count)[label_of]
    half = np.where(rank < per_half, 0, 1)
    common = np.flatnonzero((rank >= count - per_half) & (rank < per_half))
    half[common] = deal_evenly(label_of[common], 2, draw)
    return half


def _two_shard(
    names: NDArray[np.generic], label_of: IntArray, clients: int, draw: np.random.Generator
) -> IntArray:
    shards = 2 * clients
    if len(names) < 2:
        raise DataError(
            f'split "two-shard" gives each client two labels, but labels has {len(names)}. '
            "Choose iid."
        )
    decks = len(names) if len(names) <= shards else min(BATCHES, shards)
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
                f'labels {inside} have {len(mine)} samples, but split "two-shard" cuts them '
                f"into {len(shards_here)} shards. Use fewer than {clients} clients, or choose "
                "dirichlet."
            )
        owner[mine] = client_of_shard[
            shards_here[deal_evenly(label_of[mine], len(shards_here), draw)]
        ]
    return owner


def _two_decks_each(deck_of_shard: IntArray, decks: int, draw: np.random.Generator) -> IntArray:
    """The client of each shard, [2 * clients]: two random shards of different decks per client."""
    held = draw.permutation(len(deck_of_shard)).reshape(-1, 2)
    for deck in range(decks):
        # A client with two shards of this deck swaps one with a client that has none. There are
        # enough such clients, because no deck has more shards than there are clients.
        of_deck = deck_of_shard[held] == deck
        twice, never = np.flatnonzero(of_deck.all(axis=1)), np.flatnonzero(~of_deck.any(axis=1))
        partner = draw.choice(never, len(twice), replace=False)
        held[twice, 0], held[partner, 0] = held[partner, 0], held[twice, 0]
    client_of_shard = np.empty(len(deck_of_shard), dtype=np.int64)
    client_of_shard[held] = np.arange(len(held))[:, np.newaxis]
    return client_of_shard
