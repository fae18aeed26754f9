"""What clients have done, spent and sent in a run so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from channels.arrays import BoolArray, FloatArray, IntArray

Values = TypeVar("Values", FloatArray, IntArray)
PREFIX = "ledger."
"""Prefix of the names of a ledger's tensors in a checkpoint."""


class Ledger:
    """Joules, participation and arrived updates of each client, in training and trial rounds.

    Clients that have not taken part yet need no memory.

    Args:
        clients: number of clients of the network.
    """

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self.rounds = 0
        """Number of rounds in the ledger."""
        self._seen: IntArray = np.zeros(0, dtype=np.int64)
        """[seen], the clients that have taken part, in order; the other arrays are theirs."""
        self._joules: FloatArray = np.zeros(0)
        self._chosen: IntArray = np.zeros(0, dtype=np.int64)
        self._heard: IntArray = np.zeros(0, dtype=np.int64)

    @property
    def joules(self) -> FloatArray:
        """Energy of each client for training and sending, [clients]; a copy."""
        return self._of_all(self._joules)

    @property
    def chosen(self) -> IntArray:
        """The last round, from 1, in which each client took part; 0 for none; [clients], a copy."""
        return self._of_all(self._chosen)

    @property
    def heard(self) -> IntArray:
        """The last round, from 1, from which an update of each client arrived, as ``chosen``."""
        return self._of_all(self._heard)

    @property
    def most_joules(self) -> float:
        """Energy of the client that has used the most."""
        return float(self._joules.max(initial=0.0))

    def add(self, clients: IntArray, joules: FloatArray | None, arrived: BoolArray) -> None:
        """Add a round.

        Args:
            clients: [senders], the participating clients, in order.
            joules: [senders], energy of each in this round; None if it is not counted.
            arrived: [senders] boolean, clients of which an update arrived.
        """
        self.rounds += 1
        new = np.setdiff1d(clients, self._seen, assume_unique=True)
        if new.size:
            at = np.searchsorted(self._seen, new)
            self._seen = np.insert(self._seen, at, new)
            self._joules = np.insert(self._joules, at, 0.0)
            self._chosen = np.insert(self._chosen, at, 0)
            self._heard = np.insert(self._heard, at, 0)
        rows = np.searchsorted(self._seen, clients)
        self._chosen[rows] = self.rounds
        self._heard[rows[arrived]] = self.rounds
        if joules is not None:
            self._joules[rows] += joules

    def tensors(self) -> dict[str, torch.Tensor]:
        """The ledger for a checkpoint: entries of the clients that have taken part."""
        values = {
            "clients": self._seen,
            "joules": self._joules,
            "chosen": self._chosen,
            "heard": self._heard,
            "rounds": np.array(self.rounds),
        }
        return {f"{PREFIX}{name}": torch.from_numpy(value.copy()) for name, value in values.items()}

    def restore(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Continue from the result of ``tensors``; other tensors are ignored."""
        arrays = {
            name: tensors[f"{PREFIX}{name}"].numpy().copy()
            for name in ("clients", "joules", "chosen", "heard")
        }
        if len({array.shape for array in arrays.values()}) > 1:
            raise ValueError("the ledger of the clients has arrays of different lengths")
        self.rounds = int(tensors[f"{PREFIX}rounds"])
        self._seen, self._joules = arrays["clients"], arrays["joules"]
        self._chosen, self._heard = arrays["chosen"], arrays["heard"]

    def _of_all(self, values: Values) -> Values:
        """The values [seen] at all clients, [clients]; 0 at the others."""
        whole: Values = np.zeros(self.clients, dtype=values.dtype)
        whole[self._seen] = values
        return whole


SPENT = "spending."
"""Prefix of the names of its tensors in a checkpoint."""


@dataclass(eq=False)
class Spending:
    """Joules of each client and of all of them.

    Args:
        each: [clients], joules of each client.
        total: joules of all clients, summed in the order in which they were added, so it may differ
            from the sum of ``each`` by rounding.
    """

    each: FloatArray
    total: float = 0.0

    @classmethod
    def none(cls, clients: int) -> Spending:
        """No energy yet, for this number of clients."""
        return cls(np.zeros(clients))

    @property
    def most(self) -> float:
        """Joules of the client that has used the most."""
        return float(self.each.max())

    def add(self, client: int, joules: float) -> None:
        """Add the energy of one client."""
        self.total += joules
        self.each[client] += joules

    def include(self, clients: IntArray, other: Spending) -> None:
        """Add the energy of a group.

        Args:
            clients: [members], different clients.
            other: energy of each of them.
        """
        self.total += other.total
        self.each[clients] += other.each

    def part(self, seconds: float, whole: float) -> Spending:
        """Energy of the first ``seconds`` of a transmission that takes ``whole`` seconds."""
        return Spending(self.each * seconds / whole, self.total * seconds / whole)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The energy for a checkpoint: entries of the clients that have used some."""
        clients = np.flatnonzero(self.each)
        values = {"clients": clients, "each": self.each[clients], "total": np.array(self.total)}
        return {f"{SPENT}{name}": torch.from_numpy(value) for name, value in values.items()}

    def restore(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Continue from the result of ``tensors``; other tensors are ignored."""
        self.total = float(tensors[f"{SPENT}total"])
        self.each[:] = 0
        self.each[tensors[f"{SPENT}clients"].numpy()] = tensors[f"{SPENT}each"].numpy()
