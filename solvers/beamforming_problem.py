"""The beamforming problem as its caller states it: read, checked, scaled, and answered in kind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from channels.checks import is_tensor


@dataclass(frozen=True, eq=False)
class Problems:
    """A batch of problems in a form that every method can take.

    Args:
        given: ``h`` as the caller gave it.
        shape: the batch's shape, () for a single problem.
        h: [problems, clients, dimensions] complex128, no channel zero. Absent clients and zero
            channels are stood in for by a client that counts; the geometric mean of the channels'
            norms is 1; there are no more dimensions than clients.
        basis: [problems, antennas, dimensions], orthonormal columns, or None where dimensions are
            antennas.
        unit: [problems], what the channels were divided by.
        blocked: [problems], the first client with a zero channel, -1 where there is none.
    """

    given: Any
    shape: tuple[int, ...]
    h: Tensor
    basis: Tensor | None
    unit: Tensor
    blocked: Tensor

    def antennas(self, value: Tensor) -> Tensor:
        """Beamformers [problems, dimensions] as the caller has them, [..., antennas]."""
        if self.basis is not None:
            value = (self.basis @ value.unsqueeze(-1)).squeeze(-1)
        if is_tensor(self.given):
            return value.to(self.given.dtype).reshape(*self.shape, value.shape[-1])
        return value.to(_torch_type(self.given.dtype)).reshape(*self.shape, value.shape[-1])

    def objective(self, values: Tensor) -> Tensor:
        """Objectives or bounds [problems] in the caller's units; 0 where a channel is zero."""
        return torch.where(self.blocked >= 0, 0.0, values * self.unit.square())

    def like(self, tensor: Tensor) -> Any:
        """``tensor`` [problems, ...] as the kind of array that ``h`` is."""
        return tensor if is_tensor(self.given) else tensor.cpu().numpy()


def read_problems(h: Any, scales: Any) -> Problems:
    """The problems, checked.

    Raises:
        ValueError: shape, dtype or a value is wrong; the message says which.
    """
    given = h.detach() if is_tensor(h) else np.asarray(h)
    channels = _complex(given)
    if channels.ndim < 2 or 0 in channels.shape[-2:]:
        raise ValueError(
            f"h has shape {tuple(channels.shape)}: give [..., clients, antennas], with a client "
            "and an antenna at least."
        )
    finite = torch.isfinite(channels.real) & torch.isfinite(channels.imag)
    if not finite.all():
        place = _first(~finite)
        raise ValueError(
            f"h{place} is {complex(channels[tuple(place)])}: give finite channels. Is a path gain "
            "missing, or a unit wrong?"
        )
    shape, (clients, antennas) = tuple(channels.shape[:-2]), channels.shape[-2:]
    channels = channels.reshape(math.prod(shape), clients, antennas).to(torch.complex128)
    if scales is not None:
        channels = _scaled(channels, scales, (*shape, clients))
    largest = channels.abs().amax((1, 2), keepdim=True)
    channels = channels / torch.where(largest > 0, largest, 1.0)
    length = torch.linalg.vector_norm(channels, dim=-1)
    zero = (length == 0).to(torch.int8)
    blocked = torch.where(zero.any(-1), zero.argmax(-1), -1)
    channels[:, :, 0] = torch.where(zero.all(-1, keepdim=True), 1.0, channels[:, :, 0])
    channels = _replace(channels, zero.bool() & ~zero.all(-1, keepdim=True).bool())
    length = torch.linalg.vector_norm(channels, dim=-1)
    level = length.log().mean(-1).exp()
    channels = channels / level[:, None, None]
    basis = None
    if clients < antennas:  # what is orthogonal to all channels is of no use
        basis, root = torch.linalg.qr(channels.mT)
        channels = root.mT.contiguous()
    return Problems(given, shape, channels, basis, level * largest[:, 0, 0], blocked)


def _complex(given: Any) -> Tensor:
    """The channels as a complex tensor on their device."""
    if isinstance(given, np.ndarray):
        if given.dtype not in (np.complex64, np.complex128):
            raise ValueError(
                f"h has dtype {given.dtype}: give complex64 or complex128, e.g. h.astype(complex)."
            )
        return torch.from_numpy(np.ascontiguousarray(given))
    if given.dtype not in (torch.complex64, torch.complex128):
        raise ValueError(
            f"h has dtype {given.dtype}: give complex64 or complex128, e.g. h.to(torch.complex64)."
        )
    channels: Tensor = given
    return channels


def _scaled(channels: Tensor, scales: Any, shape: tuple[int, ...]) -> Tensor:
    """h_i / s_i, where those that are absent (s_i = 0) are stood in for."""
    if is_tensor(scales):
        scale = scales.detach().to(channels.device, torch.float64)
    else:
        scale = torch.from_numpy(np.array(scales, dtype=np.float64)).to(channels.device)
    try:
        scale = scale.broadcast_to(shape).reshape(channels.shape[:2])
    except RuntimeError:
        raise ValueError(
            f"scales has shape {tuple(scale.shape)}: give one for each client, or values that "
            f"broadcast to {shape}."
        ) from None
    good = torch.isfinite(scale) & (scale >= 0)
    if not good.all():
        place = _first(~good.reshape(shape))
        raise ValueError(
            f"scales{place} is {scale[~good][0]:g}: give finite numbers, 0 for a client that does "
            "not count."
        )
    absent = scale == 0
    if absent.all(-1).any():
        raise ValueError("scales is 0 for every client of a problem: one must count.")
    channels = channels / torch.where(absent, 1.0, scale)[:, :, None]
    return _replace(channels, absent)


def _replace(channels: Tensor, absent: Tensor) -> Tensor:
    """Channels in which the first client that is there stands in for those who are ``absent``."""
    first = (~absent).to(torch.int8).argmax(-1)
    there = channels[torch.arange(len(channels), device=channels.device), first]
    return torch.where(absent[:, :, None], there[:, None], channels)


def _first(wrong: Tensor) -> list[int]:
    return [int(i) for i in wrong.nonzero()[0]]


def _torch_type(dtype: Any) -> torch.dtype:
    return torch.complex64 if dtype == np.complex64 else torch.complex128
