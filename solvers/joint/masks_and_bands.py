"""Mask sizes and bands together: which cell trains how much, and which client gets which band.

A cell whose clients compute and send in proportion to the size p of its submodel ends at T with the
bands of one unit that ends at T / p: scaling p and T together leaves all bands as they are. The
least time is then p T_j, where T_j is that of ``allocate_bandwidth`` for one unit, and the problem
separates into bands and sizes. With bits or seconds that do not depend on the size, the time is
still increasing in p, and sizes are found by bisection.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from channels.plausible import noted
from solvers.bands.allocate import soonest
from solvers.joint.joint_problem import read_problem
from solvers.joint.sized_cells import SizedCells
from solvers.load_rows import takes_load
from solvers.outcome import Outcome, left_out
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor


_EPS = float(np.finfo(np.float64).eps)
_MAX_TURNS = 200


class MasksAndBands(NamedTuple):
    """A joint design.

    >>> import solvers
    >>> plan = solvers.optimize_masks_and_bands(
    ...     1e5, 0.01, [[1e7, 1e7], [1e6, 1e6]], [1e6, 1e6], total=10
    ... ).value
    >>> plan.sizes.tolist(), plan.bandwidth_hz.shape
    ([7, 3], (2, 2))

    Args:
        sizes: units of each cell, [..., cells], integers.
        bandwidth_hz: band of each client, [..., cells, clients], in Hz.
    """

    sizes: Any
    bandwidth_hz: Any


@noted
@takes_load
def optimize_masks_and_bands(
    bits_per_unit: ArrayLike | Tensor,
    seconds_per_unit: ArrayLike | Tensor,
    snr_hz: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
    total: int,
    *,
    offset_bits: ArrayLike | Tensor = 0.0,
    offset_seconds: ArrayLike | Tensor = 0.0,
    cap: ArrayLike | Tensor | None = None,
    lower: ArrayLike | Tensor = 0,
    granularity: int = 1,
) -> Solution[MasksAndBands]:
    """Find submodel sizes and bands that together minimise the slowest cell's seconds.

    Solves  min T  over integers p_j in [lower_j, cap_j], multiples of ``granularity``, with
    sum_j p_j = total, and over bands b_i >= 0 with sum_{i in j} b_i <= B_j, so that for every
    client i of every cell j

        w_i + v_i p_j + (o_i + s_i p_j) / (b_i log2(1 + rho_i / b_i)) <= T.

    It has the sizes of HIST's problem (20) and the bands of ``allocate_bandwidth`` in one problem.

    >>> import solvers
    >>> solution = solvers.optimize_masks_and_bands(
    ...     1e5, 0.01, [[1e7, 1e7], [1e6, 1e6]], [1e6, 1e6], total=10
    ... )
    >>> solution.value.sizes.tolist()  # the clients of the first cell have the better channels
    [7, 3]

    A :class:`channels.Load` (per unit) and the :class:`channels.ChannelDraw` of its clients can
    replace the arrays of clients and bands. Clients are then in the order of ``Network.by_cell``.

    Args:
        bits_per_unit: s, [..., cells, clients], bits that a client sends per unit (neuron) of its
            cell's submodel; 0, with 0 seconds, for clients that a smaller cell lacks.
        seconds_per_unit: v, [..., cells, clients], seconds of computation per unit.
        snr_hz: rho, [..., cells, clients], transmit power x gain / noise density in Hz.
        bandwidth_hz: B, [..., cells], the band of each cell in Hz.
        total: number of units to allocate.
        offset_bits: o, [..., cells, clients], bits of layers that all cells share.
        offset_seconds: w, [..., cells, clients], seconds of layers that all cells share.
        cap, lower, granularity: bounds of the sizes, as for ``optimize_mask_sizes``.

    Arrays are broadcast; leading axes are a batch. Array-like, or torch tensors on any device.

    Returns:
        ``MasksAndBands`` with the array type of ``bits_per_unit``. The objective is T in seconds,
        and the bound a time in which no integer sizes and bands suffice; they agree to rounding
        errors. Infeasible problems have no value (-1 in a batch); the message names the constraint
        and the shortfall in units. It also names clients with bits and ``snr_hz`` 0, whose cells
        train nothing.
    """
    start = time.perf_counter()
    arrays = bits_per_unit, seconds_per_unit, snr_hz, bandwidth_hz, total
    problem = read_problem(*arrays, offset_bits, offset_seconds, (cap, lower, granularity))
    feasible = problem.feasible()
    cells = problem.cells.rows(np.repeat(feasible, problem.low.shape[1]))
    steps, bound = fastest(cells, problem.low[feasible], problem.high[feasible], problem.quota)
    bands, ends, _ = soonest(cells.at(steps.ravel()))
    sizes = (steps * problem.sizes.cells.step).astype(np.int64)
    objective = ends.reshape(steps.shape).max(-1)
    value = MasksAndBands(sizes, bands.reshape(*steps.shape, bands.shape[-1]))
    if feasible.all():
        message = left_out(problem.mute, problem.shape, problem.named)
    else:
        message = problem.explain(feasible)
    return Outcome(value, objective, np.minimum(bound, objective)).solution(
        feasible, problem.shape, bits_per_unit, backend="bisection", start=start, message=message
    )


def fastest(
    cells: SizedCells, low: FloatArray, high: FloatArray, quota: int
) -> tuple[FloatArray, FloatArray]:
    """Steps [problems, cells] that end soonest, and a time in which none can end [problems].

    Args:
        cells: [problems x cells].
        low, high: bounds of the steps, [problems, cells].
        quota: sum of the steps.

    At a time T each cell trains as many steps as end by then; T* is the first time at which their
    sum reaches the quota. Bisection leaves few steps in between, and their times are listed.
    """
    number = low.shape[1]
    begin = cells.seconds(low.ravel())[0].reshape(low.shape).max(-1)
    end = cells.seconds(high.ravel())[1].reshape(low.shape).max(-1)
    for turn in range(_MAX_TURNS):
        below, above = low.sum(-1), high.sum(-1)
        open_ = (above - below > _listed(number)) & (below < quota)
        open_ &= end - begin > 4 * _EPS * end
        at = np.flatnonzero(open_)
        if not at.size:
            break
        share = (quota - below[at]) / np.maximum(above[at] - below[at], 1)
        share = np.clip(share, 0.01, 0.99) if turn % 2 == 0 else 0.5
        middle = begin[at] + share * (end[at] - begin[at])
        chosen = (at[:, None] * number + np.arange(number)).ravel()
        fitting = cells.rows(chosen).largest(
            np.repeat(middle, number), low[at].ravel(), high[at].ravel()
        )
        fitting = fitting.reshape(len(at), number)
        late = fitting.sum(-1) < quota
        begin[at], end[at] = np.where(late, middle, begin[at]), np.where(late, end[at], middle)
        low[at] = np.where(late[:, None], fitting, low[at])
        high[at] = np.where(late[:, None], high[at], fitting)
    return _complete(cells, low, high, quota, begin)


def _listed(cells: int) -> int:
    """Number of steps whose times are listed."""
    return 4 * cells + 16


def _complete(
    cells: SizedCells, low: FloatArray, high: FloatArray, quota: int, begin: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Add to ``low`` [rows, cells] the steps up to ``high`` that end first, until the quota.

    At the time ``begin`` [rows] only the steps ``low`` end.
    """
    steps, bound = low.copy(), begin.copy()
    for row in range(len(low)):
        missing = int(quota - low[row].sum())
        if not missing:
            continue
        if (high[row] - low[row]).sum() > _listed(len(low[row])):  # all of them end together
            before = (high[row] - low[row]).cumsum() - (high[row] - low[row])
            steps[row] += np.clip(missing - before, 0, high[row] - low[row])
            continue
        counts = np.minimum(high[row] - low[row], missing).astype(np.int64)
        cell = np.repeat(np.arange(len(counts)), counts)
        size = low[row][cell] + np.arange(len(cell)) - (counts.cumsum() - counts)[cell] + 1
        since, until = cells.rows(row * len(counts) + cell).seconds(size)
        order = np.lexsort((size, until))[:missing]
        steps[row] += np.bincount(cell[order], minlength=len(counts))
        bound[row] = max(bound[row], np.partition(since, missing - 1)[missing - 1])
    return steps, bound
