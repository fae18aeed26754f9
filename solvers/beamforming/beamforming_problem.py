"""The beamforming problem: reads, validates and scales the channels, and converts results back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from channels.arguments import is_complex, is_numeric
from channels.arrays import FloatArray
from channels.validation import as_numpy, check_readable, is_tensor, shown
from solvers.arrays import first
from solvers.channel_arrays import clients_shape, read_channels

# Within these limits squares and their sums stay in the range of double precision.
_MIN_ENTRY, _MAX_ENTRY = 1e-140, 1e140


@dataclass(frozen=True, eq=False)
class BeamformingProblems:
    """A batch of problems in normal form.

    >>> import numpy as np
    >>> import solvers
    >>> from solvers.beamforming import Default, BeamformingProblems
    >>> class Shown(Default):
    ...     # Prints the shape of the problems that it gets
    ...     def solve(self, problem: BeamformingProblems):
    ...         print(list(problem.h.shape))  # no more dimensions than clients
    ...         return super().solve(problem)
    >>> _ = solvers.optimize_beamformer(np.eye(2, 8) + 0j, backend=Shown())
    [1, 2, 2]

    Args:
        reference: ``h`` as the caller gave it, a tensor or an array.
        shape: shape of the batch, () for a single problem.
        h: [problems, clients, dimensions] complex128, no channel zero. The channel of another
            client replaces those of ignored clients and zero channels. The geometric mean of the
            channels' norms is 1, and there are at most as many dimensions as clients.
        basis: [problems, antennas, dimensions], orthonormal columns; None if the dimensions are the
            antennas.
        unit: [problems], scale by which the channels were divided.
        mute: [problems, clients], clients with a zero channel that are not ignored.
    """

    reference: Any
    shape: tuple[int, ...]
    h: torch.Tensor
    basis: torch.Tensor | None
    unit: torch.Tensor
    mute: torch.Tensor

    def antennas(self, value: torch.Tensor) -> torch.Tensor:
        """Convert beamformers [problems, dimensions] to the caller's shape [..., antennas]."""
        if self.basis is not None:
            value = (self.basis @ value.unsqueeze(-1)).squeeze(-1)
        return value.to(torch.as_tensor(self.reference).dtype).reshape(*self.shape, value.shape[-1])

    def objective(self, values: torch.Tensor) -> torch.Tensor:
        """Convert objectives or bounds [problems] to the caller's units; 0 for a zero channel."""
        return torch.where(self.mute.any(-1), 0.0, values * self.unit.square())

    def like(self, tensor: torch.Tensor) -> Any:
        """Convert ``tensor`` [problems, ...] to the array type of ``h``."""
        return tensor if is_tensor(self.reference) else tensor.cpu().numpy()


def read_problems(h: Any, scales: Any) -> BeamformingProblems:
    """Read and validate the problems."""
    channels = read_channels(h)
    reference = channels if is_tensor(h) else channels.numpy()
    if channels.ndim < 2 or 0 in channels.shape[-2:]:
        raise ValueError(
            f"h has shape {tuple(channels.shape)}: give [..., clients, antennas] with at least one "
            "client and one antenna."
        )
    scale = np.ones(()) if scales is None else _read_scales(scales)
    (*batch, clients), antennas = _common_shape(channels, scale), channels.shape[-1]
    shape = tuple(batch)
    channels = channels.expand(*shape, clients, antennas)
    channels = channels.reshape(math.prod(shape), clients, antennas).to(torch.complex128)
    zero = (channels == 0).all(-1)
    _check_range(channels, zero, shape, "h", "Change the unit.")
    scale = np.broadcast_to(scale, (*shape, clients)).reshape(channels.shape[:2])
    absent = torch.from_numpy(scale == 0).to(channels.device)
    if absent.all(-1).any():
        raise ValueError("scales is 0 for every client of a problem: give at least one scale > 0.")
    if scales is not None:
        divisor = torch.from_numpy(np.where(scale == 0, 1.0, scale)).to(channels.device)
        channels = channels / divisor[:, :, None]
        _check_range(channels, zero | absent, shape, "h / scales", "Change the unit.")
    zero &= ~absent
    largest = channels.abs().amax((1, 2), keepdim=True)
    channels = channels / torch.where(largest > 0, largest, 1.0)
    remedy = "The strongest client has 1: leave out those that cannot be heard beside it."
    _check_range(channels, zero | absent, shape, "h / max |h|", remedy)
    ignored = (zero | absent).all(-1, keepdim=True)
    channels[:, :, 0] = torch.where(ignored, 1.0, channels[:, :, 0])
    channels = _replace(channels, (zero | absent) & ~ignored)
    length = torch.linalg.vector_norm(channels, dim=-1)
    level = length.log().mean(-1).exp()
    channels = channels / level[:, None, None]
    basis = None
    if clients < antennas:  # components orthogonal to all channels have no effect
        basis, root = torch.linalg.qr(channels.mT)
        channels = root.mT.contiguous()
    return BeamformingProblems(reference, shape, channels, basis, level * largest[:, 0, 0], zero)


def _check_range(
    channels: torch.Tensor, skip: torch.Tensor, shape: tuple[int, ...], name: str, remedy: str
) -> None:
    """Raise if squares of nonzero channels are out of the range of double precision."""
    largest = channels.abs().amax(-1)
    wrong = ~((largest >= _MIN_ENTRY) & (largest <= _MAX_ENTRY)) & ~skip
    if wrong.any():
        at = int(wrong.flatten().nonzero()[0])
        index = [int(i) for i in np.unravel_index(at, (*shape, channels.shape[1]))]
        raise ValueError(
            f"{name}{index} is of order {float(largest.flatten()[at]):.0e}: give channels within "
            f"{_MIN_ENTRY:g} to {_MAX_ENTRY:g}, or 0. {remedy}"
        )


def _read_scales(scales: Any) -> FloatArray:
    """Scales [..., clients] as float64, if all are finite and >= 0."""
    check_readable("scales", scales)
    if not is_numeric(scales):
        raise ValueError(f"scales is {shown(scales)}: give numbers, or an array of numbers.")
    if is_complex(scales):
        raise ValueError(f"scales is {shown(scales)}: give real numbers.")
    scale = np.array(as_numpy(scales), dtype=np.float64)
    good = np.isfinite(scale) & (scale >= 0)
    if not good.all():
        index, value = first(good, scale)
        raise ValueError(
            f"scales{index} is {value:g}: give finite numbers >= 0; 0 means that the client is "
            "ignored."
        )
    return scale


def _common_shape(channels: torch.Tensor, scale: FloatArray) -> tuple[int, ...]:
    """The shape [..., clients] of all problems."""
    shape = clients_shape(channels, scale.shape)
    if not shape:
        raise ValueError(
            f"scales has shape {scale.shape}, and h {tuple(channels.shape)}: give h [..., clients, "
            "antennas] and scales [..., clients]."
        )
    return shape


def _replace(channels: torch.Tensor, absent: torch.Tensor) -> torch.Tensor:
    """Replace the channels of ``absent`` clients by that of the first client that is present."""
    first = (~absent).to(torch.int8).argmax(-1)
    present = channels[torch.arange(len(channels), device=channels.device), first]
    return torch.where(absent[:, :, None], present[:, None], channels)
