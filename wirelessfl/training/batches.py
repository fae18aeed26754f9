"""Mini-batches: each client reshuffles its data for every pass and resumes where it stopped.

The batch of a client's step s is a function of s only: it belongs to pass s // ceil(n/b), which is
shuffled by the named stream of client and pass. Between rounds only the number of completed steps
is stored. A function of the user may augment the samples of each batch at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from channels.arrays import IntArray
from channels.streams import Generators, Stream
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.guard import calling, described
from wirelessfl.base.import_paths import is_import_path, module_and_name
from wirelessfl.base.registry import import_path
from wirelessfl.base.torch_state import other_states, torch_state
from wirelessfl.base.wording import shown

AugmentFunction = Callable[["torch.Tensor", "torch.Generator"], "torch.Tensor"]
WANTED = "a function f(x, generator) of a client's samples x [batch, ...] and a torch.Generator"


@dataclass(frozen=True)
class Augmentation:
    """A function of the user that changes the samples of a client's batch at random.

    Args:
        function: ``f(x, generator)``, which returns the changed samples. ``x`` has the samples of
            one client's step, [batch, ...], and ``generator`` is a ``torch.Generator`` on their
            device, whose seed depends on the run's seed, the client and the step only.
        called: its name, for messages.
    """

    function: AugmentFunction
    called: str

    @classmethod
    def of(cls, function: object) -> Augmentation:
        """The augmentation by a given function."""
        if not callable(function) or isinstance(function, type):
            raise ConfigError(
                f"augment is {shown(function)}: give {WANTED}. Its import path, module:function, "
                "is a setting."
            )
        return cls(function, str(getattr(function, "__name__", type(function).__name__)))

    @classmethod
    def find(cls, path: str) -> Augmentation:
        """The augmentation by the function at an import path."""
        if not is_import_path(path):
            raise ConfigError(
                f"augment is {path!r}: give the import path, module:function or file.py:function, "
                f"of {WANTED}."
            )
        function = import_path("augment", path)
        if not callable(function) or isinstance(function, type):
            raise ConfigError(f"augment {path!r} is {shown(function)}: give {WANTED}.")
        return cls(function, module_and_name(path)[1])

    def batches(self, x: torch.Tensor, sizes: Sequence[int], seeds: Sequence[int]) -> torch.Tensor:
        """Augmented samples of several clients.

        Args:
            x: [clients, batch, ...]; the function may change it.
            sizes: number of samples of each client; the remaining ones are padding.
            seeds: seed of each client's generator.

        Returns:
            [clients, batch, ...].
        """
        generator, augmented = torch.Generator(x.device), x.clone()
        for client, (size, seed) in enumerate(zip(sizes, seeds, strict=True)):
            augmented[client, :size] = self._batch(x[client, :size], generator.manual_seed(seed))
        return augmented

    def _batch(self, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        shape, kind = x.shape, x.dtype
        with torch.no_grad(), calling(f"augment {self.called!r}"):
            values = self.function(x, generator)
        if not isinstance(values, torch.Tensor) or values.shape != shape or values.dtype != kind:
            raise ConfigError(
                f"augment {self.called!r} returned {described(values)}: return samples of the "
                f"shape and dtype that it gets, {kind} {list(shape)}."
            )
        return values

    def check(self, x: torch.Tensor) -> None:
        """Try the function on a few samples ``x`` [batch, ...].

        It must return finite samples, keep no state, and draw from its generator alone, so that
        results can be repeated.
        """
        before, others = torch_state(x), other_states()
        try:
            augmented, again = (self.batches(x[None].clone(), [len(x)], [0]) for _ in range(2))
        except TrainingError as error:
            raise TrainingError(f"{error}. Give {WANTED}.") from error
        if not bool(augmented.isfinite().all()):
            raise ConfigError(f"augment {self.called!r} returned values that are not finite.")
        drawn = not torch.equal(torch_state(x), before) or other_states() != others
        if drawn or not torch.equal(augmented, again):
            raise ConfigError(
                f"augment {self.called!r} draws other random numbers than those of its generator, "
                "or keeps state, so results could not be repeated: draw from the generator alone, "
                "e.g. torch.rand(len(x), generator=generator, device=x.device)."
            )


class Batch(NamedTuple):
    """Samples of one step: [clients, batch, ...] for several clients, or [batch, ...] for one.

    Args:
        x: inputs.
        y: labels.
        weight: weight of each sample in the loss; 0 for padding.
        keys: dropout keys, [clients, 2], or [2] for one client.
    """

    x: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor
    keys: torch.Tensor


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

    index: torch.Tensor
    weight: torch.Tensor
    keys: torch.Tensor
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
                rows = samples[order[position * size : (position + batches) * size]]
                indices[done * size : done * size + len(rows)] = rows
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
    child = stream.child("client", client)
    return child.child("batches").philox_key(), child.child("dropout").key() & 0xFFFFFFFF
