"""What built-in models share: dropout by streams, checks of images, initial weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from wirelessfl.base.errors import ConfigError

_LOW24 = (1 << 24) - 1


def _mix(x: Tensor) -> Tensor:
    """A 32-bit integer hash (the constants of C. Wellons' lowbias32); int32 arithmetic wraps."""
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * 0x7FEB352D
    x = x ^ ((x >> 15) & 0x1FFFF)
    x = x * (0x846CA68B - (1 << 32))
    return x ^ ((x >> 16) & 0xFFFF)


class StreamDropout(nn.Module):
    """Dropout with probability ``p``; the mask is a hash of (key, sample, feature).

    The executor replaces the buffer ``key`` (int32 [2], drawn from the stream of client and step)
    before every step. No generator is used, so dropout works under ``vmap``, and all executors and
    devices draw the same masks. A mask does not depend on the padding of a submodel or batch.

    Args:
        p: probability that an element is set to zero, in [0, 1).
        salt: number that distinguishes the layers of one model.
    """

    key: Tensor

    def __init__(self, p: float, salt: int = 0) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"dropout is {p}: give a probability in [0, 1).")
        self.p = p
        self.salt = salt
        self.register_buffer("key", torch.zeros(2, dtype=torch.int32), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Zero elements of ``x`` [batch, ...] and scale the rest by 1/(1-p); identity in eval."""
        if not self.training or self.p == 0.0:
            return x
        mask = self.mask(self.key[None], x.shape[0], x[0].numel())[0]
        return x * mask.view_as(x) / (1.0 - self.p)

    def mask(self, keys: Tensor, samples: int, features: int) -> Tensor:
        """Mask of kept elements [clients, samples, features] boolean, for ``keys`` [clients, 2]."""
        sample = torch.arange(samples, dtype=torch.int32, device=keys.device)
        feature = torch.arange(features, dtype=torch.int32, device=keys.device)
        rows = _mix(_mix(sample + keys[:, :1]) ^ keys[:, 1:])
        bits = _mix(rows[..., None] ^ (feature + self.salt * 0x01000193))
        return ((bits >> 8) & _LOW24) >= int(self.p * (1 << 24))


def check_images(model: str, input_shape: Sequence[int], side: int, fitting: str) -> None:
    """Raise unless samples are square images of the size that a model needs.

    Args:
        input_shape: shape of one sample, (channels, height, width).
        side: required height and width, in pixels.
        fitting: names of data sets with such images, for the message.
    """
    if tuple(input_shape[1:]) != (side, side):
        raise ConfigError(
            f"model {model} needs images of {side}x{side}, but the data set has samples of shape "
            f"{tuple(input_shape)}: choose {fitting}, or model fcnn."
        )


class OwnGenerator(TorchDispatchMode):
    """Initialisations in the calling thread draw from a generator of their own.

    The numbers are those of torch's global generator with the same seed, from which other threads
    may draw at the same time.

    Args:
        seed: seed of the generator.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._own = {"generator": torch.Generator().manual_seed(seed)}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would make torch import its compiler, which takes a second

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        draws = any(argument.name == "generator" for argument in func._schema.arguments)
        return func(*args, **(self._own if draws else {}) | (kwargs or {}))
