"""Successive convex approximation as in ``mirror_prox``, with subproblems solved by cvxpy."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from solvers.beamforming.beamformer_backend import FoundBeamformers, FromRandomStarts
from solvers.beamforming.beamforming_problem import BeamformingProblems
from solvers.beamforming.directions import best_of, random_starts, unit_norm, worst
from solvers.packages import import_solver, quiet_cvxpy

_MAX_APPROXIMATIONS, _MIN_GAIN = 30, 1e-4


@dataclass(frozen=True)
class Sca(FromRandomStarts):
    """Successive convex approximation by cvxpy, for comparison.

    >>> import numpy as np
    >>> import solvers
    >>> h = np.random.default_rng(1).standard_normal((3, 3, 2)).view(complex)[..., 0]
    >>> solvers.optimize_beamformer(h, backend=solvers.beamforming.Sca(starts=1)).value.shape
    (3,)

    Args:
        starts: number of random starts, the same for every problem; None for 3.
        seed: seed of the starts.
    """

    name = "sca"

    def solve(self, problem: BeamformingProblems) -> FoundBeamformers:
        """Find the best beamformers over all starts."""
        cp = import_solver("cvxpy", "anneal")
        h = problem.h
        first = random_starts(h, 3 if self.starts is None else self.starts, self.seed)
        clients, antennas = h.shape[-2:]
        variable, min_gain = cp.Variable(2 * antennas), cp.Variable()
        slope, offset = cp.Parameter((clients, 2 * antennas)), cp.Parameter(clients)
        program = cp.Problem(
            cp.Maximize(min_gain), [slope @ variable - offset >= min_gain, cp.norm(variable) <= 1]
        )
        points = first.cpu().clone()
        for number, channels in enumerate(h.cpu()):
            for index, start in enumerate(first[number].cpu()):
                a, score = start, 0.0
                for _ in range(_MAX_APPROXIMATIONS):
                    y = channels.conj() @ a
                    tangent = 2 * y[:, None] * channels
                    slope.value = torch.cat([tangent.real, tangent.imag], -1).numpy()
                    offset.value = y.abs().square().numpy()
                    try:
                        with quiet_cvxpy():
                            program.solve(solver=cp.CLARABEL)
                    except cp.SolverError:
                        break  # keep this start's last beamformer
                    if variable.value is None:
                        break
                    a = unit_norm(torch.complex(*torch.from_numpy(variable.value).tensor_split(2)))
                    now = float(worst(channels[None], a[None, None])[0, 0])
                    if now <= score * (1 + _MIN_GAIN):
                        break
                    score = now
                points[number, index] = a
        return FoundBeamformers(best_of(h, points.to(h.device)))
