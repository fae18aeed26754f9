"""Splits of a training set over clients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.label_splits import LABEL_SPLITS
from wirelessfl.data.labels import cells_of_clients, checked_labels, checked_number
from wirelessfl.data.splits.split import Samples, Split, check_count, check_sizes
from wirelessfl.errors import DataError
from wirelessfl.needs import Needs
from wirelessfl.registry import Kind
from wirelessfl.wording import suggestion

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
SPLITS = ("iid", "noniid", "cell-iid", "cell-shards", "dirichlet", *LABEL_SPLITS, "natural")
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

    Clients are ordered by cell. Each kind of split is documented in its file in
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
    found = _named(kind, alpha, shards, min_samples, samples_per_client, reuse)
    if samples_per_client is None and not found.by_groups:
        check_count(len(labels), clients, min_samples)
    dealt = found.deal(Samples(labels, groups), members, stream)
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
    """The split called ``kind`` with the settings that it accepts.

    Raises:
        DataError: the split is unknown, or a setting is wrong.
    """
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
    found = DATA_SPLITS.find(kind)
    return found(**{entry.name: options[entry.name] for entry in fields(found)})
