"""What each client has done in a run so far."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from channels.arrays import BoolArray, FloatArray, IntArray

PREFIX = "ledger."
"""Prefix of the names of a ledger's tensors in a checkpoint."""


class Ledger:
    """Joules, participation and arrived updates of each client, in training and trial rounds.

    Args:
        clients: number of clients of the network.
    """

    def __init__(self, clients: int) -> None:
        self.rounds = 0
        """Number of rounds in the ledger."""
        self.joules: FloatArray = np.zeros(clients)
        """[clients], energy for training and sending."""
        self.chosen: IntArray = np.zeros(clients, dtype=np.int64)
        """[clients], the last round, from 1, in which a client took part; 0 for none."""
        self.heard: IntArray = np.zeros(clients, dtype=np.int64)
        """[clients], the last round, from 1, from which an update arrived; 0 for none."""

    def add(self, clients: IntArray, joules: FloatArray | None, arrived: BoolArray) -> None:
        """Add a round.

        Args:
            clients: [senders], the participating clients.
            joules: [senders], energy of each in this round; None if it is not counted.
            arrived: [senders] boolean, clients of which an update arrived.
        """
        self.rounds += 1
        self.chosen[clients] = self.rounds
        self.heard[clients[arrived]] = self.rounds
        if joules is not None:
            self.joules[clients] += joules

    def tensors(self) -> dict[str, Tensor]:
        """The ledger for a checkpoint: entries of the clients that have taken part."""
        seen = np.flatnonzero(self.chosen)
        values = {
            "clients": seen,
            "joules": self.joules[seen],
            "chosen": self.chosen[seen],
            "heard": self.heard[seen],
            "rounds": np.array(self.rounds),
        }
        return {f"{PREFIX}{name}": torch.from_numpy(value) for name, value in values.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from the result of ``tensors``; other tensors are ignored."""
        found = {name: tensors[f"{PREFIX}{name}"].numpy() for name in ("joules", "chosen", "heard")}
        seen = tensors[f"{PREFIX}clients"].numpy()
        self.rounds = int(tensors[f"{PREFIX}rounds"])
        for name, values in found.items():
            entries = getattr(self, name)
            entries[:] = 0
            entries[seen] = values
