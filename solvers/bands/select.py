"""Which clients of a cell upload, and in which bands, so that the round ends as soon as possible.

With b_i(T) the least band with which client i ends by T (see ``bands.least_band``), some clients S
can end by T if and only if their b_i(T) sum to at most B. So the best K clients can if and only if
the K smallest b_i(T) do, also where the sizes of the uploads differ. From the least time T of any K
clients, the K smallest b_i(T) are the next: their sum is below B and their least time is less than
T, unless no K clients end before T. By values, the set of least total band takes their place.

Certificate: if every set needs B at a time a little before T, none ends before that time. If the
least need is only q B, q < 1, none ends before q times it: b_i(T) (T - r_i) does not increase with
T, and r_i >= 0, so that each b_i grows by 1 / q at least while T falls by the factor q.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.plausible import noted
from channels.validation import whole_number
from solvers.bands.allocate import soonest
from solvers.bands.band_problem import BandProblem, read_problem
from solvers.bands.knapsack import cheapest
from solvers.bands.least_band import LN2, least_band, upload_seconds
from solvers.bands.least_time import BandCells
from solvers.outcome import Outcome, left_out, located
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor

_STEP = 2e-14
"""Relative step to earlier times: the relative error that rounding may leave in T. In T and not in
the band, because at low SNR least bands have large errors, and change as much with T."""
_SUM_ROUNDING = 1e-12
"""Relative rounding error of a sum of values."""
_MAX_SETS = 100


class Selection(NamedTuple):
    """The clients that upload, and their bands.

    >>> import solvers
    >>> plan = solvers.select_clients([1e6] * 3, [0.1] * 3, [1e7, 1e4, 1e7], 1e6, count=2).value
    >>> plan.chosen.tolist(), plan.bandwidth_hz.round().tolist()
    ([True, False, True], [500000.0, 0.0, 500000.0])

    Args:
        chosen: [..., clients], Boolean.
        bandwidth_hz: [..., clients] in Hz; 0 for clients that are not chosen.
    """

    chosen: Any
    bandwidth_hz: Any


@noted
def select_clients(
    bits: ArrayLike | Tensor,
    compute_seconds: ArrayLike | Tensor,
    snr_hz: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
    *,
    count: int | None = None,
    values: ArrayLike | Tensor | None = None,
    at_least: ArrayLike | Tensor | None = None,
) -> Solution[Selection]:
    """Find the clients, and their bands, with which the last upload ends as soon as possible.

    Solves  min T  over sets S of clients and bands b_i >= 0 with  sum_{i in S} b_i <= B  and

        compute_seconds_i + bits_i / (b_i log2(1 + snr_hz_i / b_i)) <= T

    for every i in S, where S has ``count`` clients or a total value of ``at_least``. (Greedy
    selection for this problem: Shi et al., arXiv:2007.07174.)

    >>> import solvers
    >>> few = solvers.select_clients([1e6] * 3, [0.1] * 3, [1e7, 1e4, 1e7], 1e6, count=2)
    >>> few.value.chosen.tolist()
    [True, False, True]

    Args:
        bits: size of each upload, >= 0; a client without bits needs no band.
        compute_seconds: when each client is ready to send, in seconds, >= 0.
        snr_hz: P g / N0 of each client in Hz: transmit power in watts x power gain / noise density
            in W/Hz. A client with bits and ``snr_hz`` 0 is not chosen, and the message names it.
        bandwidth_hz: B > 0, the band of the cell in Hz.
        count: number of clients to choose, from 1 to all.
        values: value of each client, >= 0, e.g. its number of samples.
        at_least: least total value of the chosen clients, > 0; sums of values are compared to a
            relative 1e-12.

    Give either ``count`` or ``values`` and ``at_least``. Arrays [..., clients], and [...] for
    ``bandwidth_hz`` and ``at_least``, are broadcast; leading axes are a batch. Array-like, or torch
    tensors on any device.

    Returns:
        A :class:`Selection` with the array type and device of ``bits``; the bands sum to B if a
        chosen client has bits. The objective is T in seconds, when the last chosen client ends with
        these bands; the bound is a time before which no such clients can end. By count they agree
        to rounding errors. By values too, unless a knapsack with very many clients of nearly equal
        value per hertz is cut short; the gap then says by how much. With the gap they are [...]
        float64, or floats for a single problem. A problem is infeasible if too few clients can
        send: the value is None (False and -1 in a batch), the objective infinite, and the message
        gives the shortfall.
    """
    start = time.perf_counter()
    _check_choice(count, values, at_least)
    problem = read_problem(bits, compute_seconds, snr_hz, bandwidth_hz, values, at_least)
    able = ~problem.stuck
    if problem.values is None or problem.at_least is None:
        number = _checked_count(count, able.shape[1])
        feasible: BoolArray = np.count_nonzero(able, axis=-1) >= number
        chosen, bands, end, bound = _by_count(problem.cells.rows(feasible), number)
        backend = "smallest bands"
    else:
        # Products with ``able``: no infinities, so that no value is lost.
        worth, least = problem.values * able, problem.at_least * (1 - _SUM_ROUNDING)
        feasible = np.asarray(worth.sum(-1) >= least)
        chosen, bands, end, bound = _by_value(
            problem.cells.rows(feasible), worth[feasible], least[feasible]
        )
        backend = "knapsack"
    if feasible.all():
        message = left_out(problem.stuck, problem.shape, problem.unable)
    else:
        message = _shortfall(problem, ~feasible, count)
    outcome = Outcome(Selection(chosen, bands), end, bound)
    return outcome.solution(
        feasible, problem.shape, bits, backend=backend, start=start, message=message
    )


def _by_count(cells: BandCells, count: int) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """Chosen clients and bands [problems, clients], ends and bounds [problems]."""
    size = len(cells.bits)
    part, bands = np.zeros((size, count), dtype=np.int64), np.zeros((size, count))
    end, bound = np.full(size, np.inf), np.zeros(size)
    equal = np.broadcast_to(cells.bandwidth_hz[:, None] / count, cells.bits.shape)
    trial = _smallest(cells.ready + upload_seconds(cells.bits, equal, cells.snr_hz), count)
    at = np.arange(size)  # problems whose next set is tried
    for _ in range(_MAX_SETS):
        share, reached, _ = soonest(_some(cells.rows(at), trial))
        sooner = reached < end[at]
        at, trial = at[sooner], trial[sooner]
        part[at], bands[at], end[at] = trial, share[sooner], reached[sooner]
        if not at.size:
            break
        earlier = end[at] * (1 - _STEP)
        needed = bands_at(cells.rows(at), earlier)
        trial = _smallest(needed, count)
        used = np.take_along_axis(needed, trial, 1).sum(-1) / cells.bandwidth_hz[at]
        bound[at] = np.minimum(used, 1) * earlier
        at, trial = at[used < 1], trial[used < 1]
    chosen, every = np.zeros(cells.bits.shape, dtype=np.bool_), np.zeros(cells.bits.shape)
    np.put_along_axis(chosen, part, True, 1)
    np.put_along_axis(every, part, bands, 1)
    return chosen, every, end, bound


def _by_value(
    cells: BandCells, values: FloatArray, at_least: FloatArray
) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """As ``_by_count``, problem by problem, with values that sum to ``at_least`` at least."""
    chosen, bands = np.zeros(cells.bits.shape, dtype=np.bool_), np.zeros(cells.bits.shape)
    end, bound = np.full(len(at_least), np.inf), np.zeros(len(at_least))
    for row in range(len(at_least)):
        cell = cells.rows(slice(row, row + 1))
        trial: IntArray | None = np.flatnonzero(values[row])
        for _ in range(_MAX_SETS):
            if trial is None:
                break
            share, reached, _ = soonest(_some(cell, trial[None]))
            if not reached[0] < end[row]:
                break
            chosen[row], bands[row], end[row] = False, 0.0, reached[0]
            chosen[row, trial], bands[row, trial] = True, share[0]
            earlier = reached * (1 - _STEP)
            needed = bands_at(cell, earlier)[0] / cell.bandwidth_hz[0]
            trial, least = cheapest(needed, values[row], at_least[row], 1 + _STEP)
            bound[row] = min(least, 1) * earlier[0]
    return chosen, bands, end, bound


def _some(cells: BandCells, part: IntArray) -> BandCells:
    """The clients ``part`` [problems, some] of each problem."""
    bits, ready, snr_hz = (np.take_along_axis(array, part, 1) for array in cells[:3])
    return BandCells(bits, ready, snr_hz, cells.bandwidth_hz)


def _smallest(amounts: FloatArray, count: int) -> IntArray:
    """Indices [problems, count] of the smallest amounts; of equal ones, the first."""
    order: IntArray = np.argsort(amounts, axis=-1, kind="stable")[:, :count]
    return order


def bands_at(cells: BandCells, end: FloatArray) -> FloatArray:
    """b_i [problems, clients] at the times ``end``; infinite for clients that end later anyway."""
    window = end[:, None] - cells.ready
    able = (window > 0) & ((cells.bits == 0) | (cells.bits * LN2 < window * cells.snr_hz))
    bands = np.full(able.shape, np.inf)
    bands[able] = least_band(cells.bits[able], window[able], cells.snr_hz[able])[0]
    return bands


def _check_choice(count: object, values: object, at_least: object) -> None:
    """Raise unless one way to choose is given completely."""
    by_value = values is not None and at_least is not None
    halfway = (values is None) != (at_least is None)
    if halfway or (count is not None) == by_value:
        named = {"count": count, "values": values, "at_least": at_least}
        names = ", ".join(name for name, value in named.items() if value is not None)
        raise ValueError(
            f"given are {names or 'neither count nor values'}: give either count, or values and "
            "at_least."
        )


def _checked_count(count: int | None, total: int) -> int:
    """``count`` as an int."""
    number = whole_number("count", count)
    if not 1 <= number <= total:
        raise ValueError(f"count is {number}: give a number from 1 to {total}, all clients.")
    return number


def _shortfall(problem: BandProblem, without: BoolArray, count: int | None) -> str:
    """Say by how much the first infeasible problem falls short, and who cannot send in it."""
    row = int(without.argmax())
    stuck = problem.stuck[row]
    if problem.values is None or problem.at_least is None:
        text = f"count is {count}, but {np.count_nonzero(~stuck)} of {len(stuck)} clients can send"
    else:
        total = problem.values[row][~stuck].sum()
        text = f"at_least is {problem.at_least[row]}, but the clients that can send have a total "
        text += f"value of {total}"
    if stuck.any():
        text += f"; {problem.unable(row)}"
    return located(text, without, problem.shape)
