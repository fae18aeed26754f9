"""Bayesian optimisation with scikit-learn's Gaussian process, fitted on a grid."""

from __future__ import annotations

import math

import numpy as np

from channels.arrays import FloatArray

# Length scales for standardised features, in units of sqrt(features), and noise variances relative
# to the variance of the values. A grid of 12 has no local optima and cannot fail to converge.
_LENGTHS = (0.5, 1.0, 2.0, 5.0)
_NOISES = (0.01, 0.1, 0.5)


def posterior(
    seen: FloatArray, values: FloatArray, asked: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Posterior of the noise-free value at ``asked``, given ``values`` at ``seen``.

    The covariance is Matern 5/2; its length scale and noise variance maximise the likelihood over a
    grid. Features are standardised. The prior has the mean and variance of the sample.

    Args:
        seen: [points, features], at least one point.
        values: [points].
        asked: [queries, features].

    Returns:
        Posterior mean and standard deviation, [queries] each.
    """
    # Every command imports this module; importing scikit-learn takes a second.
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    centre, spread = seen.mean(0), seen.std(0)
    spread = np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)
    x, z = (seen - centre) / spread, (asked - centre) / spread
    level, scale = values.mean(), values.std() or 1.0
    y = (values - level) / scale
    fits = [
        GaussianProcessRegressor(
            (1 - noise) * Matern(length * math.sqrt(x.shape[1]), nu=2.5),
            alpha=noise,
            optimizer=None,
        ).fit(x, y)
        for length in _LENGTHS
        for noise in _NOISES
    ]
    likeliest = max(fits, key=lambda fit: fit.log_marginal_likelihood_value_)
    mean, deviation = likeliest.predict(z, return_std=True)
    return level + scale * mean, scale * deviation


def expected_improvement(mean: FloatArray, deviation: FloatArray, best: float) -> FloatArray:
    """E max(best - X, 0) [queries] for normal X with ``mean`` and ``deviation`` >= 0."""
    from scipy.special import ndtr  # SciPy loads slowly

    gap = best - mean
    z = gap / np.maximum(deviation, 1e-300)
    density = np.exp(-0.5 * np.minimum(np.abs(z), 1e100) ** 2) / math.sqrt(2 * math.pi)
    known = np.maximum(gap, 0.0)
    return np.where(deviation > 0, gap * ndtr(z) + deviation * density, known)
