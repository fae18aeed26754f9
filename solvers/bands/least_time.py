"""The least time in which clients that share a band can deliver their bits.

With b_i(tau) from ``least_band`` and client i ready at r_i, the bands needed to end at T sum to
F(T) = sum_i b_i(T - r_i), which is decreasing and convex: T* solves F(T*) = B. Tangents of F from
either side end before T*, and the chord between two sides ends after it. So each evaluation of F
narrows a bracket of T* that holds by convexity alone, and the bracket is the certificate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.bands.least_band import LN2, least_band, upload_seconds

_EPS = float(np.finfo(np.float64).eps)
_BLOCK = 1 << 15
"""Clients that are evaluated together, so that temporary arrays stay in the cache."""
_MAX_EVALUATIONS = 100


class BandCells(NamedTuple):
    """Problems with finite answers, one per row.

    Args:
        bits: s [problems, clients], >= 0, and one at least is above 0.
        ready: r [problems, clients] in seconds.
        snr_hz: rho [problems, clients], > 0.
        bandwidth_hz: B [problems].
    """

    bits: FloatArray
    ready: FloatArray
    snr_hz: FloatArray
    bandwidth_hz: FloatArray

    def rows(self, rows: slice | IntArray | BoolArray) -> BandCells:
        """Some of the problems."""
        return BandCells(*(array[rows] for array in self))

    def needed(self, end: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F and its derivative [problems] at the times ``end`` [problems]."""
        total, slope = np.zeros(len(end)), np.zeros(len(end))
        clients = self.bits.shape[1]
        for first in range(0, clients, _BLOCK):
            part = slice(first, first + _BLOCK)
            window = windows(end, self.ready[:, part])
            bands, slopes = least_band(self.bits[:, part], window, self.snr_hz[:, part])
            total += bands.sum(-1)
            slope += slopes.sum(-1)
        return total, slope

    def fit(self, end: FloatArray) -> BoolArray:
        """Whether all clients can end by ``end`` [problems]."""
        window = end[:, None] - self.ready
        with np.errstate(divide="ignore", invalid="ignore"):
            possible = (self.bits == 0) & (window >= 0) | (self.bits * LN2 < window * self.snr_hz)
        rows = np.flatnonzero(possible.all(-1))
        fits = np.zeros(len(end), dtype=bool)
        fits[rows] = self.rows(rows).needed(end[rows])[0] <= self.bandwidth_hz[rows]
        return fits

    def ends(self, bands: FloatArray) -> FloatArray:
        """When the last client has delivered its bits within ``bands``, [problems]."""
        seconds = self.ready + upload_seconds(self.bits, bands, self.snr_hz)
        return np.asarray(seconds.max(-1))


def windows(end: FloatArray, ready: FloatArray) -> FloatArray:
    """Seconds [problems, clients] from ``ready`` to ``end``, at least their rounding errors."""
    return np.maximum(end[:, None] - ready, 4 * _EPS * end[:, None])


def least_time(cells: BandCells) -> tuple[FloatArray, FloatArray]:
    """A bracket of T* per problem, [problems] each: not enough band, and enough band."""
    low, high = np.empty(len(cells.bits)), np.empty(len(cells.bits))
    rows = max(_BLOCK // cells.bits.shape[1], 1)
    for first in range(0, len(low), rows):
        part = slice(first, first + rows)
        low[part], high[part] = _bracket(cells.rows(part))
    return low, high


def _bracket(cells: BandCells) -> tuple[FloatArray, FloatArray]:
    """As ``least_time``, all problems together; those that have converged are left out."""
    sending = np.maximum(np.count_nonzero(cells.bits, axis=-1), 1)
    whole = cells.bandwidth_hz[:, None]
    low = cells.ends(np.broadcast_to(whole, cells.bits.shape))  # each alone, in the whole band
    high = cells.ends(np.broadcast_to(whole / sending[:, None], cells.bits.shape))
    left, right = low.copy(), high.copy()
    at = np.flatnonzero(_apart(low, high))
    if not at.size:
        return left, right
    cells, low, high = cells.rows(at), low[at], high[at]
    needed_low, slope_low = cells.needed(low)
    needed_high, slope_high = cells.needed(high)
    for number in range(_MAX_EVALUATIONS):
        band = cells.bandwidth_hz
        step = (needed_low - band) / -slope_low
        bottom = np.maximum(low + step, high - (needed_high - band) / slope_high)
        share = (needed_low - band) / (needed_low - needed_high)
        top = np.clip(low + share * (high - low), low, high)
        bottom = np.minimum(np.maximum(bottom, low), top)
        left[at], right[at] = bottom, top
        # Newton's method ends where rounding errors of F are larger than what is missing.
        keep = _apart(bottom, top) & (step > 2 * _EPS * low)
        if not keep.all():
            at, cells = at[keep], cells.rows(keep)
            if not at.size:
                break
            parts = (low, needed_low, slope_low, high, needed_high, slope_high, step, bottom, top)
            (low, needed_low, slope_low, high, needed_high, slope_high, step, bottom, top) = (
                part[keep] for part in parts
            )
            band = cells.bandwidth_hz
        # Newton for 1 / F, which is nearly linear: exact if the windows were all of the rate b / T.
        point = bottom if number % 2 else np.clip(low + step * needed_low / band, bottom, top)
        needed, slope = cells.needed(point)
        early = needed >= band
        low, high = np.where(early, point, low), np.where(early, high, point)
        needed_low, slope_low = (
            np.where(early, needed, needed_low),
            np.where(early, slope, slope_low),
        )
        needed_high = np.where(early, needed_high, needed)
        slope_high = np.where(early, slope_high, slope)
    return left, right


def _apart(low: FloatArray, high: FloatArray) -> BoolArray:
    """Whether a bracket is wider than rounding errors."""
    return high - low > 4 * _EPS * high
