"""The default: exact enumeration of small problems in two dimensions, and annealing of others."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from solvers.beamforming.anneal import Anneal
from solvers.beamforming.beamformer_backend import FoundBeamformers
from solvers.beamforming.beamforming_problem import BeamformingProblems
from solvers.beamforming.directions import worst
from solvers.beamforming.two_dimensions import exact_points, solvable


@dataclass(frozen=True)
class Default(Anneal):
    """Enumeration where it is exact and fast, and annealing elsewhere.

    With two antennas, or two clients, problems of up to 32 clients whose ||h_i||^2 / s_i^2 are
    within a factor of 1e8 are solved exactly, without starts; the bound is then the objective.

    >>> import numpy as np
    >>> import solvers
    >>> h = np.array([[1.0, 0.0], [0.0, 1.0]]) + 0j
    >>> solution = solvers.optimize_beamformer(h, backend=solvers.beamforming.Default())
    >>> round(float(solution.objective), 6), solution.status.name
    (0.5, 'OPTIMAL')
    """

    name = "default"

    def solve(self, problem: BeamformingProblems) -> FoundBeamformers:
        """Find beamformers by enumeration, or by annealing and polishing."""
        h = problem.h
        exact = solvable(h)
        if not exact.any():
            return super().solve(problem)
        value = torch.empty_like(h[:, 0])
        value[exact] = exact_points(h[exact])
        if not exact.all():
            value[~exact] = self.anneal(h[~exact])
        return FoundBeamformers(
            value, torch.where(exact, worst(h, value.unsqueeze(1)).squeeze(1), torch.inf)
        )
