"""Semidefinite relaxation by cvxpy with Gaussian sampling (Sidiropoulos 2006)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from solvers.beamforming.beamformer_backend import BeamformerBackend, FoundBeamformers
from solvers.beamforming.beamforming_problem import BeamformingProblems
from solvers.beamforming.relaxation import eigenvalue_bound
from solvers.packages import import_solver, quiet_cvxpy
from solvers.settings import check_seed, check_starts
from solvers.solution import SolverUnavailableError


@dataclass(frozen=True)
class Sdr(BeamformerBackend):
    """Semidefinite relaxation and sampling, for comparison; cvxpy's multipliers prove its bounds.

    >>> import numpy as np
    >>> import solvers
    >>> h = np.random.default_rng(1).standard_normal((3, 3, 2)).view(complex)[..., 0]
    >>> solution = solvers.optimize_beamformer(h, backend=solvers.beamforming.Sdr(samples=100))
    >>> bool(solution.objective <= solution.bound)
    True

    Args:
        samples: number of Gaussian samples, of which the best is returned; None for 1000.
        seed: seed of the samples.
    """

    name = "sdr"

    samples: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_starts("samples", self.samples)
        check_seed(self.seed)

    def solve(self, problem: BeamformingProblems) -> FoundBeamformers:
        """Find the best samples and the bounds of the relaxation."""
        cp = import_solver("cvxpy", "anneal")
        h = problem.h
        antennas = h.shape[-1]
        samples = 1000 if self.samples is None else self.samples
        noise = (
            np.random.default_rng(self.seed)
            .standard_normal((samples, antennas, 2))
            .view(complex)[..., 0]
        )
        values: list[np.ndarray] = []
        weights: list[np.ndarray] = []
        for channels in h.cpu().numpy():
            covariance, min_gain = cp.Variable((antennas, antennas), hermitian=True), cp.Variable()
            gains = [cp.real(cp.trace(np.outer(g, g.conj()) @ covariance)) for g in channels]
            served = cp.hstack(gains) >= min_gain
            limits = [covariance >> 0, cp.real(cp.trace(covariance)) <= 1]
            try:
                with quiet_cvxpy():
                    cp.Problem(cp.Maximize(min_gain), [served, *limits]).solve(solver=cp.CLARABEL)
            except cp.SolverError as error:
                raise SolverUnavailableError(
                    f"cvxpy cannot solve problem {len(values)} ({error}): use backend 'anneal'"
                ) from error
            power, axes = np.linalg.eigh(covariance.value)
            drawn = noise * np.sqrt(power.clip(0)) @ axes.T
            drawn /= np.linalg.norm(drawn, axis=-1, keepdims=True)
            score = np.abs(drawn.conj() @ channels.T).min(-1)
            values.append(drawn[score.argmax()])
            weights.append(np.maximum(served.dual_value, 1e-12))
        value, p = (torch.from_numpy(np.stack(x)).to(h.device) for x in (values, weights))
        return FoundBeamformers(value, eigenvalue_bound(h, p))
