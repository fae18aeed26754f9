"""The cell of each client, with which the slowest cell ends its uploads as soon as possible.

A time T is long enough only if fractions of clients fit, a linear program (see ``CellShares``):
bisection gives a bound, and its fractions, made whole by a flow, are a start for moves and swaps.
If the problem is small, an integer program then decides whether an assignment ends sooner.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray, IntArray
from channels.plausible import noted
from channels.validation import shown, whole_number
from solvers.arrays import finite, numbers
from solvers.cells.cell_shares import CellShares, EqualBands, OptimalBands
from solvers.cells.programs import in_time, least_load, matched
from solvers.cells.search import improved, resized
from solvers.outcome import Outcome, unable
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor

Bands = Literal["equal", "optimal"]
_BANDS: dict[str, type[CellShares]] = {"equal": EqualBands, "optimal": OptimalBands}
EXACT_PAIRS = 200
"""Maximum number of pairs of clients and cells of an integer program, unless nodes are given."""
NODES = 1000
"""Maximum number of nodes of each integer program by default."""
MOST = 10**14
"""Largest limit of the clients of a cell."""
_FRACTION = 1e-4
"""Relative width of the bracket that bisection leaves."""
_TOLERANCE = 1e-6
"""Of HiGHS: a load of fractions above 1 by less is not certain."""
_STEP = 1e-9
"""Relative step to earlier times."""


class _Answer(NamedTuple):
    """Cells of clients [clients], when the slowest ends, and a proven bound, in seconds."""

    cell_of: IntArray
    end: float
    bound: float


@noted
def assign_cells(
    bits: ArrayLike | Tensor,
    compute_seconds: ArrayLike | Tensor,
    snr_hz: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
    *,
    capacities: ArrayLike | None = None,
    min_clients: ArrayLike = 0,
    bands: Bands = "equal",
    nodes: int | None = None,
) -> Solution[Any]:
    """Find the cell of each client with which the slowest cell ends as soon as possible.

    Solves  min max_j T_j  over cells of clients. With equal bands, cell j of n_j clients ends at

        T_j = max_i compute_seconds_i + bits_i / ((B_j / n_j) log2(1 + snr_hz_ij n_j / B_j)),

    and with optimal bands at the objective of :func:`allocate_bandwidth`. A client of high gain in
    a crowded cell can be faster in another one, so that neither the nearest nor the strongest cell
    is the best. With optimal bands a decision at a given T is a generalised assignment problem.

    >>> import solvers
    >>> snr_hz = [[9e7, 1e7], [8e7, 4e7], [7e7, 1e6]]
    >>> solution = solvers.assign_cells([1e6] * 3, [0.1] * 3, snr_hz, [1e6, 1e6])
    >>> solution.value.tolist(), solution.status.name
    ([0, 1, 0], 'OPTIMAL')

    Args:
        bits: [clients], size of each upload, > 0.
        compute_seconds: [clients], when each client is ready to send, in seconds, >= 0.
        snr_hz: [clients, cells], P g / N0 of each client at each base station in Hz: transmit power
            in watts x power gain / noise density in W/Hz; 0 where it cannot send.
        bandwidth_hz: B [cells] in Hz, > 0.
        capacities: [cells], maximum number of clients of each cell; None for no maximum.
        min_clients: [cells], minimum number of clients of each cell.
        bands: "equal" or "optimal" bands of the clients of a cell.
        nodes: maximum number of nodes of branch and bound of each integer program, 0 for none; None
            for 1000 where clients x cells are at most 200, and otherwise none.

    One number applies to all clients or cells; there is no batch. Array-like, or torch tensors.

    Returns:
        Cells [clients], with the array type and device of ``snr_hz``. The objective is in seconds;
        the bound is a time before which no assignment ends. It is exact with equal bands where the
        limits fix the number of clients of each cell (a bottleneck matching by flows), and where
        HiGHS ends within ``nodes``; otherwise it is that of fractions of clients, and the gap says
        how far it is. Programs of HiGHS hold to its tolerance, a relative 1e-6. A problem is
        infeasible if a client has no cell or the limits do not fit; the message says which.
    """
    start = time.perf_counter()
    problem, limit = _read(
        bits, compute_seconds, snr_hz, bandwidth_hz, capacities, min_clients, bands, nodes
    )
    able = problem.snr_hz > 0
    first = matched(able, problem.fewest, problem.most)
    feasible, message, backend = np.array([first is not None]), "", "matching"
    answers: list[_Answer] = []
    if first is None:
        message = unable({"send: snr_hz is 0 in all cells": np.asarray(~able.any(-1))}) or _unfit(
            problem
        )
    elif bands == "equal" and (sizes := _fixed_sizes(problem)) is not None:
        answers = [_matching(problem, sizes, first)]
    else:
        answer, backend = _fractions(problem, first), "linear program and swaps"
        if limit and answer.bound < answer.end:
            exact = _equal if isinstance(problem, EqualBands) else _optimal
            answer, backend = exact(problem, answer, limit), "highs"
        answers = [answer]
    cell_of = np.array([answer.cell_of for answer in answers], dtype=np.int64)
    ends, bounds = (np.array([answer[k] for answer in answers]) for k in (1, 2))
    outcome = Outcome(cell_of, ends, np.minimum(bounds, ends))
    return outcome.solution(feasible, (), snr_hz, backend=backend, start=start, message=message)


def _fixed_sizes(problem: CellShares) -> IntArray | None:
    """The number of clients of each cell [cells] if the limits leave one only."""
    for limits in (problem.most, problem.fewest):
        if limits.sum() == len(problem.bits):
            return limits
    return None


def _matching(problem: CellShares, sizes: IntArray, first: IntArray) -> _Answer:
    """The bottleneck matching of clients to the places of cells of these sizes."""
    seconds = problem.alone(np.maximum(sizes, 1))
    cell_of = first
    times = np.unique(seconds[np.isfinite(seconds)])
    times = times[times <= problem.seconds(first).max()]
    low, high = 0, len(times) - 1
    while low < high:
        middle = (low + high) // 2
        trial = matched(seconds <= times[middle], sizes, sizes)
        if trial is None:
            low = middle + 1
        else:
            high, cell_of = middle, trial
    end = float(problem.seconds(cell_of).max())
    return _Answer(cell_of, end, end)


def _fractions(problem: CellShares, first: IntArray) -> _Answer:
    """The bound of fractions of clients, and the assignment that follows from them."""
    low = high = float(problem.alone().min(-1).max())
    parts = None
    while parts is None:
        answer = least_load(problem, problem.linear(high))
        if answer.bound <= 1 + _TOLERANCE:
            parts = answer.parts
        else:
            low, high = high, 2 * high
    while high > low * (1 + _FRACTION):
        middle = float(np.sqrt(low * high))
        answer = least_load(problem, problem.linear(middle))
        if answer.bound <= 1 + _TOLERANCE:
            high, parts = middle, answer.parts
        else:
            low = middle
    whole = _whole(problem, parts)
    cell_of, seconds = improved(problem, first if whole is None else whole)
    if isinstance(problem, EqualBands):
        cell_of, seconds = resized(problem, cell_of, seconds)
    return _Answer(cell_of, float(seconds.max()), low)


def _whole(problem: CellShares, parts: FloatArray | None) -> IntArray | None:
    """Cells [clients] in which fractions are above 0, with as many clients up to rounding."""
    if parts is None:
        return None
    sizes = parts.sum(0)
    fewest = np.floor(sizes + _TOLERANCE).astype(np.int64)
    most = np.ceil(sizes - _TOLERANCE).astype(np.int64)
    return matched(parts > _TOLERANCE, np.maximum(fewest, problem.fewest), most)


def _equal(problem: CellShares, answer: _Answer, nodes: int) -> _Answer:
    """Equal bands: bisection over all times at which a client can end, by integer programs."""
    assert isinstance(problem, EqualBands)
    cell_of, end, bound = answer
    most = int(min(problem.sharing(end).max(), problem.most.max()))
    every = np.unique([problem.alone(number) for number in range(1, most + 1)])
    times = every[(every >= bound) & (every < end)]
    while times.size:
        middle = len(times) // 2
        program = in_time(problem, problem.sharing(times[middle]), nodes)
        if program.bound == np.inf:
            times = times[middle + 1 :]
            continue
        if program.parts is None:
            break  # out of nodes
        trial, seconds = improved(problem, program.parts.argmax(-1))
        if not seconds.max() < end:
            break  # within the tolerance of HiGHS only
        cell_of, end = trial, float(seconds.max())
        times = times[times < end]
    return _Answer(cell_of, end, float(times[0]) if times.size else end)


def _optimal(problem: CellShares, answer: _Answer, nodes: int) -> _Answer:
    """Optimal bands: the least load a little before the end, again after each sooner end.

    If the least load at T is only q, none ends before q T, see ``bands.select``.
    """
    cell_of, end, bound = answer
    while bound < end:
        earlier = end * (1 - _STEP)
        program = least_load(problem, problem.shares(earlier), nodes)
        bound = max(bound, min(program.bound, 1.0) * earlier)
        if program.parts is None or bound == earlier:
            break
        trial, seconds = improved(problem, program.parts.argmax(-1))
        if not seconds.max() < earlier:
            break
        cell_of, end = trial, float(seconds.max())
    return _Answer(cell_of, end, bound)


def _unfit(problem: CellShares) -> str:
    """Why no assignment is within the limits."""
    clients = len(problem.bits)
    if problem.most.sum() < clients:
        return f"capacities sum to {problem.most.sum()}, for {clients} clients"
    if problem.fewest.sum() > clients:
        return f"min_clients sum to {problem.fewest.sum()}, for {clients} clients"
    return "capacities and min_clients do not fit the cells to which clients can send"


def _read(
    bits: Any,
    compute_seconds: Any,
    snr_hz: Any,
    bandwidth_hz: Any,
    capacities: Any,
    min_clients: Any,
    bands: Any,
    nodes: Any,
) -> tuple[CellShares, int]:
    """Read and validate the arguments of ``assign_cells``: the problem, and nodes."""
    snr = finite("snr_hz", snr_hz, "Hz: transmit power x gain / noise density")
    if snr.ndim != 2 or not snr.size:
        raise ValueError(f"snr_hz has shape {snr.shape}: give [clients, cells], one at least each.")
    clients, cells = snr.shape
    if not isinstance(bands, str) or bands not in _BANDS:
        raise ValueError(f'bands is {shown(bands)}: choose "equal" or "optimal".')
    size = _one_axis("bits", finite("bits", bits, "bits", above=True), "clients", clients)
    ready = finite("compute_seconds", compute_seconds, "seconds")
    ready = _one_axis("compute_seconds", ready, "clients", clients)
    band = finite("bandwidth_hz", bandwidth_hz, "Hz", above=True)
    band = _one_axis("bandwidth_hz", band, "cells", cells)
    fewest = _limits("min_clients", min_clients, cells)
    most = np.full(cells, clients)
    if capacities is not None:
        most = np.minimum(_limits("capacities", capacities, cells), clients)
    if (fewest > most).any():
        cell = int((fewest > most).argmax())
        raise ValueError(
            f"min_clients is {fewest[cell]} in cell {cell}, and at most {most[cell]} clients can "
            "be in it: lower it."
        )
    if nodes is None:
        limit = NODES if snr.size <= EXACT_PAIRS else 0
    else:
        limit = whole_number("nodes", nodes)
        if limit < 0:
            raise ValueError(f"nodes is {limit}: give a whole number >= 0, or None.")
    return _BANDS[bands](size, ready, snr, band, fewest, most), limit


def _one_axis(name: str, values: FloatArray, axis: str, length: int) -> FloatArray:
    """``values`` of one number for all, or [clients] or [cells]."""
    if values.shape not in {(), (1,), (length,)}:
        raise ValueError(
            f"{name} has shape {values.shape}: give one number, or [{axis}], here ({length},) as "
            "snr_hz."
        )
    return np.broadcast_to(values, (length,))


def _limits(name: str, values: Any, cells: int) -> IntArray:
    """Whole numbers of clients [cells]."""
    array = _one_axis(name, numbers(name, values), "cells", cells)
    wrong = ~((array >= 0) & (array == np.floor(array)) & (array <= MOST))
    if wrong.any():
        raise ValueError(
            f"{name} contains {array[wrong][0]:g}: give whole numbers from 0 to {MOST}."
        )
    return array.astype(np.int64)
