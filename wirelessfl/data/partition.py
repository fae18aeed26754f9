"""Which client has which training samples: as given, stored with a run, and drawn."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.base.figures.curves import save_figure
from wirelessfl.base.guard import described
from wirelessfl.base.import_paths import expanded
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.data.picture import draw_shares

LARGEST_BYTES = 20_000_000
"""Maximum size of stored indices."""
COUNTED = 100
"""Maximum number of clients of whom the labels are counted if indices are not stored."""
MOST_CLIENTS = 10**6
"""Number of clients above which sizes are not added up."""
MOST_LABELS = 10**4
"""Maximum number of labels that are counted."""
_LISTS = "give one list of sample indices per client, e.g. [[0, 2], [1, 3]]"


class ClientPartition(Sequence[IntArray]):
    """The training samples of each client; a sequence of index arrays, one per client.

    Args:
        samples: indices of all clients' samples, client by client; None if they are not known.
        offsets: [clients + 1], first entry in ``samples`` of each client, and the end.
        counts: number of samples of each label, [clients, classes] or of the first clients; None
            unless labels are classes.
        clients: number of clients.
    """

    def __init__(
        self,
        samples: NDArray[np.integer[Any]] | None,
        offsets: NDArray[np.integer[Any]] | None,
        counts: NDArray[np.integer[Any]] | None,
        clients: int,
    ) -> None:
        self._samples, self._offsets = samples, offsets
        self.counts = counts
        self._clients = clients

    @classmethod
    def of(
        cls,
        client_samples: Sequence[ArrayLike],
        labels: ArrayLike | torch.Tensor,
        classes: int,
        *,
        whole: bool = False,
    ) -> ClientPartition:
        """The partition of a training set.

        Indices are left out if they need more than 20 MB, or if more than 100 clients compute
        theirs on demand; labels are then counted for the first 100 clients.

        Args:
            client_samples: the indices of each client's samples.
            labels: [n]; other labels than integers are not counted.
            classes: number of classes.
            whole: whether to keep all indices in any case.
        """
        clients, numbers = len(client_samples), np.asarray(labels)
        keeps = whole or _small(client_samples)
        counted = clients if keeps else min(clients, COUNTED)
        arrays = [np.asarray(client_samples[client]) for client in range(counted)]
        counts = None
        if numbers.ndim == 1 and numbers.dtype.kind in "iu" and classes <= MOST_LABELS:
            counts = _counts(arrays, numbers, classes)
        if not keeps:
            return cls(None, None, counts, clients)
        sizes = [len(array) for array in arrays]
        samples = np.concatenate([np.zeros(0, dtype=np.int64), *arrays])
        small = samples.size == 0 or samples.max() < 2**31
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(samples.astype(np.int32 if small else np.int64), offsets, counts, clients)

    def __len__(self) -> int:
        return self._clients

    @overload
    def __getitem__(self, index: int) -> IntArray: ...

    @overload
    def __getitem__(self, index: slice) -> list[IntArray]: ...

    def __getitem__(self, index: int | slice) -> IntArray | list[IntArray]:
        """Samples of one client, or a list with those of several clients."""
        chosen = range(len(self))[index]
        if isinstance(chosen, range):
            return [self.indices(client) for client in chosen]
        return self.indices(chosen)

    def __repr__(self) -> str:
        what = "" if self._offsets is None else f", {self._offsets[-1]} samples"
        return f"ClientPartition({len(self)} clients{what})"

    @property
    def known(self) -> bool:
        """Whether the indices are known, not only the counts."""
        return self._samples is not None

    def indices(self, client: int) -> IntArray:
        """Indices of a client's samples in the training set.

        Raises:
            DataError: there is no such client, or the indices were not stored.
        """
        if self._samples is None or self._offsets is None:
            raise DataError(
                "the indices of the samples were not stored, because there are too many: use "
                "counts."
            )
        if not -len(self) <= client < len(self):
            raise DataError(f"client is {client}: choose one from 0 to {len(self) - 1}.")
        client %= len(self)
        first, end = self._offsets[client : client + 2]
        return self._samples[first:end].astype(np.int64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The partition as arrays by name, for a file."""
        required: dict[str, NDArray[Any]] = {"clients": np.array(self._clients)}
        optional = {"samples": self._samples, "offsets": self._offsets, "counts": self.counts}
        return required | {name: array for name, array in optional.items() if array is not None}

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> ClientPartition:
        """The partition with these arrays, see ``arrays``.

        Raises:
            ValueError, KeyError, TypeError: an array is missing or has a wrong shape or values.
        """
        clients = int(arrays["clients"])
        samples, offsets, counts = map(arrays.get, ("samples", "offsets", "counts"))
        for array, axes in ((samples, 1), (offsets, 1), (counts, 2)):
            if array is not None and (array.ndim != axes or array.dtype.kind not in "iu"):
                raise ValueError(f"an array is {array.dtype} {list(array.shape)}")
        if (samples is None) != (offsets is None):
            raise ValueError("it has either samples or offsets")
        if samples is not None and offsets is not None:
            divided = len(offsets) == clients + 1 and (np.diff(offsets) >= 0).all()
            if not divided or (offsets[0], offsets[-1]) != (0, len(samples)) or (samples < 0).any():
                raise ValueError(f"its samples are not those of {clients} clients")
        if counts is not None and (len(counts) > clients or (counts < 0).any()):
            raise ValueError(f"it has counts of {len(counts)} of {clients} clients")
        return cls(samples, offsets, counts, clients)

    def draw(self, path: str | os.PathLike[str]) -> list[Path]:
        """Draw the share of each label in each client's samples, and the number of samples.

        Args:
            path: path of the figure; a .png and a .pdf file are written.

        Returns:
            The two files.

        Raises:
            DataError: labels are not classes, so there are no counts.
        """
        if self.counts is None or not self.counts.size:
            raise DataError("the labels are not classes: there are no counts to draw.")
        return save_figure(draw_shares(self.counts, len(self)), expanded(path))


def _small(client_samples: Sequence[ArrayLike]) -> bool:
    """Whether indices are few, and in memory or fast to compute."""
    clients = len(client_samples)
    if clients > MOST_CLIENTS:
        return False
    if isinstance(client_samples, ClientSamples):
        if clients > COUNTED and not client_samples.listed:
            return False
        size = int(client_samples.sizes.sum())
    else:
        size = sum(np.size(samples) for samples in client_samples)
    return 4 * size + 8 * clients <= LARGEST_BYTES


def _counts(
    arrays: Sequence[NDArray[np.integer[Any]]], labels: NDArray[Any], classes: int
) -> NDArray[np.int32]:
    """Number of samples of each label, [clients, classes]."""
    sizes = [len(array) for array in arrays]
    owners = np.repeat(np.arange(len(arrays)), sizes)
    held = labels[np.concatenate([np.zeros(0, dtype=np.int64), *arrays])]
    flat = np.bincount(owners * classes + held, minlength=len(arrays) * classes)
    return flat.reshape(len(arrays), classes).astype(np.int32)


def client_lists(split: Any) -> list[IntArray]:
    """Check the form of a given split, without its training set.

    Args:
        split: indices of the training samples of each client: a sequence, an array [clients,
            samples], or a mapping from 0, 1, ... to the indices.

    Returns:
        Ascending indices of each client.
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
        raise ConfigError(f"split is {described(split)}: {_LISTS}.")
    if len(split) == 0:
        raise ConfigError(f"split has no clients: {_LISTS}.")
    return [_indices(split[client], client) for client in range(len(split))]


def check_below(lists: Sequence[IntArray], samples: int) -> None:
    """Check the largest indices.

    Args:
        lists: ascending indices of each client.
        samples: number of training samples.
    """
    for client, indices in enumerate(lists):
        if indices[-1] >= samples:
            raise ConfigError(
                f"split[{client}] has the index {indices[-1]}, but there are {samples} training "
                f"samples: give indices from 0 to {samples - 1}."
            )


def _indices(samples: Any, client: int) -> IntArray:
    """The ascending indices of one client."""
    where = f"split[{client}]"
    if isinstance(samples, torch.Tensor):
        samples = samples.detach().cpu().numpy()
    try:
        indices = np.asarray(samples if hasattr(samples, "__array__") else list(samples))
    except (TypeError, ValueError):  # a single number, or ragged
        raise ConfigError(f"{where} is {described(samples)}: {_LISTS}.") from None
    if indices.size == 0:
        raise ConfigError(f"{where} is empty: give each client at least one sample.")
    if indices.dtype.kind == "b":
        raise ConfigError(
            f"{where} is a mask of {indices.dtype} {list(indices.shape)}: give indices, "
            "np.flatnonzero(mask)."
        )
    if indices.ndim != 1:
        raise ConfigError(f"{where} is {described(indices)}: {_LISTS}.")
    if indices.dtype.kind not in "iu":
        raise ConfigError(f"{where} is {described(indices)}: give integers.")
    if indices.min() < 0:
        raise ConfigError(f"{where} has the index {indices.min()}: give indices >= 0.")
    if indices.max() >= 2**62:
        raise ConfigError(f"{where} has the index {indices.max()}: give indices of samples.")
    ascending = np.sort(indices.astype(np.int64))
    twice = np.flatnonzero(ascending[1:] == ascending[:-1])
    if twice.size:
        raise ConfigError(
            f"{where} has the index {ascending[twice[0]]} twice: give each sample once per client."
        )
    return ascending
