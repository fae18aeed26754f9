"""How a run corrects the rounds of a learning curve: a Gaussian process of log ratios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from channels.arrays import FloatArray, IntArray

Learn = Literal["local", "common", "none"]
LEAST_ERROR = 0.15
"""Least standard deviation of log rounds around the curve: runs with other seeds differ by it."""
EVALUATION = 0.5
"""Standard deviation of log rounds that one evaluation shows."""
PROGRESS = 0.2
"""Standard deviation of log rounds that half of a run shows: later rounds may be slower or faster.
Over stored runs, the first fifth says nothing about all rounds."""
LEAST_SHARE = 1e-3
"""Least share of a run that its parts have."""


@dataclass(frozen=True)
class Factors:
    """Ratios of a run's rounds to those of the curve, at settings H, E, K, m and sigma^2.

    Their logarithm is a Gaussian process, and the parts of a run are noisy observations, see
    ``wirelessfl.ClosedLoop``.

    Args:
        learn: how the run corrects the curve.
        error: standard deviation of log rounds of left-out pilots around the curve.
    """

    learn: Learn
    error: float

    def given(
        self,
        seen: FloatArray,
        ratios: FloatArray,
        evaluations: IntArray,
        shares: FloatArray,
        points: FloatArray,
        now: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """What the parts of a run say.

        Args:
            seen: settings of the parts, [parts, 5].
            ratios: their ratios, [parts]; NaN where unknown.
            evaluations: numbers of their evaluations, [parts].
            shares: their rounds relative to those of the curve from start to target, [parts].
            points: settings, [..., 5].
            now: current settings, [5].

        Returns:
            The expected ratio at the points, [...], and the standard deviation of its logarithm
            minus that at the current settings.
        """
        if self.learn == "none":
            return np.ones(points.shape[:-1]), np.zeros(points.shape[:-1])
        known = np.isfinite(ratios)
        seen, shares = seen[known], np.clip(shares[known], LEAST_SHARE, 1.0)
        noise = EVALUATION**2 / evaluations[known] + PROGRESS**2 * (1 / shares - 1)
        noisy = self._covariance(seen, seen) + np.diag(noise)
        some = self._covariance(points, seen)
        factor = np.exp(some @ np.linalg.solve(noisy, np.log(ratios[known])))
        here = self._covariance(now, now[None])[..., 0]
        apart = 2 * (here - self._covariance(points, now[None])[..., 0])
        moved = some - self._covariance(now, seen)
        told = np.einsum("...i,...i", moved, np.linalg.solve(noisy, moved[..., None])[..., 0])
        return factor, np.sqrt(np.maximum(apart - told, 0.0))

    def _covariance(self, some: FloatArray, others: FloatArray) -> FloatArray:
        """Covariance of log ratios at points [..., 5] and [others, 5], [..., others]."""
        distance = np.log(some[..., None, :2]) - np.log(others[:, :2])
        near = np.exp(-0.5 * (distance**2).sum(-1))
        local = 0.0 if self.learn == "common" else 0.5
        variance = max(self.error, LEAST_ERROR) ** 2
        return np.asarray(variance * (1 - local + local * near))
