"""Dropout with masks from a named stream, which do not depend on the order of training."""

from __future__ import annotations

import torch
from torch import Tensor, nn

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
