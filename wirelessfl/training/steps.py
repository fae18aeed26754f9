"""Local steps: how many each client takes, and how many it has done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError

MOST_STEPS = 10**9
"""Largest number of local steps of a client, as of the setting ``local_steps``."""


@dataclass(frozen=True, eq=False)
class StepCounts:
    """Number of local steps H_k of each client.

    Args:
        common: H, the number of all clients; unused if they differ.
        each: [clients], number of each client; None if they are equal.
    """

    common: int
    each: IntArray | None = None

    @classmethod
    def of_passes(cls, passes: float, sizes: IntArray, batch_size: int) -> StepCounts:
        """H_k = max(1, floor(passes ceil(n_k / b) + 1/2)): the nearest number of batches.

        Args:
            passes: passes over a client's own samples, > 0; fractions are allowed.
            sizes: n_k, number of samples of each client, [clients].
            batch_size: b; a pass has ceil(n_k / b) batches.
        """
        few = sizes[:1] if sizes.strides == (0,) else sizes  # equal sizes take no memory
        steps = np.maximum(np.floor(passes * -(-few // batch_size) + 0.5), 1.0)
        if steps.max() > MOST_STEPS:
            raise ConfigError(
                f"local_epochs={passes:g} gives the client with the most samples "
                f"{steps.max():.3g} local steps: lower local_epochs to at most "
                f"{MOST_STEPS:.0e} steps."
            )
        most = int(steps.max())
        return cls(most) if steps.min() == most else cls(most, steps.astype(np.int64))

    def at(self, clients: IntArray) -> int | IntArray:
        """The number of all clients, or the number of each of these, [clients]."""
        return self.common if self.each is None else self.each[clients]

    def some(self, clients: IntArray) -> IntArray | None:
        """The number of each of these clients, [clients]; None if all clients have the same."""
        return None if self.each is None else self.each[clients]

    def of(self, client: int) -> int:
        """The number of one client."""
        return self.common if self.each is None else int(self.each[client])

    def mean(self, clients: IntArray) -> float:
        """Mean number of these clients; an integer if all clients have the same."""
        if self.each is None or not len(clients):
            return self.common
        return float(self.each[clients].mean())

    @property
    def average(self) -> float:
        """Mean number of all clients."""
        return self.common if self.each is None else float(self.each.mean())


class StepsDone(Counter[int]):
    """Local steps by client; clients that have not trained take no memory."""

    def of(self, clients: IntArray) -> IntArray:
        """Number of steps of each of these clients, [clients]."""
        return np.fromiter((self[client] for client in clients.tolist()), np.int64, len(clients))

    def add(self, clients: IntArray, steps: int | IntArray) -> None:
        """Add ``steps``, one number or [clients], to these clients."""
        counts = np.broadcast_to(steps, clients.shape)
        for client, done in zip(clients.tolist(), counts.tolist(), strict=True):
            self[client] += done

    def tensors(self) -> dict[str, torch.Tensor]:
        """Clients and their steps, for a checkpoint."""
        who = sorted(self)
        return {
            "steps_done": torch.tensor([self[client] for client in who], dtype=torch.int64),
            "steps_done.who": torch.tensor(who, dtype=torch.int64),
        }

    @classmethod
    def restored(cls, tensors: Mapping[str, torch.Tensor]) -> StepsDone:
        """Continue from the result of ``tensors``; other tensors are ignored."""
        who, steps = tensors["steps_done.who"].tolist(), tensors["steps_done"].tolist()
        if not all(isinstance(number, int) for number in (*who, *steps)):
            raise ValueError("steps_done has other values than integers")
        return cls(dict(zip(who, steps, strict=True)))
