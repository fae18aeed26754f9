"""Splits of a training set over clients: their base classes, and one by its name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from channels.arguments import checked
from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.base.errors import DataError
from wirelessfl.base.guard import UnfitError, entries, indices, of_project, returns
from wirelessfl.base.needs import Needs
from wirelessfl.base.registry import Choice, Kind
from wirelessfl.base.wording import suggestion
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.data.labels import cells_of_clients, checked_labels, checked_number


@dataclass(frozen=True)
class Samples:
    """Labels of a training set, and the natural client of each sample.

    Args:
        labels: [n, ...].
        groups: [n], integers, the natural client of each sample; None if the data set has none.
    """

    labels: NDArray[np.generic]
    groups: ArrayLike | None = None


def _dealt(
    value: Any, split: Split, samples: Samples, cell_of: IntArray, stream: Stream
) -> Sequence[IntArray]:
    """Check for an array of sample indices per client, none of them empty."""
    expected = f"{len(cell_of)} arrays of sample indices, one per client"
    if isinstance(value, ClientSamples) and of_project(type(value)):
        return value  # computed on access, by a split of this project
    dealt = [
        indices(rows, len(samples.labels), f"{expected} (client {client})")
        for client, rows in enumerate(entries(value, len(cell_of), expected))
    ]
    for client, rows in enumerate(dealt):
        if not len(rows):
            raise UnfitError(
                f"no samples for client {client}", f"{expected}, with at least one each"
            )
    return dealt


def _owners(
    value: Any, split: Split, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream
) -> IntArray:
    """Check for a client per sample."""
    expected = f"the client of each of the {len(labels)} samples"
    owner = indices(value, len(cell_of), expected)
    if len(owner) != len(labels):
        raise UnfitError(f"{len(owner)} entries", expected)
    return owner


@dataclass(frozen=True)
class Split(Choice, ABC):
    """Base class of splits."""

    by_groups: ClassVar[bool] = False
    """Whether clients are groups of the data set, so their labels cannot be chosen."""
    by_labels: ClassVar[bool] = False
    """Whether the split sorts samples by their label, of which each has one."""

    @returns(_dealt)
    @abstractmethod
    def deal(self, samples: Samples, cell_of: IntArray, stream: Stream) -> Sequence[IntArray]:
        """Indices of each client's samples, ascending.

        Args:
            samples: the training set.
            cell_of: [clients], sorted, the cell of each client.
            stream: randomness; equal streams give equal splits.

        Raises:
            DataError: the samples cannot be split in this way.
        """


@dataclass(frozen=True)
class OwnedSplit(Split):
    """Base class of splits that give every sample to exactly one client."""

    name = ""

    @returns(_owners)
    @abstractmethod
    def owners(self, labels: NDArray[np.generic], cell_of: IntArray, stream: Stream) -> IntArray:
        """The client of each sample, [n]; arguments as for ``deal``, with labels only."""

    @property
    def required(self) -> int:
        """Minimum number of samples per client."""
        return 1

    def deal(self, samples: Samples, cell_of: IntArray, stream: Stream) -> Sequence[IntArray]:
        """Indices of each client's samples, ascending."""
        check_count(len(samples.labels), len(cell_of), self.required)
        owner = self.owners(samples.labels, cell_of, stream)
        sizes = np.bincount(owner, minlength=len(cell_of))
        check_sizes(sizes, self.required)
        return by_owner(owner, sizes)


def check_count(samples: int, clients: int, required: int) -> None:
    """Raise unless there are enough samples for all clients."""
    if clients * required > samples:
        least = f"{required} sample{'s' if required > 1 else ''}"
        raise DataError(
            f"{clients} clients with at least {least} each need {clients * required} samples, but "
            f"there are only {samples}. Use fewer clients{_lower(required)}."
        )


def check_sizes(sizes: IntArray, required: int) -> None:
    """Raise unless every client has enough samples.

    Args:
        sizes: [clients], number of samples of each client.
        required: minimum number of samples per client.
    """
    if sizes.min() < required:
        fewer = f", fewer than min_samples={required}" if required > 1 else ""
        raise DataError(
            f"client {sizes.argmin()} has {sizes.min() or 'no'} samples{fewer}. Use fewer than "
            f"{len(sizes)} clients{_lower(required)}."
        )


def _lower(required: int) -> str:
    """The remedy of a smaller ``min_samples``, which only some splits have; empty if it is 1."""
    return " or lower min_samples" if required > 1 else ""


def by_owner(owner: IntArray, sizes: IntArray) -> list[IntArray]:
    """Indices of each client's samples, ascending because the sort is stable."""
    return np.split(np.argsort(owner, kind="stable"), np.cumsum(sizes)[:-1])


def blocks(length: int, count: int) -> IntArray:
    """Block index of each element, [length]; the sizes of ``count`` blocks differ by at most 1."""
    return np.arange(length, dtype=np.int64) * count // length


NOT_GIVEN = Needs(
    lambda run, _: run.settings.given.split is None,
    "conflicts with split=..., which is given to wirelessfl.run",
)
DATA_SPLITS: Kind[Split] = Kind(
    "split",
    "wirelessfl.data.splits",
    Split,
    default="noniid",
    table=(NOT_GIVEN,),
    text="data partition",
    heading="data",
)
"""All splits, built-in and user-defined."""
SPLITS = (
    *("iid", "noniid", "cell-iid", "cell-shards", "dirichlet"),
    *("two-shard", "half", "partial-overlap", "distinct", "natural"),
)
"""Names of the built-in splits."""


@checked(DataError)
def split(
    labels: ArrayLike | torch.Tensor,
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
    """Split a training set over clients; every sample is used at most once unless ``reuse`` is set.

    Clients are ordered by cell. Each kind of split is documented in
    ``wirelessfl/data/splits``.

    >>> from channels import Stream
    >>> from wirelessfl.data import split
    >>> parts = split([0, 1, 2, 3] * 10, clients=4, kind="iid", stream=Stream(1))
    >>> [len(part) for part in parts]
    [10, 10, 10, 10]

    Args:
        labels: [n], integers >= 0.
        clients: number of clients in all cells.
        kind: one of ``SPLITS``.
        cells: number of cells, over which ``channels.even_cells`` distributes the clients.
        cell_of: [clients], sorted, the cell of each client, as in ``channels.Network``, whose cells
            may be uneven; overrides ``cells``.
        alpha: concentration of ``dirichlet``, > 0; smaller is more unequal.
        shards: shards per client, for ``noniid``, ``cell-iid`` and ``cell-shards``.
        min_samples: minimum number of samples per client, >= 1.
        groups: [n], integers, for ``natural``.
        samples_per_client: number of samples of every client, for ``iid`` and ``dirichlet``.
        reuse: with ``samples_per_client``, use samples again once all samples of their class are
            used; with ``natural``, use groups again once all groups are used.
        stream: randomness; equal streams give equal splits.

    Returns:
        For each client its indices into ``labels``, ascending. With ``samples_per_client`` they
        are computed on access, so that many clients need little memory.

    Raises:
        DataError: the request is impossible, or none of 1000 Dirichlet draws gave every client
            ``min_samples``.
    """
    labels = checked_labels(labels)
    clients = checked_number("clients", clients, 1)
    members = cells_of_clients(clients, cells, cell_of)
    choice = _named(kind, alpha, shards, min_samples, samples_per_client, reuse)
    if samples_per_client is None and not choice.by_groups:
        check_count(len(labels), clients, min_samples)
    dealt = choice.deal(Samples(labels, groups), members, stream)
    if samples_per_client is None:
        check_sizes(np.array([len(samples) for samples in dealt]), min_samples)
    return dealt


def _named(
    kind: str,
    alpha: float,
    shards: int,
    min_samples: int,
    samples_per_client: int | None,
    reuse: bool,
) -> Split:
    """The split called ``kind`` with the settings that it accepts."""
    if kind not in SPLITS:
        raise DataError(
            f"split {kind!r} is unknown.{suggestion(kind, SPLITS)} Choose {', '.join(SPLITS)}."
        )
    options: dict[str, Any] = {"alpha": alpha, "shards": shards, "reuse": reuse}
    options["min_samples"] = checked_number("min_samples", min_samples, 1)
    if kind == "dirichlet" and not 0 < alpha < math.inf:
        raise DataError(f"alpha is {alpha}; it must be positive and finite.")
    if samples_per_client is not None:
        samples_per_client = checked_number("samples_per_client", samples_per_client, 1)
        if kind not in ("iid", "dirichlet"):
            raise DataError(
                f"samples_per_client={samples_per_client} conflicts with split={kind!r}: leave it "
                "out, or choose iid or dirichlet."
            )
    elif reuse and kind != "natural":
        raise DataError(
            "reuse needs samples_per_client or split natural: choose one, or leave reuse out."
        )
    options["samples_per_client"] = samples_per_client
    cls = DATA_SPLITS.find(kind)
    return cls(**{entry.name: options[entry.name] for entry in fields(cls)})
