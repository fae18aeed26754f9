"""Max-min receive beamforming by annealing: many starts on the sphere, then a polish of the best.

The minimum over clients is not differentiable. Gradient ascent with momentum therefore maximises a
soft minimum, the power mean of the |a^H h_i| with exponent -beta, while beta grows; its maximiser
does not depend on the channels' scale. Phase-SCA then polishes the best results: for fixed phases
of the a^H h_i the best beamformer is a least-norm point, and no step decreases the objective.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from solvers.beamforming.beamformer_backend import FoundBeamformers, FromRandomStarts
from solvers.beamforming.beamforming_problem import BeamformingProblems
from solvers.beamforming.directions import best_of, unit_norm, worst
from solvers.beamforming.least_norm import least_norm

_BETA_FIRST = (0.5, 8.0)  # range over the starts
_BETA_LAST = 150.0
_MOMENTUM = 0.9
_STEP = 5.0
_STEP_POWER = 0.7  # steps shrink as beta^-0.7, because curvature grows with beta
_POLISH, _LAST_POLISH = 3, 8  # polishing steps for the top starts, and for the best of these
_WIDEST = 1e6
_CHUNK_NUMBERS = {"cpu": 1 << 19, "cuda": 1 << 28}  # elements of the largest array of a chunk


@dataclass(frozen=True)
class Anneal(FromRandomStarts):
    """Annealing from random starts, followed by a polish of the best results.

    >>> import numpy as np
    >>> import solvers
    >>> h = np.random.default_rng(1).standard_normal((4, 3, 2)).view(complex)[..., 0]
    >>> backend = solvers.beamforming.Anneal(starts=4, seed=1)
    >>> solvers.optimize_beamformer(h, backend=backend).value.shape
    (3,)

    Args:
        starts: number of random starts, the same for every problem; None for
            :func:`default_starts`. For up to 16 clients, 16 is a fast setting.
        seed: seed of the starts.
    """

    name = "anneal"

    def solve(self, problem: BeamformingProblems) -> FoundBeamformers:
        """Find beamformers by annealing and polishing."""
        return FoundBeamformers(self.anneal(problem.h))

    def anneal(self, h: torch.Tensor) -> torch.Tensor:
        """Beamformers [problems, dimensions] for channels [problems, clients, dimensions]."""
        _, clients, antennas = h.shape
        starts = default_starts(clients) if self.starts is None else self.starts
        steps = 60 if clients <= 16 else 200
        generator = torch.Generator("cpu").manual_seed(self.seed)
        first = torch.randn(
            2 * antennas, starts, dtype=torch.float32, device="cpu", generator=generator
        ).to(h.device)
        first /= torch.linalg.vector_norm(first, dim=0)
        size = max(1, _CHUNK_NUMBERS.get(h.device.type, 1 << 19) // (2 * clients * starts))
        return torch.cat([_solve(part, first, steps) for part in torch.split(h, size)])


def default_starts(clients: int) -> int:
    """Default number of starts; reaches 0.9995 of the optimum on average (60 clients: 0.995)."""
    return 64 if clients <= 16 else 112


def _solve(h: torch.Tensor, first: torch.Tensor, steps: int) -> torch.Tensor:
    points, scores = _climb(_narrowed(h), first, steps)
    top = min(max(2, first.shape[-1] // 8), first.shape[-1])
    best = scores.topk(top, dim=-1).indices
    points = points.gather(2, best.unsqueeze(1).expand(-1, points.shape[1], -1)).double()
    antennas = h.shape[-1]
    a = torch.complex(points[:, :antennas], points[:, antennas:]).mT
    a = unit_norm(a)  # to double precision
    good = torch.isfinite(torch.view_as_real(a)).all(-1).all(-1, keepdim=True)
    a = torch.where(good, a, unit_norm(h[:, :1]))
    best_one = best_of(h, polish(h, a, steps=_POLISH)).unsqueeze(1)
    return polish(h, best_one, steps=_LAST_POLISH).squeeze(1)


def _narrowed(h: torch.Tensor) -> torch.Tensor:
    """Clip channels to 1e6 times the weakest one's norm, to fit single precision.

    A stronger client attains the minimum only if its channel is within 1e-6 of orthogonal to the
    beamformer.
    """
    length = torch.linalg.vector_norm(h, dim=-1, keepdim=True)
    weakest = length.amin(1, keepdim=True)
    factor: torch.Tensor = length.clamp_max(_WIDEST * weakest) / length / weakest
    return h * factor


def _climb(h: torch.Tensor, first: torch.Tensor, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Annealed points [problems, 2 antennas, starts] and their min |a^H h_i|^2, in float32.

    Complex numbers are stored as pairs of real numbers: y = G a holds the real and imaginary parts
    of all h_i^H a.
    """
    problems, clients, _ = h.shape
    real, imag = h.real.float(), h.imag.float()
    rows = torch.cat([torch.cat([real, imag], -1), torch.cat([-imag, real], -1)], -2)
    columns = rows.mT.contiguous()
    power = (real.square() + imag.square()).sum(-1).unsqueeze(-1)
    starts = first.shape[-1]
    low, high = _BETA_FIRST
    start_beta = low * torch.logspace(
        0, 1, starts, base=high / low, dtype=torch.float32, device=h.device
    )
    a = first.expand(problems, -1, -1).clone()
    speed = torch.zeros_like(a)
    for step in range(steps):
        beta = start_beta * (_BETA_LAST / start_beta) ** (step / (steps - 1))
        y = (rows @ a).view(problems, 2, clients, starts)
        squared = y.square().sum(1).clamp_min_(1e-30)
        # weights of the soft minimum over |y|^2: d log(power mean) / d a = G' (weight y)
        weight = torch.softmax((-0.5 * beta) * squared.log(), 1).div_(squared)
        slope = columns @ (y * weight.unsqueeze(1)).view(problems, 2 * clients, starts)
        slope -= a * (slope * a).sum(1, keepdim=True)
        curvature = (weight * power).sum(1, keepdim=True) * beta**_STEP_POWER
        rate = _STEP * (1 - step / steps)
        speed = speed.mul_(_MOMENTUM).addcdiv_(slope, curvature, value=rate)
        a += speed
        a /= torch.linalg.vector_norm(a, dim=1, keepdim=True)
    y = (rows @ a).view(problems, 2, clients, starts)
    return a, y.square().sum(1).amin(1).nan_to_num_(0.0)


def polish(h: torch.Tensor, a: torch.Tensor, *, steps: int = 4) -> torch.Tensor:
    """Improve beamformers [problems, starts, antennas] by phase-SCA.

    Each step sets g_i = h_i e^(j arg(h_i^H a)), solves min ||m||^2 subject to Re(g_i^H m) >= 1, and
    sets a = m / ||m|| if this improves the objective.
    """
    for _ in range(steps):
        y = a @ h.mH
        g = torch.where(y == 0, 1.0, torch.sgn(y)).unsqueeze(-1) * h.unsqueeze(1)
        rows = torch.cat([g.real, g.imag], -1)
        minimum = least_norm(rows, torch.ones_like(rows[..., 0]), steps=8).point
        m = torch.complex(*minimum.tensor_split(2, dim=-1))
        new = unit_norm(m)
        better = worst(h, new) > worst(h, a)
        a = torch.where(better.unsqueeze(-1), new, a)
    return a
