"""Bands that change when further clients become ready: a bound on schemes with fixed shares."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray
from channels.plausible import noted
from solvers.bands.band_problem import read_problem
from solvers.bands.interval_prices import Block, shortest
from solvers.bands.least_time import BandCells
from solvers.load_rows import takes_load
from solvers.outcome import Outcome
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor


class BandsInTime(NamedTuple):
    """Bands that are constant in intervals, of which one begins whenever a client becomes ready.

    >>> import solvers
    >>> plan = solvers.allocate_bands_in_time([1e6, 1e6], [0.1, 0.2], [1e7, 1e6], 1e6).value
    >>> plan.start_seconds.tolist(), plan.bandwidth_hz.shape
    ([0.1, 0.2], (2, 2))

    Args:
        start_seconds: [..., intervals], when each interval begins: the clients' seconds of
            computing in increasing order. It lasts to the beginning of the next, the last one to
            the objective.
        bandwidth_hz: [..., clients, intervals] in Hz.
    """

    start_seconds: Any
    bandwidth_hz: Any


@noted
@takes_load
def allocate_bands_in_time(
    bits: ArrayLike | Tensor,
    compute_seconds: ArrayLike | Tensor,
    snr_hz: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
) -> Solution[BandsInTime]:
    """Find bands that vary in time with which the last upload of a cell ends as soon as possible.

    Solves  min T  over bands b_i(t) >= 0, 0 from t = 0 to compute_seconds_i, with

        sum_i b_i(t) <= B,    integral_0^T b_i(t) log2(1 + snr_hz_i / b_i(t)) dt >= bits_i

    where each client sends at full power. Since rates are concave in the bands, some optimal bands
    are constant while no further client becomes ready: a convex problem. Its T is a lower bound for
    bands that are constant (:func:`allocate_bandwidth`) and for clients that send in the whole band
    one at a time or with shares of the time (:func:`schedule_uplink`).

    >>> import solvers
    >>> plan = solvers.allocate_bands_in_time([1e6, 1e6], [0.1, 0.2], [1e7, 1e6], 1e6)
    >>> bands = solvers.allocate_bandwidth([1e6, 1e6], [0.1, 0.2], [1e7, 1e6], 1e6)
    >>> bool(plan.objective <= bands.objective)  # bands that change in time are no slower
    True

    A :class:`channels.Load` and the :class:`channels.ChannelDraw` of its clients can replace the
    arrays of clients and bands. Every cell is then a problem, with a place for each client of the
    largest cell, in the order of ``Network.by_cell``.

    Args:
        bits: size of each upload, >= 0; a client without bits needs no band.
        compute_seconds: when each client is ready to send, in seconds, >= 0.
        snr_hz: P g / N0 of each client in Hz: transmit power in watts x power gain / noise density
            in W/Hz. The SNR within a band b is snr_hz / b.
        bandwidth_hz: B > 0, the band of the cell in Hz.

    Arrays [..., clients], and [...] for ``bandwidth_hz``, are broadcast; leading axes are a batch,
    solved one by one. Array-like, or torch tensors on any device.

    Returns:
        :class:`BandsInTime` with the array type and device of ``bits``, as many intervals as
        clients. The objective is T in seconds, when all bits are delivered with these bands; the
        bound follows from prices of the band by weak duality. With the gap, usually below 1e-9,
        they are [...] float64, or floats for a single problem. A problem with a client that has
        bits and ``snr_hz`` 0 is infeasible: the value is None (-1 in a batch), the objective
        infinite, and the message names the client.
    """
    start = time.perf_counter()
    problem = read_problem(bits, compute_seconds, snr_hz, bandwidth_hz)
    feasible: BoolArray = np.asarray(~problem.stuck.any(-1))
    cells = problem.cells.rows(feasible)
    starts = np.sort(cells.ready, axis=-1)
    count, clients = cells.bits.shape
    bands = np.zeros((count, clients, clients))
    end, bound = starts[:, -1].copy(), starts[:, -1].copy()
    for row in np.flatnonzero(cells.bits.any(-1)):
        cell = BandCells(*(array[row] for array in cells))
        bands[row], reached, least = _soonest(cell, starts[row])
        end[row], bound[row] = np.maximum(end[row], reached), max(bound[row], least)
    message = "" if feasible.all() else problem.explain(~feasible)
    outcome = Outcome(BandsInTime(starts, bands), end, np.minimum(bound, end))
    return outcome.solution(
        feasible, problem.shape, bits, backend="prices", start=start, message=message
    )


def _soonest(cell: BandCells, starts: FloatArray) -> tuple[FloatArray, float, float]:
    """Bands [clients, intervals] of one problem, when they end, and a lower bound."""
    send = np.argsort(cell.ready, kind="stable")
    send = send[cell.bits[send] > 0]
    moments, first = np.unique(cell.ready[send], return_inverse=True)
    band = float(cell.bandwidth_hz)
    block = Block(
        cell.bits[send] / band, first.astype(np.float64), cell.snr_hz[send] / band, np.diff(moments)
    )
    plan, least = shortest(block)
    # Clients without bits begin intervals too, in which the bands do not change.
    into = np.searchsorted(moments, starts, side="right") - 1
    bands = np.zeros((len(cell.bits), len(starts)))
    bands[send] = np.where(into >= 0, plan.bands.T[:, into] * band, 0.0)
    return bands, float(moments[-1]) + plan.last, float(moments[-1]) + least
