"""Number of local steps that each client has done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import torch

from channels.arrays import IntArray


class StepsDone(Counter[int]):
    """Local steps by client; clients that have not trained take no memory."""

    def of(self, clients: IntArray) -> IntArray:
        """Number of steps of each of these clients, [clients]."""
        return np.fromiter((self[client] for client in clients.tolist()), np.int64, len(clients))

    def add(self, clients: IntArray, steps: int | IntArray) -> None:
        """Add ``steps``, one number or [clients], to these clients."""
        each = np.broadcast_to(steps, clients.shape)
        for client, done in zip(clients.tolist(), each.tolist(), strict=True):
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
