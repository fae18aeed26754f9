"""A split given as one list of sample indices per client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from channels.arrays import IntArray
from wirelessfl.errors import ConfigError
from wirelessfl.guard import described

WANTED = "give one list of sample indices per client, e.g. [[0, 2], [1, 3]]"


def client_lists(split: Any) -> list[IntArray]:
    """Check the form of a given split, without its training set.

    Args:
        split: indices of the training samples of each client: a sequence, an array [clients,
            samples], or a mapping from 0, 1, ... to the indices.

    Returns:
        Ascending indices of each client.

    Raises:
        ConfigError: there is no client, or the samples of a client are no list of different
            integers >= 0, at least one.
    """
    if isinstance(split, Mapping):
        if sorted(split, key=str) != sorted(range(len(split)), key=str):
            raise ConfigError(
                f"split has the keys {', '.join(map(repr, list(split)[:4]))}, ...: number the "
                "clients 0, 1, ..."
            )
        split = [split[client] for client in range(len(split))]
    sized = hasattr(split, "__len__") and hasattr(split, "__getitem__")
    if not sized or isinstance(split, str | bytes) or getattr(split, "shape", None) == ():
        raise ConfigError(f"split is {described(split)}: {WANTED}.")
    if len(split) == 0:
        raise ConfigError(f"split has no clients: {WANTED}.")
    return [_indices(split[client], client) for client in range(len(split))]


def check_below(lists: Sequence[IntArray], samples: int) -> None:
    """Check the largest indices.

    Args:
        lists: ascending indices of each client.
        samples: number of training samples.

    Raises:
        ConfigError: an index is too large.
    """
    for client, mine in enumerate(lists):
        if mine[-1] >= samples:
            raise ConfigError(
                f"split[{client}] has the index {mine[-1]}, but there are {samples} training "
                f"samples: give indices from 0 to {samples - 1}."
            )


def _indices(mine: Any, client: int) -> IntArray:
    """The ascending indices of one client.

    Raises:
        ConfigError: they are no list of different integers >= 0, at least one.
    """
    where = f"split[{client}]"
    if isinstance(mine, torch.Tensor):
        mine = mine.detach().cpu().numpy()
    try:
        found = np.asarray(mine if hasattr(mine, "__array__") else list(mine))
    except (TypeError, ValueError):  # a single number, or ragged
        raise ConfigError(f"{where} is {described(mine)}: {WANTED}.") from None
    if found.size == 0:
        raise ConfigError(f"{where} is empty: give each client at least one sample.")
    if found.dtype.kind == "b":
        raise ConfigError(
            f"{where} is a mask of {found.dtype} {list(found.shape)}: give indices, "
            "np.flatnonzero(mask)."
        )
    if found.ndim != 1:
        raise ConfigError(f"{where} is {described(found)}: {WANTED}.")
    if found.dtype.kind not in "iu":
        raise ConfigError(f"{where} is {described(found)}: give integers.")
    if found.min() < 0:
        raise ConfigError(f"{where} has the index {found.min()}: give indices >= 0.")
    if found.max() >= 2**62:
        raise ConfigError(f"{where} has the index {found.max()}: give indices of samples.")
    ascending = np.sort(found.astype(np.int64))
    twice = np.flatnonzero(ascending[1:] == ascending[:-1])
    if twice.size:
        raise ConfigError(
            f"{where} has the index {ascending[twice[0]]} twice: give each sample once per client."
        )
    return ascending
