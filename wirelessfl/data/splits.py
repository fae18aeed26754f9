"""Splits of a training set over clients: who holds which samples.

The kinds:

- ``iid``: equal parts at random; sizes differ by one at most.
- ``noniid``: sorted by label, cut into ``shards * clients`` shards, ``shards`` of them dealt at
  random to each client (McMahan et al., AISTATS 2017, section 3).
- ``cell-iid``: equal parts at random for the cells, however many clients they have, each dealt
  as in ``noniid`` inside its cell (HIST, section VI). With one cell it is ``noniid``.
- ``dirichlet``: of each class, client i gets the share q_i of q ~ Dir(alpha, ..., alpha)
  (Hsu et al., 2019; per class as in Yurochkin et al., ICML 2019); drawn anew until every client
  has ``min_samples``.
- ``two-shard``: two shards of two labels a client.
- ``half``: half of the labels for half of the clients, the rest for the others.
- ``partial-overlap``: 60 % of the labels for each half of the clients, 20 % in common.
- ``distinct``: labels of its own for every client. These four are of Chang et al., Appendix
  A.2; ``label_splits.deal_labels`` says how odd numbers and many labels are dealt.
- ``natural``: ``groups`` says whose each sample is; of more groups than clients, that many with
  at least ``min_samples`` are drawn; of fewer, with ``reuse``, all are dealt, and again, until
  every client has one. Clients are in the order of their group's number.

All but ``natural`` hand out every sample, unless ``samples_per_client`` says how many each
client gets (``iid`` and ``dirichlet``; there the mixture q of classes is drawn per client).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from channels.arguments import checked
from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.fixed_sizes import deal_fixed_sizes
from wirelessfl.data.label_splits import LABEL_SPLITS, deal_labels
from wirelessfl.data.labels import cells_of_clients, checked_groups, checked_labels, checked_number
from wirelessfl.errors import DataError
from wirelessfl.wording import suggestion

SPLITS = ("iid", "noniid", "cell-iid", "dirichlet", *LABEL_SPLITS, "natural")
"""Kinds of split."""

_TRIES = 1000


@checked(DataError)
def split(
    labels: ArrayLike | Tensor,
    clients: int,
    *,
    kind: str,
    cells: int = 1,
    cell_of: ArrayLike | None = None,
    alpha: float = 0.5,
    shards: int = 2,
    min_samples: int = 1,
    groups: ArrayLike | None = None,
    samples_per_client: int | None = None,
    reuse: bool = False,
    stream: Stream,
) -> Sequence[IntArray]:
    """Indices of the samples of each client; every sample is used at most once unless asked.

    Clients are ordered by cell. The kinds stand in the module's head.

    Args:
        labels: [n], integers >= 0.
        clients: clients in all, in all cells.
        kind: one of ``SPLITS``.
        cells: number of cells, among which ``channels.even_cells`` deals the clients.
        cell_of: [clients], sorted, the cell of each client, as in ``channels.Network``, whose cells
            may be uneven; overrides ``cells``.
        alpha: concentration of ``dirichlet``, > 0; small is more unequal.
        shards: shards a client, for ``noniid`` and ``cell-iid``.
        min_samples: samples that every client must have at least, >= 1.
        groups: [n], integers, for ``natural``.
        samples_per_client: samples of every client, for ``iid`` and ``dirichlet``.
        reuse: with ``samples_per_client``, use samples again once all of their class are used;
            with ``natural``, groups once all of them are.
        stream: where the randomness comes from; equal streams give equal splits.

    Returns:
        For each client its indices into ``labels``, ascending. With ``samples_per_client`` they
        are worked out when they are asked for, so that many clients need little memory.

    Raises:
        DataError: the request is impossible, or no Dirichlet draw in 1000 served every client.
    """
    if kind not in SPLITS:
        raise DataError(
            f"split {kind!r} is unknown.{suggestion(kind, SPLITS)} Choose {', '.join(SPLITS)}."
        )
    labels = checked_labels(labels)
    clients = checked_number("clients", clients, 1)
    min_samples = checked_number("min_samples", min_samples, 1)
    members = cells_of_clients(clients, cells, cell_of)
    if kind == "dirichlet" and not 0 < alpha < math.inf:
        raise DataError(f"alpha is {alpha}; it must be positive and finite.")
    if samples_per_client is not None:
        samples = checked_number("samples_per_client", samples_per_client, 1)
        if kind not in ("iid", "dirichlet"):
            raise DataError(f"samples_per_client is for iid and dirichlet, and split is {kind!r}.")
        mixture = alpha if kind == "dirichlet" else None
        return deal_fixed_sizes(labels, clients, samples, mixture, reuse, stream)
    if kind == "natural":
        return _natural(groups, len(labels), clients, min_samples, reuse, stream)
    if reuse:
        raise DataError(
            "reuse needs samples_per_client, how many samples each client gets, or split natural."
        )
    _check_sizes(len(labels), clients, min_samples)
    owner = _owners(labels, members, kind, alpha, shards, min_samples, stream)
    sizes = np.bincount(owner, minlength=clients)
    if sizes.min() < min_samples:
        raise DataError(
            f"client {sizes.argmin()} has {sizes.min()} samples, fewer than "
            f"min_samples={min_samples}. Lower min_samples or the number of clients ({clients})."
        )
    return _by_owner(owner, sizes)


def _owners(
    labels: NDArray[np.generic],
    cell_of: IntArray,
    kind: str,
    alpha: float,
    shards: int,
    min_samples: int,
    stream: Stream,
) -> IntArray:
    """[n], the client of each sample, by a kind that hands out every sample."""
    clients = len(cell_of)
    if kind == "iid":
        owner = np.empty(len(labels), dtype=np.int64)
        owner[stream.generator().permutation(len(labels))] = _blocks(len(labels), clients)
        return owner
    if kind == "noniid":
        shards = _check_shards(len(labels), shards, np.zeros(clients, dtype=np.int64))
        return _deal_shards(labels, clients, shards, stream.child("cell", 0))
    if kind == "cell-iid":
        shards = _check_shards(len(labels), shards, cell_of)
        return _cell_iid(labels, cell_of, shards, stream)
    if kind == "dirichlet":
        return _dirichlet(labels, clients, alpha, min_samples, stream)
    return deal_labels(labels, clients, kind, stream)


def _by_owner(owner: IntArray, sizes: IntArray) -> list[IntArray]:
    """The samples of each, ascending: a stable sort keeps their order."""
    return np.split(np.argsort(owner, kind="stable"), np.cumsum(sizes)[:-1])


def _check_sizes(samples: int, clients: int, min_samples: int) -> None:
    if clients * min_samples > samples:
        raise DataError(
            f"{clients} clients with at least {min_samples} samples each need "
            f"{clients * min_samples}, and there are {samples}. Have fewer clients or lower "
            "min_samples."
        )


def _check_shards(samples: int, shards: int, cell_of: IntArray) -> int:
    """``shards`` as an int, if every cell's part of the samples can be cut into its shards."""
    shards = checked_number("shards", shards, 1)
    sizes = np.bincount(cell_of)
    # The tightest cell: the most clients on the smallest part.
    needed, there = shards * int(sizes.max()), samples // len(sizes)
    if needed > there:
        where = " of a cell" if len(sizes) > 1 else ""
        raise DataError(
            f"{needed} shards{where} ({shards} a client) cannot be cut from {there} samples. "
            "Have fewer clients or shards."
        )
    return shards


def _blocks(length: int, blocks: int) -> IntArray:
    """[length], non-decreasing numbers of ``blocks`` blocks whose sizes differ by one at most."""
    return np.arange(length, dtype=np.int64) * blocks // length


def _deal_shards(
    labels: NDArray[np.generic], clients: int, shards: int, stream: Stream
) -> IntArray:
    """[n], owners when each client gets ``shards`` random shards of the samples sorted by label."""
    client_of_shard = stream.generator().permutation(shards * clients) // shards
    owner = np.empty(len(labels), dtype=np.int64)
    owner[np.argsort(labels, kind="stable")] = client_of_shard[
        _blocks(len(labels), len(client_of_shard))
    ]
    return owner


def _cell_iid(
    labels: NDArray[np.generic], cell_of: IntArray, shards: int, stream: Stream
) -> IntArray:
    cells = int(cell_of[-1]) + 1
    cell_of_sample = np.empty(len(labels), dtype=np.int64)
    cell_of_sample[stream.generator().permutation(len(labels))] = _blocks(len(labels), cells)
    owner = np.empty(len(labels), dtype=np.int64)
    for cell in range(cells):
        members = np.flatnonzero(cell_of == cell)
        mine = np.flatnonzero(cell_of_sample == cell)
        dealt = _deal_shards(labels[mine], len(members), shards, stream.child("cell", cell))
        owner[mine] = members[dealt]
    return owner


def _dirichlet(
    labels: NDArray[np.generic], clients: int, alpha: float, min_samples: int, stream: Stream
) -> IntArray:
    _, class_sizes = np.unique(labels, return_counts=True)
    best = -1
    for attempt in range(_TRIES):
        draw = stream.generator(attempt)
        shares = draw.dirichlet(np.full(clients, alpha), size=len(class_sizes))
        # Cumulated shares are rounded from a random offset a class: every sample is handed out,
        # counts are within one of their share and right on average, also for tiny classes.
        offsets = draw.random((len(class_sizes), 1))
        cuts = np.cumsum(shares, axis=1) * class_sizes[:, np.newaxis] + offsets
        cuts = np.minimum(cuts.astype(np.int64), class_sizes[:, np.newaxis])
        cuts[:, -1] = class_sizes
        counts = np.diff(cuts, axis=1, prepend=0)
        smallest = int(counts.sum(axis=0).min())
        if smallest >= min_samples:
            break
        best = max(best, smallest)
    else:
        raise DataError(
            f"no Dirichlet split with alpha={alpha} gave each of {clients} clients "
            f"min_samples={min_samples} in {_TRIES} draws; the best left one with {best}. Raise "
            "alpha, lower min_samples, or have fewer clients."
        )
    shuffled = draw.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    owner = np.empty(len(labels), dtype=np.int64)
    owner[by_class] = np.repeat(np.tile(np.arange(clients), len(class_sizes)), counts.ravel())
    return owner


def _natural(
    groups: ArrayLike | None,
    samples: int,
    clients: int,
    min_samples: int,
    reuse: bool,
    stream: Stream,
) -> list[IntArray]:
    if groups is None:
        raise DataError(
            'split "natural" needs groups, the client of each sample, and this data set has none. '
            "Choose another split."
        )
    groups = checked_groups(groups, samples)
    _, group_of_sample, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    eligible = np.flatnonzero(sizes >= min_samples)
    if len(eligible) < (1 if reuse else clients):
        fewer = f"Have at most {len(eligible)} clients, or let groups be dealt again: reuse."
        raise DataError(
            f"{clients} clients need as many groups with at least {min_samples} samples, and there "
            f"are {len(eligible)} (of {len(sizes)} groups). "
            f"{fewer if len(eligible) else 'Lower min_samples.'}"
        )
    whole, rest = divmod(clients, len(eligible))
    drawn = stream.generator().choice(eligible, rest, replace=False)
    chosen = np.sort(np.concatenate([np.tile(eligible, whole), drawn]))
    by_group = _by_owner(group_of_sample, sizes)
    return [by_group[group] for group in chosen.tolist()]
