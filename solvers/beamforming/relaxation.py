"""Upper bounds on max_a min_i |a^H h_i|^2, by Lagrangian duality.

For any p on the simplex, min_i |a^H h_i|^2 <= a^H (sum_i p_i h_i h_i^H) a, which is at most the
largest eigenvalue of that matrix. The best p is the dual solution of the semidefinite relaxation.
With q = p / bound, it maximises sum q subject to sum_i q_i h_i h_i^H <= I, q >= 0. A barrier method
solves this for a whole batch, with one variable per client.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from solvers.beamforming.beamformer_backend import Certificate, FoundBeamformers
from solvers.beamforming.beamforming_problem import BeamformingProblems

_STEPS = 100
_GROWTH = 2.0  # growth factor of the barrier parameter per step
_LAST = 1e9
_CHUNK_NUMBERS = 1 << 20  # elements of the largest array of a chunk


@dataclass(frozen=True)
class RelaxationBound(Certificate):
    """The bound of the semidefinite relaxation, by a barrier method; it has no settings.

    >>> import numpy as np
    >>> import solvers
    >>> h = np.random.default_rng(1).standard_normal((3, 3, 2)).view(complex)[..., 0]
    >>> certificate = solvers.beamforming.RelaxationBound()
    >>> solution = solvers.optimize_beamformer(h, certificate=certificate)
    >>> bool(solution.objective <= solution.bound)
    True
    """

    name = "relaxation_bound"

    def certify(self, problem: BeamformingProblems, start: FoundBeamformers) -> FoundBeamformers:
        """Return the relaxation's bounds with the beamformers of ``start``."""
        return FoundBeamformers(start.value, relaxation_bound(problem.h))


def eigenvalue_bound(h: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """Upper bound [problems] on the objective that the weights p prove.

    Args:
        h: channels [problems, clients, antennas] complex128.
        p: weights [problems, clients] >= 0; they are normalised to sum 1.
    """
    p = p / p.sum(-1, keepdim=True)
    covariance = (h * p.unsqueeze(-1)).mT @ h.conj()
    # Margin for the rounding error of eigvalsh, a few units in the last place.
    largest: torch.Tensor = torch.linalg.eigvalsh(covariance)[..., -1]
    return largest * (1 + 1e-13)


def relaxation_bound(h: torch.Tensor) -> torch.Tensor:
    """The bound [problems] of the semidefinite relaxation, accurate to about 1e-5 from above.

    Args:
        h: channels [problems, clients, antennas] complex128, none of them zero.
    """
    size = max(1, _CHUNK_NUMBERS // h.shape[1] ** 2)
    parts = [eigenvalue_bound(part, relaxation_weights(part)) for part in torch.split(h, size)]
    return torch.cat(parts)


def relaxation_weights(h: torch.Tensor) -> torch.Tensor:
    """Find q [problems, clients] > 0 with sum_i q_i h_i h_i^H < I and nearly the largest sum."""
    clients, antennas = h.shape[-2:]
    length = torch.linalg.vector_norm(h, dim=-1)
    g = h / length.unsqueeze(-1)  # q_i in units of 1 / ||h_i||^2, so that its range is narrow
    gain = length.reciprocal().square()  # maximise gain' q
    gain = gain / gain.amax(-1, keepdim=True)
    q = torch.full_like(gain, 0.5 / clients)
    unit = torch.eye(antennas, dtype=h.dtype, device=h.device)
    sharpness = (clients + antennas) / (gain * q).sum(-1, keepdim=True)
    factor, _ = torch.linalg.cholesky_ex(unit - (g * q.unsqueeze(-1)).mT @ g.conj())
    for _ in range(_STEPS):
        half = torch.linalg.solve_triangular(factor, g.mT, upper=False)  # L^-1 g_i
        inner = half.mH @ half
        slope = sharpness * gain - inner.diagonal(dim1=-2, dim2=-1).real + 1 / q
        hessian = inner.abs().square() + torch.diag_embed(q.reciprocal().square())
        root, _ = torch.linalg.cholesky_ex(hessian)
        step = torch.cholesky_solve(slope.unsqueeze(-1), root).squeeze(-1)
        decrement = (slope * step).sum(-1, keepdim=True).clamp_min(0).sqrt()
        moved = q + step / torch.where(decrement < 0.25, 1.0, 1 + decrement)
        # If channels repeat, the Hessian may be numerically singular and a step infeasible.
        moved_factor, failed = torch.linalg.cholesky_ex(
            unit - (g * moved.unsqueeze(-1)).mT @ g.conj()
        )
        inside = ((moved > 0).all(-1) & (failed == 0)).unsqueeze(-1)
        q = torch.where(inside, moved, q)
        factor = torch.where(inside.unsqueeze(-1), moved_factor, factor)
        near = decrement < 1
        sharpness = torch.where(near & (sharpness < _LAST), sharpness * _GROWTH, sharpness)
    weights: torch.Tensor = q / length.square()
    return weights
