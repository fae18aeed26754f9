"""Probability that an upload is lost: packet errors, and rates above an unknown channel's capacity.

Both are probabilities of one transmission, given what is known when it is sent. Whoever draws from
them decides whether the transmissions of a client fail independently.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import FloatArray
from channels.decibels import LARGEST_DB
from channels.loads import amounts
from channels.validation import common_shape, whole_number

_NODES = 16
"""Number of nodes with which ``_by_mean`` is exact to rounding errors."""
_FAR = 1000.0
"""Noncentrality above which ``_by_mean`` replaces SciPy's series: the cost of the series grows with
the square root, and from about 1e12 on it gives NaN."""
_LARGEST = 1e300
"""Noncentrality above which the probability is 0, or without a margin 1/2, to rounding errors."""


@checked()
def packet_error_probability(snr: ArrayLike, waterfall_db: ArrayLike) -> FloatArray:
    """Probability that a packet is lost, q = 1 - exp(-m / SNR) (Chen et al., arXiv:1909.07972).

    The packet of an update is received either completely or not at all. The paper takes the mean of
    this probability over the fading; ``snr`` may be that of one channel, or a mean SNR.

    >>> import channels
    >>> channels.packet_error_probability([1.0, 100.0], waterfall_db=0.0).round(3).tolist()
    [0.632, 0.01]

    Args:
        snr: signal over noise and interference as a ratio, in the band in which the client sends;
            any shape, finite and >= 0. At 0 every packet is lost.
        waterfall_db: m, the waterfall threshold in dB; from -300 to 300. At an SNR equal to m,
            63 % of the packets are lost, and far above it the fraction m / SNR.

    Returns:
        q from 0 to 1; the arguments are broadcast.
    """
    ratio, threshold = amounts("snr", snr), _decibels("waterfall_db", waterfall_db, -LARGEST_DB)
    _check_shapes(snr=ratio, waterfall_db=threshold)
    with np.errstate(divide="ignore", over="ignore"):  # m / 0: exp(-inf) is 0
        return np.asarray(-np.expm1(-(10 ** (threshold / 10)) / ratio))


@checked()
def outage_probability(
    gain: ArrayLike,
    margin_db: ArrayLike,
    csi_error_variance: ArrayLike,
    antennas: int,
) -> FloatArray:
    """Probability that a client sends faster than its channel allows, given the server's estimate.

    The server knows h' with ||h'||^2 = ``gain``; the channel is h = h' + e, e ~ CN(0, v I), with e
    independent of h'. The client sends at the rate of the known SNR lowered by a margin, so its
    upload fails if ||h||^2 < ||h'||^2 / margin. With M antennas, 2 ||h||^2 / v has a noncentral
    chi-square distribution with 2 M degrees of freedom and noncentrality 2 ||h'||^2 / v. (The
    receiver combines the antennas with the true channel, e.g. from pilots within the upload.)

    As the variance rises from 0, the probability first rises and then falls: errors much stronger
    than the estimate add power to the channel.

    >>> import channels
    >>> margin_db = [0.0, 1.0, 3.0]
    >>> outage = channels.outage_probability(1.0, margin_db, csi_error_variance=0.02, antennas=4)
    >>> outage.round(3).tolist()
    [0.363, 0.072, 0.0]

    Args:
        gain: ||h'||^2 over the antennas, any shape, finite and >= 0, in the unit of the variance.
            At 0 the rate is 0, which every channel allows: the upload never ends, and the
            probability is 0.
        margin_db: by how much the rate's SNR is lowered, in dB; from 0 to 300.
        csi_error_variance: v per antenna, finite and >= 0. At 0 no upload fails; without a margin
            this is a jump, since every second one fails at a very small variance.
        antennas: M >= 1, at most 1,000,000.

    Returns:
        Probabilities, at most 1/2, exact to about 1e-13; all arguments but ``antennas`` are
        broadcast.
    """
    power, margin = amounts("gain", gain), _decibels("margin_db", margin_db, 0.0)
    variance = amounts("csi_error_variance", csi_error_variance)
    number = whole_number("antennas", antennas)
    if not 1 <= number <= 1_000_000:
        raise ValueError(f"antennas is {number}: give an integer from 1 to 1,000,000.")
    _check_shapes(gain=power, margin_db=margin, csi_error_variance=variance)
    power, margin, variance = np.broadcast_arrays(power, margin, variance)
    uncertain = (variance > 0) & (power > 0)
    with np.errstate(over="ignore"):
        noncentrality = np.minimum(2 * (power[uncertain] / variance[uncertain]), _LARGEST)
    nepers = margin[uncertain] * (math.log(10) / 10)
    probability = np.zeros(power.shape)
    probability[uncertain] = _below(noncentrality, nepers, number)
    return probability


def _below(noncentrality: FloatArray, nepers: FloatArray, antennas: int) -> FloatArray:
    """P(X < l exp(-nepers)) for noncentral chi-square X with 2 M degrees and noncentrality l."""
    from scipy.special import chndtr  # SciPy loads slowly

    far = noncentrality > max(_FAR, 100 * antennas)
    result = np.empty(noncentrality.shape)
    near = noncentrality[~far]
    result[~far] = chndtr(near * np.exp(-nepers[~far]), 2 * antennas, near)
    result[far] = _by_mean(noncentrality[far], nepers[far], antennas)
    return np.clip(result, 0.0, 0.5)  # only errors towards -h' lower the power: half of all


def _by_mean(noncentrality: FloatArray, nepers: FloatArray, antennas: int) -> FloatArray:
    """As ``_below``, for noncentralities far above the degrees of freedom.

    X = (a + Z)^2 + G, with a^2 = l, Z normal, and G chi-square with 2 M - 1 degrees of freedom. So
    the probability is the mean over G of P(a + Z < r), r^2 = l exp(-nepers) - G. As a function of
    G / a it is so smooth that Gauss quadrature with few nodes is exact to rounding errors.
    """
    from scipy.special import ndtr  # SciPy loads slowly

    a = np.sqrt(noncentrality)
    excess = noncentrality * np.expm1(-nepers)  # threshold - l, without cancellation
    total = np.zeros(noncentrality.shape)
    for node, weight in zip(*_gauss_laguerre(antennas - 1.5), strict=True):
        square = noncentrality + excess - 2 * node
        r = np.sqrt(np.maximum(square, 0))
        inside = ndtr((excess - 2 * node) / (r + a))  # P(Z < r - a); that of -r - a is negligible
        total += weight * np.where(square > 0, inside, 0.0)
    return total


def _gauss_laguerre(alpha: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss quadrature for the gamma density of shape ``alpha`` + 1.

    From the eigenvalues of the Jacobi matrix (Golub & Welsch 1969), whose weights sum to 1: the
    usual ones contain Gamma(alpha + 1), which overflows for large ``alpha``.
    """
    k = np.arange(1, _NODES)
    beside = np.sqrt(k * (k + alpha))
    jacobi = np.diag(2 * np.arange(_NODES) + alpha + 1) + np.diag(beside, 1) + np.diag(beside, -1)
    nodes, vectors = np.linalg.eigh(jacobi)
    return nodes, vectors[0] ** 2


def _decibels(name: str, values: ArrayLike, least: float) -> FloatArray:
    """``values`` as float64, from ``least`` to 300."""
    decibels = np.asarray(values, dtype=np.float64)
    bad = ~((decibels >= least) & (decibels <= LARGEST_DB))
    if bad.any():
        raise ValueError(
            f"{name} contains {decibels[bad].flat[0]}: give dB from {least:g} to {LARGEST_DB:g}."
        )
    return decibels


def _check_shapes(**arrays: FloatArray) -> None:
    """Raise unless the arrays broadcast."""
    shapes = {name: array.shape for name, array in arrays.items()}
    common_shape(shapes, shapes.values(), "shapes that broadcast")
