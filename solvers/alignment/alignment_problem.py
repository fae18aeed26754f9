"""The weighted over-the-air sum: reads and scales the arguments, and converts results back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from channels.arguments import is_complex, is_number
from channels.arrays import BoolArray, FloatArray
from channels.validation import as_numpy, shown
from solvers.arrays import finite
from solvers.channel_arrays import clients_shape, read_channels

# Within these limits squares and their sums stay in the range of double precision.
_MIN_GAIN, _MAX_GAIN = 1e-120, 1e120


class AlignmentProblems(NamedTuple):
    """A batch of problems in normal form, see :mod:`solvers.alignment.gains`.

    Args:
        g: [problems, clients, dimensions] complex128; 0 for absent clients.
        q: [problems, clients] >= 0, of norm 1; 0 for absent clients.
        kappa: [problems], 0 to infinity.
        present: [problems, clients], clients with a weight above 0.
    """

    g: Tensor
    q: Tensor
    kappa: Tensor
    present: Tensor

    def rows(self, which: Any) -> AlignmentProblems:
        """The problems that an index or a mask selects."""
        return AlignmentProblems(*(part[which] for part in self))


@dataclass(frozen=True, eq=False)
class Arguments:
    """The validated arguments, one problem per row.

    Args:
        shape: shape of the batch.
        h: [problems, clients, antennas] complex128.
        q, amplitude: [problems, clients] float64.
        noise: [problems] float64, noise variance.
        correlation: c in [0, 1).
        unbiased: whether sum w = sum q is required.
        problems: the normal form.
        basis: [problems, antennas, dimensions], orthonormal columns; None if the dimensions are the
            antennas.
    """

    shape: tuple[int, ...]
    h: Tensor
    q: Tensor
    amplitude: Tensor
    noise: Tensor
    correlation: float
    unbiased: bool
    problems: AlignmentProblems
    basis: Tensor | None

    @property
    def unit(self) -> Tensor:
        """The objective [problems] that counts as 1 in normal form."""
        return (1 - self.correlation) * self.q.square().sum(-1)

    @property
    def lacking(self) -> dict[str, BoolArray]:
        """Clients [problems, clients] of positive weight that cannot send, by reason."""
        sends, mute = self.q > 0, (self.h == 0).all(-1)
        reasons = {"h": sends & mute, "max_amplitude": sends & ~mute & (self.amplitude == 0)}
        return {f"send: {name} is 0": which.cpu().numpy() for name, which in reasons.items()}

    def receive(self, a: Tensor) -> Tensor:
        """Receive beamformers [problems, antennas] for points [problems, dimensions]."""
        if self.basis is not None:
            a = (self.basis @ a.unsqueeze(-1)).squeeze(-1)
        return a * (self.unit / self.noise).sqrt().unsqueeze(-1)


def read_arguments(
    h: Any,
    weights: Any,
    max_amplitude: Any,
    noise_variance: Any,
    correlation: Any,
    unbiased_sum: Any,
) -> Arguments:
    """Read, validate and scale the arguments."""
    channels = read_channels(h)
    if channels.ndim == 1:  # one problem, one antenna
        channels = channels.unsqueeze(-1)
    if channels.ndim < 2 or 0 in channels.shape[-2:]:
        raise ValueError(
            f"h has shape {tuple(np.shape(h))}: give [..., clients, antennas], or [clients] for "
            "one antenna, with at least one client and one antenna."
        )
    by_name = {
        "weights": finite("weights", weights, "any one unit"),
        "max_amplitude": finite("max_amplitude", max_amplitude, "square roots of watts"),
    }
    noise = finite("noise_variance", noise_variance, "watts", above=True)
    shape = _shape(channels, by_name, noise)
    q, amplitude = (
        np.broadcast_to(array, shape).reshape(-1, shape[-1]) for array in by_name.values()
    )
    if shape[-1] and not q.any(-1).all():
        raise ValueError("weights are 0 for every client of a problem: give at least one above 0.")
    antennas = channels.shape[-1]
    channels = channels.to(torch.complex128).expand(*shape, antennas)
    channels = channels.reshape(len(q), shape[-1], antennas)
    variance = np.broadcast_to(noise, shape[:-1]).reshape(-1)
    device = channels.device
    power = tuple(torch.from_numpy(x.copy()).to(device) for x in (q, amplitude, variance))
    return _arguments(shape[:-1], channels, power, _correlation(correlation), _flag(unbiased_sum))


def _arguments(
    shape: tuple[int, ...],
    h: Tensor,
    power: tuple[Tensor, ...],
    correlation: float,
    unbiased: bool,
) -> Arguments:
    q, amplitude, noise = power
    present = q > 0
    level = amplitude * ((1 - correlation) / noise.unsqueeze(-1)).sqrt()
    g = torch.where(present.unsqueeze(-1), h * level.unsqueeze(-1), 0.0)
    largest = g.abs().amax(-1)
    able = present & (h != 0).any(-1) & (amplitude > 0)
    bad = ~((largest >= _MIN_GAIN) & (largest <= _MAX_GAIN)) & able
    if bad.any():
        at = [
            int(i) for i in np.unravel_index(int(bad.flatten().nonzero()[0]), (*shape, len(q[0])))
        ]
        raise ValueError(
            f"max_amplitude h / sqrt(noise_variance) of client {at} is {float(largest[bad][0]):.0e}"
            f": give values within {_MIN_GAIN:g} to {_MAX_GAIN:g}, or 0. Change the unit."
        )
    basis = None
    if h.shape[1] < h.shape[2]:  # components orthogonal to all channels only add noise
        basis, root = torch.linalg.qr(g.mT)
        g = root.mT.contiguous()
    ratio = math.inf if correlation == 0 else (1 - correlation) / correlation
    kappa = torch.full_like(noise, 0.0 if unbiased else ratio)
    unit = q / torch.linalg.vector_norm(q, dim=-1, keepdim=True)
    problems = AlignmentProblems(g, unit, kappa, present)
    return Arguments(shape, h, q, amplitude, noise, correlation, unbiased, problems, basis)


def _shape(channels: Tensor, arrays: dict[str, FloatArray], noise: FloatArray) -> tuple[int, ...]:
    """The common shape [..., clients]."""
    shape = clients_shape(channels, *(array.shape for array in arrays.values()), (*noise.shape, 1))
    if not shape:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"the shapes do not fit: h {tuple(channels.shape)}, {shapes}, noise_variance "
            f"{noise.shape}. Give h [..., clients, antennas], weights and max_amplitude "
            "[..., clients], noise_variance [...]."
        )
    return shape


def _correlation(value: Any) -> float:
    if not is_number(value) or is_complex(value) or not 0 <= as_numpy(value) < 1:
        raise ValueError(f"correlation is {shown(value)}: give a number from 0 to below 1.")
    return float(as_numpy(value))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"unbiased_sum is {shown(value)}: give True or False.")
    return bool(value)
