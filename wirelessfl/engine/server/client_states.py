"""State that clients keep between rounds, in host memory or on disk as an append-only log.

A state is a vector [P] in the coordinates of the full model, even if the client trains a submodel.
Zero states are not stored, so clients that have not trained yet need no storage.
"""

from __future__ import annotations

import itertools
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar, NamedTuple

import numpy as np
import torch

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import open_stored, stored_size, why
from wirelessfl.models.submodels import Submodels
from wirelessfl.training.rules import State

MEMORY_BYTES = 1 << 28
"""With ``auto``, states up to this total size are kept in memory."""
GARBAGE = 4  # the log is rewritten when it has more than this many records per current record
LOG = "clients.log"
"""Tensor of a checkpoint that describes a log: its number, its records, and P."""
ENTRY = ".records"
"""End of the names of a checkpoint's tensors that give record and checksum by client."""


class ClientStates(ABC):
    """Client states: one vector per name and client.

    Args:
        names: names of the state of each client.
        size: P, length of a vector.
    """

    kind: ClassVar[str]

    def __init__(self, names: Sequence[str], size: int) -> None:
        self.names = tuple(names)
        self.size = size

    @abstractmethod
    def get(self, name: str, client: int) -> torch.Tensor | None:
        """A client's vector [P], read-only; None if it is zero."""

    @abstractmethod
    def clients(self, name: str) -> list[int]:
        """The clients whose vector is stored, in increasing order."""

    @abstractmethod
    def put(self, name: str, client: int, value: torch.Tensor) -> None:
        """Store a copy of a client's vector [P]."""

    @abstractmethod
    def tensors(self) -> dict[str, torch.Tensor]:
        """State for a checkpoint."""

    @abstractmethod
    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Continue from the result of ``tensors``; states that it lacks are zero."""

    def attach(self, folder: Path, mark: str = "") -> None:  # noqa: B027
        """Set the run's folder and the prefix of the file names."""

    def saved(self) -> None:  # noqa: B027
        """Called once the checkpoint with the latest ``tensors`` is on disk."""

    def gather(
        self,
        names: Sequence[str],
        submodels: Submodels,
        clients: IntArray,
        node: IntArray,
        like: torch.Tensor,
    ) -> State:
        """Client states at the coordinates of their nodes' submodels, [clients, P_max] by name.

        They are on the device of ``like``. Padding is zero.
        """
        gathered = {}
        for name in names:
            rows = torch.zeros(len(clients), submodels.spec.size)
            for row, client, index in zip(rows, clients.tolist(), node.tolist(), strict=True):
                full = self.get(name, client)
                if full is not None:
                    submodels.take(full, index, row)
            gathered[name] = rows.to(like.device)
        return gathered

    def scatter(self, submodels: Submodels, clients: IntArray, node: IntArray, kept: State) -> None:
        """Store client states [clients, P_max]; other coordinates do not change."""
        for name, values in kept.items():
            rows = values.detach().cpu()
            for client, place, row in zip(clients.tolist(), node.tolist(), rows, strict=True):
                if submodels.index is None:
                    self.put(name, client, row)
                    continue
                before = self.get(name, client)
                full = torch.zeros(self.size) if before is None else before.clone()
                index = submodels.index[place]
                full[index[index >= 0]] = row[index >= 0]
                self.put(name, client, full)


class InMemory(ClientStates):
    """Client states in host memory; a checkpoint contains all of them."""

    kind = "memory"

    def __init__(self, names: Sequence[str], size: int) -> None:
        super().__init__(names, size)
        self._vectors: dict[str, dict[int, torch.Tensor]] = {name: {} for name in self.names}

    def get(self, name: str, client: int) -> torch.Tensor | None:
        """A client's vector."""
        return self._vectors[name].get(client)

    def clients(self, name: str) -> list[int]:
        """The clients that have a vector."""
        return sorted(self._vectors[name])

    def put(self, name: str, client: int, value: torch.Tensor) -> None:
        """Store a copy: a view would keep the cohort's whole tensor in memory."""
        if client in self._vectors[name] or value.any():
            self._vectors[name][client] = value.clone()

    def tensors(self) -> dict[str, torch.Tensor]:
        """All vectors and their clients, by name."""
        tensors = {}
        for name, vectors in self._vectors.items():
            who = self.clients(name)
            rows = [vectors[client] for client in who]
            tensors[f"clients.{name}.who"] = torch.tensor(who, dtype=torch.int64)
            tensors[f"clients.{name}.values"] = torch.stack(rows) if rows else torch.zeros(0, 0)
        return tensors

    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Continue from the result of ``tensors``."""
        for name in self.names:
            who = tensors.get(f"clients.{name}.who", torch.zeros(0)).tolist()
            values = tensors.get(f"clients.{name}.values", torch.zeros(0, 0))
            self._vectors[name] = {c: v.clone() for c, v in zip(who, values, strict=True)}


class Overlay(InMemory):
    """Client states of trial rounds: new states are stored here, others are read from ``below``.

    Args:
        below: underlying states, which do not change.
    """

    kind = "trial"

    def __init__(self, below: ClientStates) -> None:
        super().__init__(below.names, below.size)
        self.below = below

    def get(self, name: str, client: int) -> torch.Tensor | None:
        """A client's vector."""
        written = super().get(name, client)
        return self.below.get(name, client) if written is None else written

    def clients(self, name: str) -> list[int]:
        """The clients that have a vector here or below."""
        return sorted({*self._vectors[name], *self.below.clients(name)})

    def put(self, name: str, client: int, value: torch.Tensor) -> None:
        """Store a copy, even of zeros, since the state below may be nonzero."""
        self._vectors[name][client] = value.clone()


class _Kept(NamedTuple):
    """Number of a client's record in the log, and the checksum of its bytes."""

    record: int
    checksum: int


class OnDisk(ClientStates):
    """Client states in an append-only log of equal-size records in the run's folder.

    A checkpoint stores the log's number, the record of each client that has one, with its checksum,
    and the number of records; a resumed run discards later records. When most records are outdated,
    a new log is written. The old log is removed once a checkpoint refers to the new one.
    """

    kind = "disk"

    def __init__(self, names: Sequence[str], size: int) -> None:
        super().__init__(names, size)
        self._kept: dict[str, dict[int, _Kept]] = {name: {} for name in self.names}
        self._records = 0
        self._number = 0
        self._folder: Path | None = None
        self._mark = ""
        self._outdated: Path | None = None

    def _log(self, number: int) -> Path:
        assert self._folder is not None, "call attach first"
        return self._folder / f"{self._mark}clients-{number}.log"

    def attach(self, folder: Path, mark: str = "") -> None:
        """Store the log in ``folder``, with the file name prefix ``mark``."""
        self._folder, self._mark = folder, mark

    def _opened(self) -> BinaryIO:
        """Open the log for reading and writing; create it if it is missing."""
        path = self._log(self._number)
        if not os.path.lexists(path):
            open_stored(path, "xb").close()
        return open_stored(path, "r+b")

    def get(self, name: str, client: int) -> torch.Tensor | None:
        """A client's vector, read from the log."""
        kept = self._kept[name].get(client)
        if kept is None:
            return None
        with self._opened() as file:
            return torch.from_numpy(_read(file, self.size, client, kept))

    def clients(self, name: str) -> list[int]:
        """The clients that have a record."""
        return sorted(self._kept[name])

    def put(self, name: str, client: int, value: torch.Tensor) -> None:
        """Append a client's vector."""
        if client not in self._kept[name] and not value.any():
            return
        values = value.contiguous().numpy().astype(np.float32, copy=False)
        with self._opened() as file:
            file.seek(4 * self.size * self._records)
            file.write(values.tobytes())
        self._kept[name][client] = _Kept(self._records, zlib.crc32(values.data))
        self._records += 1

    def tensors(self) -> dict[str, torch.Tensor]:
        """The log's number, and record and checksum by client; flushes the log to disk first."""
        if self._records > GARBAGE * max(self._live(), 1):
            self._write_anew()
        with self._opened() as file:
            os.fsync(file.fileno())
        tensors = {LOG: torch.tensor([self._number, self._records, self.size])}
        for name, kept in self._kept.items():
            who = self.clients(name)
            rows = torch.tensor([[client, *kept[client]] for client in who], dtype=torch.int64)
            tensors[_entry(name)] = rows.reshape(-1, 3)
        return tensors

    def _live(self) -> int:
        return sum(map(len, self._kept.values()))

    def _write_anew(self) -> None:
        """Copy the current records into a new log, ordered by name and client."""
        draft = self._log(self._number + 1)
        moved: dict[str, dict[int, _Kept]] = {name: {} for name in self.names}
        draft.unlink(missing_ok=True)
        with self._opened() as old, open_stored(draft, "xb") as file:
            numbers = itertools.count()
            for name, kept in self._kept.items():
                for client in self.clients(name):
                    _read(old, self.size, client, kept[client]).tofile(file)
                    moved[name][client] = kept[client]._replace(record=next(numbers))
        self._outdated = self._log(self._number)
        self._number += 1
        self._kept, self._records = moved, self._live()

    def saved(self) -> None:
        """Remove the old log, which no checkpoint needs any more."""
        if self._outdated is not None:
            self._outdated.unlink(missing_ok=True)
            self._outdated = None

    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Continue with the checkpoint's log, truncated to its length at the checkpoint."""
        assert self._folder is not None, "call attach first"
        self._number, self._records, _ = tensors[LOG].tolist()
        path = self._log(self._number)
        length = 4 * self.size * self._records
        _check_length(path, length)
        self._kept = {name: _kept(tensors.get(_entry(name))) for name in self.names}
        for other in self._folder.glob(f"{self._mark}clients-*.log"):
            if other != path:
                other.unlink()
        with self._opened() as file:
            file.truncate(length)


def check_logs(folder: Path, tensors: Mapping[str, torch.Tensor], *, titled: bool) -> None:
    """Check that logs have all client states of a checkpoint.

    Args:
        folder: the run's folder.
        tensors: the checkpoint's tensors.
        titled: whether tasks have tables, and the names of logs those of tasks.
    """
    for prefix in [name.removesuffix(LOG) for name in tensors if name.endswith(LOG)]:
        number, records, size = tensors[prefix + LOG].tolist()
        mark = f"{prefix.partition('.')[0]}-" if titled else ""
        path = folder / f"{mark}clients-{number}.log"
        _check_length(path, 4 * size * records)
        for name, stored in tensors.items() if records else ():
            if name.startswith(f"{prefix}clients.") and name.endswith(ENTRY):
                with open_stored(path) as file:
                    for client, kept in _kept(stored).items():
                        _read(file, size, client, kept)


def _entry(name: str) -> str:
    """Name of the tensor [clients, 3] of a checkpoint: client, record and checksum."""
    return f"clients.{name}{ENTRY}"


def _kept(stored: torch.Tensor | None) -> dict[int, _Kept]:
    """The records by client in a checkpoint's tensor; none in a checkpoint without it."""
    rows = [] if stored is None else stored.tolist()
    return {client: _Kept(record, checksum) for client, record, checksum in rows}


def _check_length(path: Path, length: int) -> None:
    try:
        there = stored_size(path) or 0
    except OSError as error:
        raise ConfigError(
            f"{path} is damaged: {why(error)}. Restore it, or start a new run."
        ) from error
    if there < length:
        raise ConfigError(
            f"{path} has {there} bytes, and the checkpoint needs {length}: client states are lost. "
            "Restore it, or start a new run."
        )


def _read(file: BinaryIO, size: int, client: int, kept: _Kept) -> np.ndarray:
    """One record of a log: the vector [size] of a client."""
    file.seek(4 * size * kept.record)
    values = np.fromfile(file, np.float32, size)
    if len(values) < size or zlib.crc32(values.data) != kept.checksum:
        raise ConfigError(
            f"{file.name} is damaged: the state of client {client} differs from its checksum. "
            "Restore it, or start a new run."
        )
    return values


def make_states(
    asked: str, names: Sequence[str], size: int, clients: int, processes: int
) -> ClientStates:
    """Create client states in memory or on disk.

    Args:
        asked: ``memory``, ``disk``, or ``auto``, which decides by the total size.
        names: names of the state of each client.
        size: P, length of a vector.
        clients: n, number of clients.
        processes: number of processes that share the clients; with more than one, each holds all
            states in memory.
    """
    if processes > 1 and asked == "disk":
        raise ConfigError(
            f"client_states='disk' conflicts with {processes} processes, which each hold all "
            "states in memory: choose client_states memory, or one process."
        )
    small = 4 * len(names) * size * clients <= MEMORY_BYTES
    if asked == "memory" or processes > 1 or (asked == "auto" and small):
        return InMemory(names, size)
    return OnDisk(names, size)
