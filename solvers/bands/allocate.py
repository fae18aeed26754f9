"""Bands for the uploads of a cell, chosen to end the round as soon as possible."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray
from channels.loads import Load
from channels.network import ChannelDraw
from channels.plausible import noted
from solvers.bands.band_problem import read_problem
from solvers.bands.least_band import least_band
from solvers.bands.least_time import BandCells, least_time, windows
from solvers.load_rows import takes_load
from solvers.outcome import Outcome
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor

_SUM_ERROR = 1e-12  # of B: larger ones are corrected


@overload
def allocate_bandwidth(
    bits: Tensor,
    compute_seconds: ArrayLike | Tensor,
    snr_hz: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
) -> Solution[Tensor]: ...
@overload
def allocate_bandwidth(
    bits: ArrayLike,
    compute_seconds: ArrayLike | Tensor,
    snr_hz: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
) -> Solution[FloatArray]: ...
@overload
def allocate_bandwidth(bits: Load, compute_seconds: ChannelDraw, /) -> Solution[FloatArray]: ...
@noted
@takes_load
def allocate_bandwidth(
    bits: ArrayLike | Tensor,
    compute_seconds: ArrayLike | Tensor,
    snr_hz: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
) -> Solution[Any]:
    """Find the bands with which the last client of a cell ends its upload as soon as possible.

    Solves  min T  over bands b_i >= 0 with  sum_i b_i <= B  and

        compute_seconds_i + bits_i / (b_i log2(1 + snr_hz_i / b_i)) <= T

    for every client i: each computes first and then sends at full power. The problem is convex, and
    T* is the root of a decreasing convex function of one variable (see ``bands.least_time``).

    >>> import solvers
    >>> bands = solvers.allocate_bandwidth([1e6, 1e6], [0.1, 0.2], [1e7, 1e6], 1e6)
    >>> round(float(bands.value.sum()))
    1000000

    A :class:`channels.Load` and the :class:`channels.ChannelDraw` of its clients can replace the
    arrays of clients and bands. Every cell is then a problem, with a place for each client of the
    largest cell, in the order of ``Network.by_cell``.

    Args:
        bits: size of each upload, >= 0; a client without bits needs no band.
        compute_seconds: when each client is ready to send, in seconds, >= 0.
        snr_hz: P g / N0 of each client in Hz: transmit power in watts x power gain / noise density
            in W/Hz. The SNR within a band b is snr_hz / b.
        bandwidth_hz: B > 0, the band of the cell in Hz.

    Arrays [..., clients], and [...] for ``bandwidth_hz``, are broadcast; leading axes are a batch.
    Array-like, or torch tensors on any device.

    Returns:
        Bands [..., clients] in Hz, which sum to B if there is anything to send, with the array type
        and device of ``bits``. The objective is T in seconds, when the last client ends with these
        bands; the bound is a time until which no bands are enough. With the gap they are [...]
        float64, or floats for a single problem; they agree to rounding errors. A problem with a
        client that has bits and ``snr_hz`` 0 is infeasible: the value is None (-1 in a batch), the
        objective infinite, and the message names the client.
    """
    start = time.perf_counter()
    problem = read_problem(bits, compute_seconds, snr_hz, bandwidth_hz)
    feasible: BoolArray = np.asarray(~problem.stuck.any(-1))
    cells = problem.cells if feasible.all() else problem.cells.rows(feasible)
    bands, objective, bound = soonest(cells)
    message = "" if feasible.all() else problem.explain(~feasible)
    outcome = Outcome(bands, objective, bound)
    return outcome.solution(
        feasible, problem.shape, bits, backend="newton", start=start, message=message
    )


def soonest(cells: BandCells) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bands [problems, clients] that end soonest, when they end, and a lower bound [problems]."""
    bound, end = least_time(cells)
    bands, slopes = least_band(cells.bits, windows(end, cells.ready), cells.snr_hz)
    # Rounding errors leave some of the band, or lack some: all clients end at another common time.
    loose = bands > cells.bandwidth_hz[:, None]
    left = np.where(cells.bits.any(-1), cells.bandwidth_hz - bands.sum(-1), 0.0)
    bands += slopes * (left / np.minimum(slopes.sum(-1), -1e-300))[:, None]
    _fill(bands, loose, cells.bandwidth_hz)
    reached = cells.ends(bands)
    return bands, reached, np.minimum(bound, reached)


def _fill(bands: FloatArray, loose: BoolArray, bandwidth_hz: FloatArray) -> None:
    """Scale the bands of ``loose`` clients in place where the sum is not B.

    Their windows are rounding errors of T, which leave bands far above B, and few digits of B.
    """
    off = np.abs(bands.sum(-1) - bandwidth_hz) > _SUM_ERROR * bandwidth_hz
    for row in np.flatnonzero(off & loose.any(-1)):
        some, rest = loose[row], bands[row, ~loose[row]].sum()
        part = np.maximum(bands[row, some], 0.0)
        if part.any() and rest < bandwidth_hz[row]:
            bands[row, some] = part * ((bandwidth_hz[row] - rest) / part.sum())
    over = np.maximum(bands.sum(-1) / bandwidth_hz, 1.0)
    over[~(over > 1 + _SUM_ERROR)] = 1.0
    bands /= over[:, None]
