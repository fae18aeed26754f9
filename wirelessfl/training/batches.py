"""Mini-batches: each client reshuffles its data for every pass and resumes where it stopped.

The batch of a client's step s is a function of s only: it belongs to pass s // ceil(n/b), which is
shuffled by the named stream of client and pass. Between rounds only the number of completed steps
is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from channels.arrays import IntArray
from channels.streams import Generators, Stream
from wirelessfl.training.augmentation import Augmentation


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
        seeds: [clients, steps], seeds of the augmentation; None without it.
        sizes: [clients, steps], numbers of samples without padding; None without augmentation.
    """

    index: Tensor
    weight: Tensor
    keys: Tensor
    seeds: IntArray | None = None
    sizes: IntArray | None = None

    def to(self, device: torch.device) -> Batches:
        """The same batches on ``device``; on a GPU they arrive there after earlier work."""
        if device.type == "cpu":
            return self
        tensors = (self.index, self.weight, self.keys)
        index, weight, keys = (t.pin_memory().to(device, non_blocking=True) for t in tensors)
        return Batches(index, weight, keys, self.seeds, self.sizes)


@dataclass(frozen=True)
class BatchSource:
    """Source of mini-batches: the clients' samples and the run's named streams.

    Args:
        client_samples: indices of every client's samples in the training set.
        batch_size: b; a client with fewer samples uses all of them, and the last batch of a pass
            contains only the remaining samples.
        stream: the run's stream.
        augmentation: changes the samples of each batch; None to leave them as they are.
    """

    client_samples: Sequence[IntArray]
    batch_size: int
    stream: Stream
    augmentation: Augmentation | None = None

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
        keys = np.empty((len(clients), steps, 2), dtype=np.int64)
        generators, numbers = Generators(), clients.tolist()
        samples_of = [self.client_samples[client] for client in numbers]
        keys_of = [_keys(self.stream, client) for client in numbers]
        for row, (samples, first) in enumerate(zip(samples_of, first_steps.tolist(), strict=True)):
            per_pass = -(-len(samples) // size)
            last = len(samples) - (per_pass - 1) * size  # samples of the last batch of a pass
            shuffles, keys[row, :, 0] = keys_of[row]
            number, position = divmod(first, per_pass)
            passes = -(-(position + steps) // per_pass)
            indices, weights, done = index[row].reshape(-1), weight[row], 0
            for order in generators.permutations(shuffles, number, passes, len(samples)):
                batches = min(per_pass - position, steps - done)
                found = samples[order[position * size : (position + batches) * size]]
                indices[done * size : done * size + len(found)] = found
                weights[done : done + batches] = 1.0 / size
                done += batches
                if position + batches == per_pass and last < size:
                    weights[done - 1, :last] = 1.0 / last
                    weights[done - 1, last:] = 0.0
                position = 0
        keys[:, :, 1] = first_steps[:, None] + np.arange(steps)
        found_keys = keys.astype(np.uint32).view(np.int32)
        drawn = Batches(
            torch.from_numpy(index), torch.from_numpy(weight), torch.from_numpy(found_keys)
        )
        if self.augmentation is None:
            return drawn
        streams = [self.stream.child("client", client, "augment") for client in numbers]
        seeds = [
            [stream.key(first + step) >> 1 for step in range(steps)]
            for stream, first in zip(streams, first_steps.tolist(), strict=True)
        ]
        sizes = np.count_nonzero(weight, axis=-1)
        return replace(drawn, seeds=np.array(seeds, dtype=np.int64), sizes=sizes)


@lru_cache(maxsize=1 << 16)
def _keys(stream: Stream, client: int) -> tuple[NDArray[np.uint64], int]:
    """Keys of a client's streams: of its shuffles, and the lower half of that of its dropout."""
    own = stream.child("client", client)
    return own.child("batches").philox_key(), own.child("dropout").key() & 0xFFFFFFFF
