"""The least band that delivers bits within a window, and its derivative.

At full power a client with SNR x band rho = P g / N0 (Hz) and band b sends b log2(1 + rho / b)
bits/s. It delivers s bits in tau seconds if b is at least b(tau) = rho / y, where y > 0 solves

    a y = ln(1 + y),    a = s ln 2 / (tau rho) < 1,

y = -W_{-1}(-a exp(-a)) / a - 1. The function b is decreasing and convex. In v = a (1 + y) the
equation is v - ln v = 1 + u with u = a - 1 - ln a: one function of one variable.
"""

from __future__ import annotations

import numpy as np

from channels.arrays import FloatArray

LN2 = float(np.log(2))
_EPS = float(np.finfo(np.float64).eps)
_SMALL = 1e-4
_LOW = 0.75
"""From this a on (SNRs below about -2 dB), the equation is solved in y: v loses digits near 1."""


def least_band(
    bits: FloatArray, window: FloatArray, snr_hz: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Least band and its derivative with respect to the window, both in Hz and Hz/s.

    Args:
        bits: s >= 0.
        window: tau in seconds.
        snr_hz: rho > 0.

    The arguments have one shape, which the results share. For tau rho > s ln 2, without which no
    band is enough; without bits both are 0.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = bits * LN2 / (window * snr_hz)
        y = spectral_ratio(a)
        band = snr_hz / y
        rate = a * y  # ln(1 + y)
        drop = rate - y / (1 + y)
        small = np.flatnonzero(y < _SMALL)
        if small.size:
            drop.flat[small] = excess(y.flat[small])
        slope = -band * rate / (window * drop)
    none = bits == 0
    if none.any():
        band[none] = slope[none] = 0
    return band, slope


def spectral_ratio(a: FloatArray) -> FloatArray:
    """The root y > 0 of a y = ln(1 + y) for 0 < a < 1: SNR within the band.

    Error: about one unit in the last place for a < 0.75; for larger a that times 1 / (1 - a), the
    condition number of the root.
    """
    u = a - 1 - np.log(a)
    root = np.sqrt(u)
    # Barry et al., Math. Comput. Simul. 53 (2000), (17), with 1 / (1 + x + x^2 / 2) for exp(-x):
    # relative error below 3e-4.
    x = 0.0201 * root
    v = 0.3361 * np.sqrt(0.5) * root / (1 - 0.0042 * u / (1 + x * (1 + 0.5 * x)))
    u += 1
    v = (2 / 0.3361) * (v / (1 + v)) + u
    f = v - np.log(v) - u
    x = v - 1
    v -= f * v * x / (x * x - 0.5 * f)  # Halley: cubic
    v -= (v - np.log(v) - u) * v / (v - 1)  # Newton
    y: FloatArray = v / a - 1
    low = np.flatnonzero(a >= _LOW)
    if low.size:
        y.flat[low] = _low(a.flat[low])
    return y


def excess(y: FloatArray) -> FloatArray:
    """ln(1 + y) - y / (1 + y) for y > 0, without cancellation."""
    small = np.minimum(y, _SMALL)
    series = small**2 * (0.5 - small * (2 / 3 - small * (0.75 - 0.8 * small)))
    return np.where(y < _SMALL, series, np.log1p(y) - y / (1 + y))


def _low(a: FloatArray) -> FloatArray:
    """As ``spectral_ratio`` for a near 1: Newton in y falls monotonically from an upper bound."""
    # Below SNRs of 1e-16 in the band, rounding leaves nothing of 1 - a: more band changes no rate.
    a = np.minimum(a, 1 - _EPS)
    rest = 1 - a
    u = np.maximum(-rest - np.log1p(-rest), 0.5 * rest**2)
    y: FloatArray = (rest + np.sqrt(2 * u) + u) / a
    for _ in range(4):
        series = y * (0.5 - y * (1 / 3 - y * (0.25 - 0.2 * y)))
        less = np.where(y < _SMALL, series, 1 - np.log1p(y) / y)  # 1 - ln(1 + y) / y
        y -= y * (less - rest) * (1 + y) / (a * y - rest)
    return y


def upload_seconds(bits: FloatArray, band: FloatArray, snr_hz: FloatArray) -> FloatArray:
    """Seconds that the bits take within the bands, at full power; 0 without bits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = bits * LN2 / (band * np.log1p(snr_hz / band))
    return np.where(bits > 0, seconds, 0.0)
