"""Energy that clients have used for training and sending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from channels.arrays import FloatArray, IntArray

PREFIX = "spending."
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
        return {f"{PREFIX}{name}": torch.from_numpy(value) for name, value in values.items()}

    def restore(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Continue from the result of ``tensors``; other tensors are ignored."""
        self.total = float(tensors[f"{PREFIX}total"])
        self.each[:] = 0
        self.each[tensors[f"{PREFIX}clients"].numpy()] = tensors[f"{PREFIX}each"].numpy()
