"""A small Gaussian process: Matern 5/2, length and noise by likelihood on a grid."""

from __future__ import annotations

import math

import numpy as np

from channels.arrays import FloatArray

# Of standardised features, in units of sqrt(features); and variance of the noise in that of the
# values. A grid of 12 has no local optima and nothing that may fail to converge.
_LENGTHS = (0.5, 1.0, 2.0, 5.0)
_NOISES = (0.01, 0.1, 0.5)


def posterior(
    seen: FloatArray, values: FloatArray, asked: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What a Gaussian process expects, after ``values`` at ``seen``, of the value without noise.

    Features are standardised, values have a constant prior mean and the variance of the sample.

    Args:
        seen: [points, features], at least one point.
        values: [points].
        asked: [queries, features].

    Returns:
        Mean and standard deviation, [queries] each.
    """
    # Most runs need no scipy, whose import takes a quarter of a second.
    from scipy.linalg import cho_solve

    centre, spread = seen.mean(0), seen.std(0)
    spread = np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)
    x, z = (seen - centre) / spread, (asked - centre) / spread
    level, scale = values.mean(), values.std() or 1.0
    y = (values - level) / scale
    near, far = _distances(x, x), _distances(x, z)
    fits = []
    for length in _LENGTHS:
        unit = length * math.sqrt(x.shape[1])
        for noise in _NOISES:
            kernel = (1 - noise) * matern(near / unit) + noise * np.eye(len(x))
            root = np.linalg.cholesky(kernel)
            # Twice the negative logarithm of the likelihood, less a constant.
            score = float(y @ cho_solve((root, True), y) + 2 * np.log(np.diag(root)).sum())
            fits.append((score, unit, 1 - noise, root))
    _, unit, signal, root = min(fits, key=lambda fit: fit[0])
    cross = signal * matern(far / unit)
    weights = cho_solve((root, True), cross)
    variance = np.maximum(signal - (cross * weights).sum(0), 0.0)
    return level + scale * (weights.T @ y), scale * np.sqrt(variance)


def matern(distance: FloatArray) -> FloatArray:
    """Matern's covariance of smoothness 5/2 and unit length."""
    r = math.sqrt(5) * distance
    return np.asarray((1 + r + r**2 / 3) * np.exp(-r))


def expected_improvement(mean: FloatArray, deviation: FloatArray, best: float) -> FloatArray:
    """E max(best - X, 0) of normal X with ``mean`` and ``deviation`` >= 0, [queries]."""
    from scipy.special import ndtr

    gap = best - mean
    z = gap / np.maximum(deviation, 1e-300)
    density = np.exp(-0.5 * np.minimum(np.abs(z), 1e100) ** 2) / math.sqrt(2 * math.pi)
    known = np.maximum(gap, 0.0)
    return np.where(deviation > 0, gap * ndtr(z) + deviation * density, known)


def _distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Euclidean, [len(a), len(b)]."""
    return np.asarray(np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1)))
