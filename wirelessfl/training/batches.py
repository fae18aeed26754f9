"""Mini-batches: each client reshuffles its data for every pass and resumes where it stopped.

The batch of a client's step s is a function of s only: it belongs to pass s // ceil(n/b), which is
shuffled by the named stream of client and pass. Between rounds only the number of completed steps
is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from channels.arrays import IntArray
from channels.streams import Stream


class Batch(NamedTuple):
    """Samples of one step: [clients, batch, ...] for several clients, or [batch, ...] for one.

    Args:
        x: inputs.
        y: labels.
        weight: weight of each sample in the loss; 0 for padding.
        keys: dropout keys, [clients, 2], or [2] for one client.
    """

    x: Tensor
    y: Tensor
    weight: Tensor
    keys: Tensor


@dataclass(frozen=True)
class Batches:
    """Batches of a cohort.

    Args:
        index: [clients, steps, batch] positions in the training set; 0 for padding.
        weight: [clients, steps, batch] float32, 1/size in a batch of ``size`` samples, 0 for
            padding: the loss of a step is the weighted sum over its samples.
        keys: [clients, steps, 2] int32, the dropout keys of client and step.
    """

    index: Tensor
    weight: Tensor
    keys: Tensor

    def by_step(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Iterate over steps: index and weight [clients, batch], and keys [clients, 2]."""
        return zip(self.index.unbind(1), self.weight.unbind(1), self.keys.unbind(1), strict=True)

    def to(self, device: torch.device) -> Batches:
        """The same batches on ``device``."""
        return Batches(self.index.to(device), self.weight.to(device), self.keys.to(device))


@dataclass(frozen=True)
class BatchSource:
    """Source of mini-batches: the clients' samples and the run's named streams.

    Args:
        client_samples: indices of every client's samples in the training set.
        batch_size: b; a client with fewer samples uses all of them, and the last batch of a pass
            contains only the remaining samples.
        stream: the run's stream.
    """

    client_samples: Sequence[IntArray]
    batch_size: int
    stream: Stream

    def draw(self, clients: IntArray, first_steps: IntArray, steps: int) -> Batches:
        """Draw the next ``steps`` batches of each client.

        Args:
            clients: [clients], indices of the clients.
            first_steps: [clients], number of steps that each client has completed.
            steps: H, local steps.
        """
        size = self.batch_size
        index = np.zeros((len(clients), steps, size), dtype=np.int64)
        weight = np.zeros((len(clients), steps, size), dtype=np.float32)
        keys = np.empty((len(clients), steps, 2), dtype=np.int32)
        for row, (client, first) in enumerate(
            zip(clients.tolist(), first_steps.tolist(), strict=True)
        ):
            samples = self.client_samples[client]
            per_pass = -(-len(samples) // size)
            shuffles = self.stream.child("client", client, "batches")
            order, shuffled = samples, -1
            for step in range(steps):
                number, position = divmod(first + step, per_pass)
                if number != shuffled:
                    order = samples[shuffles.generator(number).permutation(len(samples))]
                    shuffled = number
                batch = order[position * size : (position + 1) * size]
                index[row, step, : len(batch)] = batch
                weight[row, step, : len(batch)] = 1.0 / len(batch)
            keys[row] = _dropout_keys(self.stream.child("client", client, "dropout"), first, steps)
        return Batches(torch.from_numpy(index), torch.from_numpy(weight), torch.from_numpy(keys))


def _dropout_keys(stream: Stream, first: int, steps: int) -> np.ndarray:
    """Inputs [steps, 2] of the dropout hash: the stream's key and the index of the step."""
    keys = np.empty((steps, 2), dtype=np.int64)
    keys[:, 0] = stream.key() & 0xFFFFFFFF
    keys[:, 1] = first + np.arange(steps)
    return keys.astype(np.uint32).view(np.int32)
