"""Bands of many cells that end soonest, by Newton's method on ends and bands together.

With the notation of ``bands.least_time``, T and all bands solve

    b_i ln(1 + rho_i / b_i) = s_i ln 2 / (T - r_i)  for every client i,    sum_i b_i = B.

A step corrects every band for the T at hand by Halley's method, and T by Newton's method for the
sum of the bands; it takes one logarithm per client. The first T and bands are those of clients that
take alpha + beta / b seconds in a band b, as in an infinite band and in equal bands. There is no
bracket: cells whose last step was not small are reported as not solved.
"""

from __future__ import annotations

import numpy as np

from channels.arrays import BoolArray, FloatArray
from solvers.bands.least_band import LN2
from solvers.bands.least_time import BandCells

_BLOCK = 1 << 13
"""Clients that are solved together, so that temporary arrays stay in the cache."""
_FIRST, _SOONEST, _STEPS = 3, 2, 7
"""Steps for the start; first step after which all problems may be solved; most steps."""
_SMALL = 1e-7
"""Relative step after which its square, the error that is left, is a rounding error."""
_LEAST_SNR = 0.01
"""SNR within the band below which rounding errors of the bands exceed some 1e-14."""
_NOTHING = 1e-150
"""Size of an absent client relative to the first one of its cell."""


def newton_bands(cells: BandCells) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Bands [problems, clients], when all clients end, and which problems are solved, [problems].

    Args:
        cells: problems as for ``least_time``; those without bits of the first client are not
            solved.
    """
    bands, end = np.zeros(cells.bits.shape), np.zeros(len(cells.bits))
    solved = np.zeros(len(end), dtype=np.bool_)
    able = cells.bits[:, 0] > 0
    if not able.all():
        bands[able], end[able], solved[able] = newton_bands(cells.rows(able))
        return bands, end, solved
    rows = max(_BLOCK // cells.bits.shape[1], 1)
    with np.errstate(all="ignore"):  # of cells that are not solved
        for first in range(0, len(end), rows):
            part = slice(first, first + rows)
            bands[part], end[part], solved[part] = _solved(cells.rows(part))
    return bands, end, solved


def _solved(cells: BandCells) -> tuple[FloatArray, FloatArray, BoolArray]:
    """As ``newton_bands``, all problems together, in arrays [clients, problems]."""
    absent = cells.bits.T == 0
    size, ready, rho = (np.array(values.T, order="C") for values in cells[:3])  # copies
    size *= LN2
    some = bool(absent.any())
    if some:  # a copy of the first client with next to no bits, which needs no exception
        for values, scale in ((size, _NOTHING), (ready, 1.0), (rho, _NOTHING)):
            np.copyto(values, values[:1] * scale, where=absent)
    whole = cells.bandwidth_hz
    end, bands = _start(size, ready, rho, whole, absent if some else None)
    rate, needed, ratio, log, full, change = np.empty((6, *size.shape))
    small = np.full(len(end), np.inf)
    for number in range(_STEPS):
        np.subtract(end, ready, out=rate)
        np.divide(1.0, rate, out=rate)
        np.multiply(size, rate, out=needed)
        np.divide(rho, bands, out=ratio)
        np.log1p(ratio, out=log)
        np.add(ratio, 1.0, out=full)
        np.divide(ratio, full, out=full)
        np.multiply(bands, log, out=change)
        lack = np.subtract(needed, change, out=change)
        slope = np.subtract(log, full, out=log)
        full *= full
        full /= bands  # less than 0: the second derivative
        full *= lack
        lack *= slope
        lack *= 2
        drop = np.multiply(needed, rate, out=needed)
        drop /= slope  # -db/dT
        slope *= slope
        slope *= 2
        slope -= full
        change /= slope  # Halley: 2 f f' / (2 f'^2 - f f'')
        bands += change
        total = bands.sum(0)
        step = (total - whole) / drop.sum(0) * (total / whole)
        end = end + step
        drop *= step
        drop /= bands
        drop += 1
        bands /= drop  # bands are nearly reciprocals of times
        if number < _SOONEST:
            continue
        change /= bands
        rate *= step
        np.abs(change, out=change)
        np.abs(rate, out=rate)
        small = np.maximum(change.max(0), rate.max(0))
        if (small <= _SMALL).all():
            break
    solved = (small <= _SMALL) & (ratio.min(0) >= _LEAST_SNR) & (bands.min(0) > 0)
    bands[absent] = 0.0
    return bands.T, end, solved


def _start(
    size: FloatArray,
    ready: FloatArray,
    rho: FloatArray,
    whole: FloatArray,
    absent: BoolArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Ends and bands of a simpler problem, whose clients take least + cost / b seconds.

    The first part is what they need in an infinite band, and both are those of equal bands.
    """
    senders = len(size) if absent is None else len(size) - absent.sum(0)
    equal = whole / senders
    rate, bands, cost = np.empty((3, *size.shape))
    np.log1p(np.divide(rho, equal, out=rate), out=rate)
    np.divide(size, rate, out=cost)  # band x seconds
    least = size / rho
    cost -= np.multiply(least, equal, out=bands)
    least += ready
    if absent is not None:
        np.copyto(cost, cost[:1] * _NOTHING, where=absent)
    alone = np.add(np.divide(cost, whole, out=bands), least, out=bands).max(0)
    end = np.add(np.divide(cost, equal, out=bands), least, out=bands).max(0)
    for _ in range(_FIRST):
        np.divide(1.0, np.subtract(end, least, out=rate), out=rate)
        np.multiply(cost, rate, out=bands)
        total = bands.sum(0)
        rate *= bands
        end = np.maximum(end + (total - whole) / rate.sum(0) * (total / whole), alone)
    return end, np.divide(cost, np.subtract(end, least, out=rate), out=bands)
