"""Exact receive beamforming in two dimensions: a list of points on a sphere has the optimum.

With two antennas, or two clients, a unit-norm beamformer up to its phase is a point s of the unit
sphere: a a^H = (I + s . sigma) / 2 with the Pauli matrices sigma. The gain of client i is affine
in it, |a^H h_i|^2 = (p_i + v_i . s) / 2, where p_i = ||h_i||^2 and v_i is a vector of length p_i.

At a maximiser of the least gain, the gradients along the sphere of the clients with this gain have
0 in their convex hull. The sphere has two dimensions, so three of these clients suffice. One
client: s points along v_i. Two: s is the best point of the circle on which their gains agree.
Three: s is one of the two points where such circles meet. All of these points are scored.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import torch
from torch import Tensor

from solvers.beamforming.directions import best_of

MOST_CLIENTS = 32
"""Maximum number of clients: the time grows with their fourth power, to 4 ms for 32."""
_MOST_SPREAD = 1e8  # of the gains ||h_i||^2; rounding errors grow with it
# Differences of axes, relative to ||h_i||^2:
_INEXACT = 1e-7  # shorter ones have lost so many digits that they leave their plane
_NOISE = 1e-15  # shorter ones are rounding errors
_CHUNK_NUMBERS = 1 << 19  # elements of the largest array of a chunk


def solvable(h: Tensor) -> Tensor:
    """Which problems [problems] :func:`exact_points` solves up to rounding errors.

    Args:
        h: channels [problems, clients, dimensions] complex128.
    """
    _, clients, dimensions = h.shape
    gain = h.abs().square().sum(-1)
    small = dimensions == 2 and clients <= MOST_CLIENTS
    return (gain.amax(-1) <= _MOST_SPREAD * gain.amin(-1)) & small


def exact_points(h: Tensor) -> Tensor:
    """Beamformers [problems, 2] of unit norm that maximise the least gain.

    Args:
        h: channels [problems, clients, 2] complex128, none of them zero.
    """
    clients = h.shape[1]
    numbers = len(_indices(clients, 3)) * 2 * clients
    size = max(1, _CHUNK_NUMBERS // max(numbers, 1))
    return torch.cat([_best(part) for part in torch.split(h, size)])


def _best(h: Tensor) -> Tensor:
    power = h.abs().square().sum(-1)
    cross = 2 * h[..., 0].conj() * h[..., 1]
    axis = torch.stack(
        [cross.real, cross.imag, h[..., 0].abs().square() - h[..., 1].abs().square()], -1
    )
    candidates = torch.cat([axis, _of_pairs(power, axis), _of_triples(power, axis)], 1)
    length = torch.linalg.vector_norm(candidates, dim=-1, keepdim=True)
    usable = torch.isfinite(length) & (length > 0)
    candidates = torch.where(usable, candidates / length, axis[:, :1] / power[:, :1, None])
    gains = power.unsqueeze(1) + candidates @ axis.mT
    # The gains of a strong client are inaccurate where they cancel, so the best few are rescored.
    few = gains.amin(-1).topk(min(4, candidates.shape[1]), dim=-1).indices
    points = candidates.gather(1, few.unsqueeze(-1).expand(-1, -1, 3))
    return best_of(h, _beamformers(points))


def _of_pairs(power: Tensor, axis: Tensor) -> Tensor:
    """The best point of each circle on which the gains of two clients agree.

    It is in the span of both axes: the point of the circle's plane that is nearest to 0, and from
    there to the sphere along the direction in the plane that increases the gains.
    """
    first, second = _indices(power.shape[1], 2).to(power.device).T
    normal, offset = _plane(power, axis, first, second)
    square = normal.square().sum(-1, keepdim=True)
    nearest = normal * (offset / square)
    climb = axis[:, first] - normal * ((axis[:, first] * normal).sum(-1, keepdim=True) / square)
    length = torch.linalg.vector_norm(climb, dim=-1, keepdim=True)
    inexact = length <= _INEXACT * power[:, first].unsqueeze(-1)
    climb = torch.where(inexact, _within(normal, climb, power[:, first]), climb / length)
    rest = (1 - nearest.square().sum(-1, keepdim=True)).clamp_min(0)
    best: Tensor = nearest + climb * rest.sqrt()
    return best


def _within(normal: Tensor, climb: Tensor, power: Tensor) -> Tensor:
    """Unit vectors [..., 3] in the planes, along ``climb`` or, where it is rounding noise, any.

    Orthogonal channels have opposite axes: all points of the circle are then equally good.
    """
    unit = normal / torch.linalg.vector_norm(normal, dim=-1, keepdim=True)
    across = torch.nn.functional.one_hot(unit.abs().argmin(-1), 3).to(unit)
    noise = torch.linalg.vector_norm(climb, dim=-1) <= _NOISE * power
    climb = torch.where(noise.unsqueeze(-1), across, climb)
    for _ in range(2):
        climb = climb / torch.linalg.vector_norm(climb, dim=-1, keepdim=True)
        climb = climb - unit * (climb * unit).sum(-1, keepdim=True)
    within: Tensor = climb / torch.linalg.vector_norm(climb, dim=-1, keepdim=True)
    return within


def _of_triples(power: Tensor, axis: Tensor) -> Tensor:
    """Both points at which the gains of three clients agree; meaningless where there are none."""
    first, second, third = _indices(power.shape[1], 3).to(power.device).T
    one, here = _plane(power, axis, first, second)
    other, there = _plane(power, axis, first, third)
    line = torch.linalg.cross(one, other)
    square = line.square().sum(-1, keepdim=True)
    nearest = (
        here * torch.linalg.cross(other, line) + there * torch.linalg.cross(line, one)
    ) / square
    rest = (1 - nearest.square().sum(-1, keepdim=True)).clamp_min(0)
    away = line * (rest / square).sqrt()
    return torch.cat([nearest + away, nearest - away], 1)


def _plane(power: Tensor, axis: Tensor, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Normal and offset of the planes on which the gains of two clients agree, in their scale."""
    scale = torch.maximum(power[:, one], power[:, other])
    normal = (axis[:, one] - axis[:, other]) / scale.unsqueeze(-1)
    return normal, ((power[:, other] - power[:, one]) / scale).unsqueeze(-1)


def _beamformers(points: Tensor) -> Tensor:
    """Beamformers [..., 2] of unit norm for points [..., 3] of the sphere."""
    x, y, z = points.unbind(-1)
    large = ((1 + z.abs()) / 2).sqrt()
    small = torch.complex(x, y) / (2 * large)
    up = z >= 0
    first = torch.where(up, large.to(small.dtype), small.conj())
    a = torch.stack([first, torch.where(up, small, large.to(small.dtype))], -1)
    unit: Tensor = a / torch.linalg.vector_norm(a, dim=-1, keepdim=True)
    return unit


@cache
def _indices(clients: int, size: int) -> Tensor:
    """All sets of ``size`` clients, [sets, size]."""
    sets = list(combinations(range(clients), size))
    return torch.tensor(sets, dtype=torch.int64, device="cpu").reshape(-1, size)
