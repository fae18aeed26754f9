"""Successive convex approximation with Mirror-Prox subproblems (HIST, Section V-D, (33)).

Around a beamformer b, |a^H h_i|^2 >= 2 Re(b^H h_i h_i^H a) - |h_i^H b|^2. The minimum of these
bounds over the clients is maximised over ||a|| <= 1 as a saddle-point problem with weights on the
simplex. The method takes extragradient steps, Euclidean in a and entropic in the weights: 30
approximations of 20 steps, and each approximation starts from the weights of the previous one.
(Averaged iterates, as in the theory, and new weights each time reached 0.85 of this objective.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from solvers.beamforming.beamformer_backend import FoundBeamformers, FromRandomStarts
from solvers.beamforming.beamforming_problem import BeamformingProblems
from solvers.beamforming.directions import best_of, random_starts, unit_norm, worst

_OUTER, _INNER = 30, 20
_CHUNK = 16  # problems per chunk; a chunk must fit in the cache


@dataclass(frozen=True)
class MirrorProx(FromRandomStarts):
    """The HIST paper's method, for comparison.

    >>> import numpy as np
    >>> import solvers
    >>> h = np.random.default_rng(1).standard_normal((4, 3, 2)).view(complex)[..., 0]
    >>> backend = solvers.beamforming.MirrorProx(starts=2)
    >>> solvers.optimize_beamformer(h, backend=backend).value.shape
    (3,)

    Args:
        starts: number of random starts, the same for every problem; None for 20.
        seed: seed of the starts.
    """

    name = "mirror_prox"

    def solve(self, problem: BeamformingProblems) -> FoundBeamformers:
        """Find the best beamformers over all starts and approximations."""
        starts = 20 if self.starts is None else self.starts
        parts = [_mirror_prox(part, starts, self.seed) for part in torch.split(problem.h, _CHUNK)]
        return FoundBeamformers(torch.cat(parts))


def _mirror_prox(h: torch.Tensor, starts: int, seed: int) -> torch.Tensor:
    clients = h.shape[1]
    a = random_starts(h, starts, seed)
    best, score = a, worst(h, a)
    reach = math.sqrt(0.5 / max(math.log(clients), 0.5))
    p = torch.full_like(a[..., :1].real.expand(-1, -1, clients), 1 / clients)
    for _ in range(_OUTER):
        y = a @ h.mH  # h_i^H b
        offset = y.abs().square()
        slope = 2 * y.unsqueeze(-1) * h.unsqueeze(1)  # Re(slope_i^H a) - offset_i
        largest = torch.linalg.vector_norm(slope, dim=-1).amax(-1, keepdim=True)
        rate_a, rate_p = reach / largest, 1 / (reach * largest)
        for _ in range(_INNER):
            middle_a, middle_p = _extragradient(a, p, a, p, slope, offset, rate_a, rate_p)
            a, p = _extragradient(a, p, middle_a, middle_p, slope, offset, rate_a, rate_p)
        a = unit_norm(a)
        now = worst(h, a)
        best = torch.where((now > score).unsqueeze(-1), a, best)
        score = torch.maximum(now, score)
    return best_of(h, best)


def _extragradient(
    a: torch.Tensor,
    p: torch.Tensor,
    at_a: torch.Tensor,
    at_p: torch.Tensor,
    slope: torch.Tensor,
    offset: torch.Tensor,
    rate_a: torch.Tensor,
    rate_p: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Step from (a, p) with the gradients at (at_a, at_p): ascent in a, descent in p."""
    up = (at_p.unsqueeze(-1) * slope).sum(-2)
    values = (slope.conj() @ at_a.unsqueeze(-1)).squeeze(-1).real - offset
    a = a + rate_a * up
    length: torch.Tensor = torch.linalg.vector_norm(a, dim=-1, keepdim=True)
    inside = a / length.clamp_min(1)
    return inside, torch.softmax(p.clamp_min(1e-300).log() - rate_p * values, -1)
