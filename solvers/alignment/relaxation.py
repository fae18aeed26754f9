"""Lower bounds for many antennas: the dual of the semidefinite relaxation.

For any w_i > 0, 2 |a^H g_i| <= w_i |a^H g_i|^2 / lambda_i + lambda_i / w_i. If the weights w >= 0
satisfy sum_i w_i g_i g_i^H <= I, the multipliers lambda of the limits thus prove, for every a,

    objective >= 2 lambda'q - lambda'(I - 1 1'/(kappa + K)) lambda - sum_i lambda_i^2 / w_i.

The best lambda is b_i (q_i + theta), with b = w / (1 + w) and theta = b'q / (kappa + K - sum b),
and makes the right-hand side D(w) = sum b q^2 + (b'q)^2 / (kappa + K - sum b), a concave function.
Its maximum is the dual of the convex problem over A >= 0 in place of a a^H. A barrier method finds
it for a whole batch, with one variable per client; for one antenna or three clients it is tight.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from solvers.alignment.alignment_problem import AlignmentProblems
from solvers.alignment.gains import dual_bound

_STEPS = 80
_GROWTH = 3.0  # growth factor of the barrier parameter per step
_LAST = 1e9


class Relaxation(NamedTuple):
    """Result of the relaxation.

    Args:
        bound: [problems], lower bounds on the objective.
        weights: w [problems, clients] >= 0 that prove them.
        covariance: [problems, antennas, antennas], close to a multiple of the relaxation's A.
    """

    bound: Tensor
    weights: Tensor
    covariance: Tensor


def relax(problem: AlignmentProblems) -> Relaxation:
    """Solve the relaxation, from above in w and so from below in the bound."""
    g = problem.g
    length = torch.linalg.vector_norm(g, dim=-1)
    moves = length > 0
    length = torch.where(moves, length, 1.0)
    unit = g / length.unsqueeze(-1)  # w_i in units of 1 / ||g_i||^2, so that its range is narrow
    clients, antennas = g.shape[-2:]
    eye = torch.eye(antennas, dtype=g.dtype, device=g.device)
    v = (moves.to(torch.float32) * (0.5 / clients)).to(length)
    factor, _ = torch.linalg.cholesky_ex(eye - (unit * v.unsqueeze(-1)).mT @ unit.conj())
    scale = _dual(v / length.square(), problem, moves).value
    sharpness = (clients + antennas) / scale.unsqueeze(-1)
    last = _LAST * sharpness
    safe = torch.where(moves, v, 1.0)
    for _ in range(_STEPS):
        half = torch.linalg.solve_triangular(factor, unit.mT, upper=False)  # L^-1 g_i
        inner = half.mH @ half
        dual = _dual(v / length.square(), problem, moves)
        slope = sharpness * dual.slope / length.square()
        slope = slope - inner.diagonal(dim1=-2, dim2=-1).real + 1 / safe
        slope = torch.where(moves, slope, 0.0)
        curvature = sharpness * dual.diagonal / length.pow(4) + safe.reciprocal().square()
        cross = dual.cross / length.square()
        hessian = inner.abs().square() + torch.diag_embed(curvature)
        hessian = hessian - sharpness.unsqueeze(-1) * cross.unsqueeze(-1) * cross.unsqueeze(-2)
        root, _ = torch.linalg.cholesky_ex(hessian)
        step = torch.cholesky_solve(slope.unsqueeze(-1), root).squeeze(-1)
        decrement = (slope * step).sum(-1, keepdim=True).clamp_min(0).sqrt()
        moved = v + step / torch.where(decrement < 0.25, 1.0, 1 + decrement)
        moved_factor, failed = torch.linalg.cholesky_ex(
            eye - (unit * moved.unsqueeze(-1)).mT @ unit.conj()
        )
        # Equal channels may make the Hessian numerically singular, and a step infeasible.
        inside = (((moved > 0) | ~moves).all(-1) & (failed == 0)).unsqueeze(-1)
        v = torch.where(inside, moved, v)
        safe = torch.where(moves, v, 1.0)
        factor = torch.where(inside.unsqueeze(-1), moved_factor, factor)
        near = decrement < 1
        if (near & (sharpness >= last)).all():
            break
        sharpness = torch.where(near & (sharpness < last), sharpness * _GROWTH, sharpness)
    w = largest_weights(g, v / length.square())
    return Relaxation(weighted_bound(problem, w), w, torch.cholesky_inverse(factor))


def largest_weights(g: Tensor, w: Tensor) -> Tensor:
    """The largest multiples of w [problems, clients] with sum_i w_i g_i g_i^H <= I."""
    covariance = (g * w.unsqueeze(-1)).mT @ g.conj()
    # Margin for the rounding error of eigvalsh, a few units in the last place.
    largest = torch.linalg.eigvalsh(covariance)[..., -1] * (1 + 1e-13)
    return w / torch.where(largest > 0, largest, 1.0).unsqueeze(-1)


def weighted_bound(problem: AlignmentProblems, w: Tensor) -> Tensor:
    """Lower bound [problems] that weights w [problems, clients] with sum w g g^H <= I prove."""
    moves = (problem.g != 0).any(-1)
    multipliers = _dual(w, problem, moves).multipliers
    square = torch.where(w > 0, multipliers.square() / torch.where(w > 0, w, 1.0), 0.0).sum(-1)
    return dual_bound(problem.q, multipliers, square, problem.kappa, problem.present)


class _Dual(NamedTuple):
    """D(w), its gradient, and its Hessian cross cross' - diag(diagonal); all in units of w."""

    value: Tensor
    multipliers: Tensor
    slope: Tensor
    diagonal: Tensor
    cross: Tensor


def _dual(w: Tensor, problem: AlignmentProblems, moves: Tensor) -> _Dual:
    share = torch.where(moves, w / (1 + w), 1.0)  # without a channel the limit is 0
    share = torch.where(problem.present, share, 0.0)
    rest = problem.kappa + torch.where(problem.present, 1 - share, 0.0).sum(-1)
    asked = (share * problem.q).sum(-1)
    theta = (asked / rest).unsqueeze(-1)
    value = (share * problem.q.square()).sum(-1) + asked * theta.squeeze(-1)
    slack = torch.where(moves & problem.present, 1 / (1 + w), 0.0)
    ratio = (problem.q + theta) * slack
    cross = ratio * slack * (2 / rest).sqrt().unsqueeze(-1)
    return _Dual(
        value, share * (problem.q + theta), ratio.square(), 2 * ratio.square() * slack, cross
    )
