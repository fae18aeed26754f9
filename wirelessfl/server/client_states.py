"""What clients keep between their turns: in host memory, or on disk as an append-only log.

A state is [P] in full coordinates, whatever submodel a client trains. States that are still zero
are not stored, so that clients that have not trained yet cost nothing.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np
import torch
from torch import Tensor

from channels.arrays import IntArray
from wirelessfl.errors import ConfigError
from wirelessfl.submodels import Submodels
from wirelessfl.training.cohort import State

MEMORY_BYTES = 1 << 28
"""Up to this size in all, states are held in memory unless the settings say otherwise."""
GARBAGE = 4  # records in the log for each that counts, before it is written anew


class ClientStates(ABC):
    """Vectors of clients by name.

    Args:
        names: of what each client keeps.
        size: P.
    """

    kind: ClassVar[str]

    def __init__(self, names: Sequence[str], size: int) -> None:
        self.names = tuple(names)
        self.size = size

    @abstractmethod
    def get(self, name: str, client: int) -> Tensor | None:
        """A client's vector [P], not to be written to; None while it is zero."""

    @abstractmethod
    def put(self, name: str, client: int, value: Tensor) -> None:
        """Store a copy of a client's vector [P]."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """State for a checkpoint."""

    @abstractmethod
    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Continue from what ``tensors`` returned."""

    def attach(self, folder: Path, mark: str = "") -> None:  # noqa: B027
        """Set the run's folder, once it exists, and what names of files there begin with."""

    def saved(self) -> None:  # noqa: B027
        """Note that the checkpoint with the latest ``tensors`` is on disk."""

    def gather(
        self,
        names: Sequence[str],
        submodels: Submodels,
        clients: IntArray,
        node: IntArray,
        like: Tensor,
    ) -> State:
        """What clients keep, at what their nodes train: [clients, P_max] on the device of ``like``.

        Padding is zero.
        """
        gathered = {}
        for name in names:
            rows = torch.zeros(len(clients), submodels.spec.size)
            for row, client, place in zip(rows, clients.tolist(), node.tolist(), strict=True):
                full = self.get(name, client)
                if full is not None:
                    submodels.take(full, place, row)
            gathered[name] = rows.to(like.device)
        return gathered

    def scatter(self, submodels: Submodels, clients: IntArray, node: IntArray, kept: State) -> None:
        """Store what clients keep [clients, P_max]; other coordinates stay as they are."""
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
    """Vectors in host memory; a checkpoint holds them all."""

    kind = "memory"

    def __init__(self, names: Sequence[str], size: int) -> None:
        super().__init__(names, size)
        self._vectors: dict[str, dict[int, Tensor]] = {name: {} for name in self.names}

    def get(self, name: str, client: int) -> Tensor | None:
        """A client's vector."""
        return self._vectors[name].get(client)

    def put(self, name: str, client: int, value: Tensor) -> None:
        """Store a copy; a row of a larger tensor would keep all of that alive."""
        if client in self._vectors[name] or value.any():
            self._vectors[name][client] = value.clone()

    def tensors(self) -> dict[str, Tensor]:
        """All vectors, and whose they are."""
        found = {}
        for name, vectors in self._vectors.items():
            who = sorted(vectors)
            rows = [vectors[client] for client in who]
            found[f"clients.{name}.who"] = torch.tensor(who, dtype=torch.int64)
            found[f"clients.{name}.values"] = torch.stack(rows) if rows else torch.zeros(0, 0)
        return found

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Continue from what ``tensors`` returned."""
        for name in self.names:
            who = tensors[f"clients.{name}.who"].tolist()
            values = tensors[f"clients.{name}.values"]
            self._vectors[name] = {c: v.clone() for c, v in zip(who, values, strict=True)}


class Overlay(InMemory):
    """States of clients during a trial: written here, otherwise read from the states below.

    Args:
        below: states that do not change.
    """

    kind = "trial"

    def __init__(self, below: ClientStates) -> None:
        super().__init__(below.names, below.size)
        self.below = below

    def get(self, name: str, client: int) -> Tensor | None:
        """A client's vector."""
        written = super().get(name, client)
        return self.below.get(name, client) if written is None else written

    def put(self, name: str, client: int, value: Tensor) -> None:
        """Store a copy, also of zeros: the state below may differ."""
        self._vectors[name][client] = value.clone()


class OnDisk(ClientStates):
    """Vectors in a log of equal records in the run's folder.

    A checkpoint names the log, the records of each client and how many records it covers; what
    follows them is cut off when a run resumes. Where most records are outdated, a new log is
    written beside the old one, which is removed once a checkpoint names the new one.

    Args:
        names: of what each client keeps.
        size: P.
        clients: n.
    """

    kind = "disk"

    def __init__(self, names: Sequence[str], size: int, clients: int) -> None:
        super().__init__(names, size)
        self._record = {name: np.full(clients, -1, dtype=np.int64) for name in self.names}
        self._records = 0
        self._number = 0
        self._folder: Path | None = None
        self._mark = ""
        self._outdated: Path | None = None

    def _log(self, number: int) -> Path:
        assert self._folder is not None, "attach comes first"
        return self._folder / f"{self._mark}clients-{number}.log"

    def attach(self, folder: Path, mark: str = "") -> None:
        """Keep the log in ``folder``, under a name that begins with ``mark``."""
        self._folder, self._mark = folder, mark

    def _opened(self) -> BinaryIO:
        """The log, to read and write; made where there is none yet."""
        path = self._log(self._number)
        return path.open("r+b" if path.exists() else "w+b")

    def get(self, name: str, client: int) -> Tensor | None:
        """A client's vector, read from the log."""
        record = int(self._record[name][client])
        return None if record < 0 else torch.from_numpy(self._read(record))

    def _read(self, record: int) -> np.ndarray:
        with self._opened() as file:
            file.seek(4 * self.size * record)
            values = np.fromfile(file, np.float32, self.size)
        if len(values) < self.size:
            raise ConfigError(
                f"{file.name} ends before record {record}: client states are lost. Begin a new run."
            )
        return values

    def put(self, name: str, client: int, value: Tensor) -> None:
        """Append a client's vector."""
        if self._record[name][client] < 0 and not value.any():
            return
        with self._opened() as file:
            file.seek(4 * self.size * self._records)
            file.write(value.contiguous().numpy().astype(np.float32, copy=False).tobytes())
        self._record[name][client] = self._records
        self._records += 1

    def tensors(self) -> dict[str, Tensor]:
        """The log's number and each client's record in it; the log is on disk when this returns."""
        if self._records > GARBAGE * max(self._live(), 1):
            self._write_anew()
        with self._opened() as file:
            os.fsync(file.fileno())
        counts = torch.tensor([self._number, self._records])
        records = {f"clients.{n}.record": torch.from_numpy(r) for n, r in self._record.items()}
        return {"clients.log": counts, **records}

    def _live(self) -> int:
        return sum(int((record >= 0).sum()) for record in self._record.values())

    def _write_anew(self) -> None:
        """Copy the records that count into a new log, in the order of names and clients."""
        draft = self._log(self._number + 1)
        moved = {name: record.copy() for name, record in self._record.items()}
        with draft.open("wb") as file:
            places = itertools.count()
            for record in moved.values():
                for client in np.flatnonzero(record >= 0):
                    self._read(int(record[client])).tofile(file)
                    record[client] = next(places)
        self._outdated = self._log(self._number)
        self._number += 1
        self._record, self._records = moved, self._live()

    def saved(self) -> None:
        """Remove the log that no checkpoint needs."""
        if self._outdated is not None:
            self._outdated.unlink(missing_ok=True)
            self._outdated = None

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Continue with the log that the checkpoint names, cut to its length there."""
        self._number, self._records = tensors["clients.log"].tolist()
        self._record = {
            name: tensors[f"clients.{name}.record"].numpy().copy() for name in self.names
        }
        assert self._folder is not None, "attach comes first"
        for other in self._folder.glob(f"{self._mark}clients-*.log"):
            if other != self._log(self._number):
                other.unlink()
        length = 4 * self.size * self._records
        with self._opened() as file:
            there = file.seek(0, os.SEEK_END)
            if there < length:
                raise ConfigError(
                    f"{file.name} has {there} bytes, and the checkpoint knows of {length}: client "
                    "states are lost. Begin a new run."
                )
            file.truncate(length)


def make_states(
    asked: str, names: Sequence[str], size: int, clients: int, processes: int
) -> ClientStates:
    """States of clients, in memory or on disk.

    Args:
        asked: ``memory``, ``disk``, or ``auto``: by the size of all states.
        names: of what each client keeps.
        size: P.
        clients: n.
        processes: that share the clients; with more than one, each holds all states in memory.

    Raises:
        ConfigError: on disk, and several processes would write there.
    """
    if processes > 1 and asked == "disk":
        raise ConfigError(
            f"client_states is 'disk', and {processes} processes share the clients: each holds all "
            "states. Choose memory, or one process."
        )
    small = 4 * len(names) * size * clients <= MEMORY_BYTES
    if asked == "memory" or processes > 1 or (asked == "auto" and small):
        return InMemory(names, size)
    return OnDisk(names, size, clients)
