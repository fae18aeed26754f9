"""Local minima for many antennas: Newton steps on a majorant, from many starts.

With the phases of the received signals fixed, |a^H g_i| >= Re(e^{-j phi_i} a^H g_i), and the
objective becomes convex and piecewise quadratic in a. It is at least the true objective, and
equal to it at the current point. A semismooth Newton step solves it for the clients that are at
their limits; the best of several step lengths is taken, then the phases are renewed. No step
increases the objective. (The alternating closed forms of the literature also fix the transmit
amplitudes, and take many more steps at high SNR.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from solvers.alignment.alignment_problem import AlignmentProblems
from solvers.alignment.gains import best_scale, fill
from solvers.beamforming.least_norm import least_norm

_LENGTHS = (1.0, 2.0, 0.5, 0.2, 0.05)
_SMALLEST_KAPPA = 1e-4  # sum w = sum q becomes a penalty, until the last step
_ENOUGH = 1e-13  # relative decrease at which a start has converged


def objectives(problem: AlignmentProblems, a: Tensor) -> Tensor:
    """Objectives [problems, starts] of points a [problems, starts, antennas]."""
    y = (a.conj() @ problem.g.mT).abs()
    shape = y.shape
    q, present = problem.q.unsqueeze(1).expand(shape), problem.present.unsqueeze(1).expand(shape)
    error = fill(q, y, problem.kappa.unsqueeze(1).expand(shape[:-1]), present).error
    return error + a.abs().square().sum(-1)


def scaled(problem: AlignmentProblems, a: Tensor) -> Tensor:
    """Points a [problems, starts, antennas] with the best length for each direction."""
    length = torch.linalg.vector_norm(a, dim=-1, keepdim=True)
    unit = a / torch.where(length > 0, length, 1.0)
    y = (unit.conj() @ problem.g.mT).abs()
    shape = y.shape
    q, present = problem.q.unsqueeze(1).expand(shape), problem.present.unsqueeze(1).expand(shape)
    scale = best_scale(q, y, problem.kappa.unsqueeze(1).expand(shape[:-1]), present)
    return scale.alpha.unsqueeze(-1) * unit


def softened(problem: AlignmentProblems) -> bool:
    """Whether :func:`descend` replaces sum w = sum q by a penalty, in a problem of the batch."""
    return bool((problem.kappa < _SMALLEST_KAPPA).any())


def descend(problem: AlignmentProblems, a: Tensor, steps: int) -> Tensor:
    """Points [problems, starts, antennas] after ``steps`` Newton steps from ``a``."""
    soft = problem._replace(kappa=problem.kappa.clamp_min(_SMALLEST_KAPPA))
    value = objectives(soft, a)
    for _ in range(steps):
        target = _newton(soft, a)
        best, point = value, a
        for length in _LENGTHS:
            trial = torch.lerp(a, target, length)
            reached = objectives(soft, trial).nan_to_num(torch.inf)
            better = reached < best
            best = torch.where(better, reached, best)
            point = torch.where(better.unsqueeze(-1), trial, point)
        moved = best < value * (1 - _ENOUGH)
        a, value = point, best
        if not moved.any():
            break
    return a


def _newton(problem: AlignmentProblems, a: Tensor) -> Tensor:
    """Minimisers of the majorant's quadratic piece at points a [problems, starts, antennas]."""
    antennas = a.shape[-1]
    z = a.conj() @ problem.g.mT
    phase = torch.where(z == 0, 1.0, torch.sgn(z))
    turned = phase.conj().unsqueeze(-1) * problem.g.unsqueeze(1)
    shape = z.shape
    q, present = problem.q.unsqueeze(1).expand(shape), problem.present.unsqueeze(1).expand(shape)
    kappa = problem.kappa.unsqueeze(1).expand(shape[:-1])
    limited = fill(q, z.abs(), kappa, present).multipliers > 0
    rows = torch.cat([turned.real, turned.imag], -1)
    rows = torch.where(limited.unsqueeze(-1), rows, 0.0)
    asked = torch.where(limited, q, 0.0)
    together = rows.sum(-2)
    share = (1 / (kappa + (present & ~limited).sum(-1))).unsqueeze(-1)
    matrix = rows.mT @ rows
    matrix = matrix + (share * together).unsqueeze(-1) * together.unsqueeze(-2)
    matrix.diagonal(dim1=-2, dim2=-1).add_(1)
    right = (rows * asked.unsqueeze(-1)).sum(-2) + share * together * asked.sum(-1, keepdim=True)
    root, _ = torch.linalg.cholesky_ex(matrix)
    x = torch.cholesky_solve(right.unsqueeze(-1), root).squeeze(-1)
    return torch.complex(x[..., :antennas], x[..., antennas:])


def polish(problem: AlignmentProblems, a: Tensor, steps: int) -> Tensor:
    """Points [problems, starts, antennas] after solving the whole majorant ``steps`` times.

    min ||a||^2 + s'C s subject to Re(e^{-j phi_i} a^H g_i) + s_i >= q_i, with C = I + 1 1'/kappa,
    is a least-norm problem in (a, C^(1/2) s).
    """
    clients, antennas = problem.g.shape[-2:]
    count = problem.present.sum(-1)
    part = (1 - (1 + count / problem.kappa).rsqrt()) / count  # C^(-1/2) = I - part 1 1'
    both = problem.present.unsqueeze(-1) & problem.present.unsqueeze(-2)
    metric = torch.eye(clients, dtype=torch.float64, device=a.device) - torch.where(
        both, part[:, None, None], 0.0
    )
    metric = metric.unsqueeze(1).expand(-1, a.shape[1], -1, -1)
    value = objectives(problem, a)
    for _ in range(steps):
        z = a.conj() @ problem.g.mT
        phase = torch.where(z == 0, 1.0, torch.sgn(z))
        turned = phase.conj().unsqueeze(-1) * problem.g.unsqueeze(1)
        rows = torch.cat([turned.real, turned.imag, metric], -1)
        minimum = least_norm(rows, problem.q.unsqueeze(1).expand(z.shape), steps=10).point
        x, y, _ = minimum.tensor_split([antennas, 2 * antennas], dim=-1)
        new = scaled(problem, torch.complex(x, y))
        reached = objectives(problem, new).nan_to_num(torch.inf)
        better = reached < value
        a = torch.where(better.unsqueeze(-1), new, a)
        value = torch.minimum(reached, value)
    return a
