"""Widths of submodels: how much of the model each client of a round trains.

Clients train submodels of different widths, whose masks pick arbitrary neurons (RA-Fed, proof
supplement of the KDD '23 submission). The coverage of a neuron is the number of masks that have
it, and Gamma* here the minimum over neurons. (Gamma* of the rate O(1 / sqrt(Gamma* T Q)) is over
parameters: the same with one hidden layer; between two, who holds both ends.) Counts alone decide
which Gamma* is possible: where masks keep w_n <= K of a layer's K neurons, they can cover each of
them G times if and only if sum_n w_n >= G K. Fewer do not suffice, as each neuron takes G of the
sum. These do: put the neurons on a circle, and let each client take the w_n of them that follow
those of the client before. None goes round more than once, so none takes a neuron twice, and all
together go round sum_n w_n / K times, covering neurons floor or ceil of that many times.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from channels.validation import shown, whole_number
from solvers.arrays import like, numbers
from solvers.solution import Solution, Status
from solvers.widths.problem import FloatArray, IntArray, Levels, read_levels

if TYPE_CHECKING:
    from torch import Tensor


@overload
def fastest_widths(
    seconds: Tensor, neurons: ArrayLike | Tensor, coverage: int
) -> Solution[Tensor]: ...
@overload
def fastest_widths(
    seconds: ArrayLike, neurons: ArrayLike | Tensor, coverage: int
) -> Solution[IntArray]: ...
def fastest_widths(
    seconds: ArrayLike | Tensor, neurons: ArrayLike | Tensor, coverage: int
) -> Solution[Any]:
    """Widths with which a round ends soonest whose masks can cover every neuron enough.

    Solves  min_k max_n seconds[n, k_n]  over levels k_n with  sum_n w_l(k_n) >= Gamma* K_l  in
    every layer l, w_l(k) being the neurons that level k keeps and K_l those of the full model:
    masks of a minimum coverage Gamma* exist for these widths, and for none of less (see the
    module). Every client takes part, so no round is shorter than the slowest client's level 0.

    Args:
        seconds: [clients, levels], what a round takes client n at level k; finite, >= 0, and not
            decreasing along levels. NumPy or alike, or torch on any device.
        neurons: [levels] or [layers, levels], of each hidden layer those that a submodel at level
            k keeps; whole numbers from 1 to 2^30, not decreasing. The last level is the full model.
        coverage: Gamma* >= 1, the minimum number of masks that have a neuron.

    Returns:
        Level of each client, [clients] int64, of the kind and device of ``seconds``: the largest
        that ends within the objective, so that coverage which costs no time is not left out.
        Objective in seconds; the bound equals it, since seconds are compared as they are given,
        and since in less time some client does not end its level 0, or some layer falls short of
        its Gamma* K_l neurons even if every client takes the largest level that ends.
        Infeasible, with no value, are more masks on a neuron than there are clients; the message
        names the layer and the shortfall in neurons.

    Raises:
        ValueError: ``seconds``, ``neurons`` or ``coverage`` is out of its range, decreases, or has
            a shape that does not fit.
        TypeError: ``coverage`` is no integer.
    """
    start = time.perf_counter()
    levels = read_levels(seconds, neurons)
    min_coverage = whole_number("coverage", coverage)
    if min_coverage < 1:
        raise ValueError(
            f"coverage is {min_coverage}: give a whole number from 1, masks on a neuron."
        )
    if min_coverage > len(levels.seconds):
        return _infeasible(np.inf, "selection", start, levels.explain(min_coverage))
    soonest = _soonest(levels, min_coverage)
    value = like(seconds, levels.by(soonest))
    wall = time.perf_counter() - start
    return Solution(value, soonest, soonest, 0.0, Status.OPTIMAL, "selection", wall)


@overload
def widths_by_deadline(
    seconds: Tensor, neurons: ArrayLike | Tensor, deadline: float
) -> Solution[Tensor]: ...
@overload
def widths_by_deadline(
    seconds: ArrayLike, neurons: ArrayLike | Tensor, deadline: float
) -> Solution[IntArray]: ...
def widths_by_deadline(
    seconds: ArrayLike | Tensor, neurons: ArrayLike | Tensor, deadline: float
) -> Solution[Any]:
    """Largest widths with which every client ends its round by a deadline.

    Solves  max_k min_l sum_n w_l(k_n) / K_l  over levels k_n with seconds[n, k_n] <= deadline:
    the mean coverage of the layer that is covered worst. Its floor is the largest Gamma* that
    masks of these widths, or of any others that keep the deadline, can guarantee.

    Args:
        seconds: [clients, levels], as for :func:`fastest_widths`.
        neurons: [levels] or [layers, levels], as for :func:`fastest_widths`.
        deadline: seconds that a round may take, finite and > 0.

    Returns:
        Level of each client, [clients] int64, of the kind and device of ``seconds``: the largest
        that ends by the deadline. Objective: mean coverage, in masks a neuron; the bound equals
        it, since no client's level limits another's. Where a client is late even at level 0 there
        is no value and the objective is -inf; the message names the slowest and what it needs.

    Raises:
        ValueError: ``seconds``, ``neurons`` or ``deadline`` is out of its range, decreases, or has
            a shape that does not fit.
    """
    start = time.perf_counter()
    levels = read_levels(seconds, neurons)
    limit = numbers("deadline", deadline)
    if limit.ndim or not 0 < limit < np.inf:
        raise ValueError(f"deadline is {shown(deadline)}: give a finite number of seconds above 0.")
    late = levels.seconds[:, 0] > limit
    if late.any():
        slowest = int(levels.seconds[:, 0].argmax())
        message = (
            f"{late.sum()} of {len(late)} clients are late even at level 0; the slowest, client "
            f"{slowest}, needs {levels.seconds[slowest, 0]} seconds there, and deadline is {limit}"
        )
        return _infeasible(-np.inf, "greedy", start, message)
    value = levels.by(float(limit))
    kept = levels.neurons[:, value].sum(-1)
    coverage = float((kept / levels.full).min())
    wall = time.perf_counter() - start
    return Solution(like(seconds, value), coverage, coverage, 0.0, Status.OPTIMAL, "greedy", wall)


@overload
def coverage_frontier(seconds: Tensor, neurons: ArrayLike | Tensor) -> Solution[Tensor]: ...
@overload
def coverage_frontier(seconds: ArrayLike, neurons: ArrayLike | Tensor) -> Solution[FloatArray]: ...
def coverage_frontier(seconds: ArrayLike | Tensor, neurons: ArrayLike | Tensor) -> Solution[Any]:
    """What each minimum coverage costs: the objectives of :func:`fastest_widths` for all Gamma*.

    One sort of the seconds serves all of them. :func:`widths_by_deadline` with such an objective
    as the deadline gives the widths.

    Args:
        seconds: [clients, levels], as for :func:`fastest_widths`.
        neurons: [levels] or [layers, levels], as for :func:`fastest_widths`.

    Returns:
        A batch of one problem for each Gamma* from 1 to the number of clients, all of them
        feasible. Value: seconds of the shortest round, [clients] float64, item g - 1 for Gamma* =
        g; objective and bound equal it. Arrays are of the kind and device of ``seconds``.

    Raises:
        ValueError: ``seconds`` or ``neurons`` is out of its range, decreases, or has a shape that
            does not fit.
    """
    start = time.perf_counter()
    levels = read_levels(seconds, neurons)
    begin, later = levels.begin, levels.seconds > levels.begin
    ends = levels.seconds[later]
    order = np.argsort(ends)
    level = np.broadcast_to(np.arange(later.shape[1], dtype=np.int32), later.shape)[later][order]
    times = np.append(begin, ends[order])
    wanted = np.arange(1, len(later) + 1)
    soonest = np.full(len(wanted), begin)
    # Each level that ends adds its gain; of equal ends, the first that suffices is as good as any.
    for gain, kept, full in zip(levels.gains, levels.kept(begin), levels.full, strict=True):
        reached = np.append(kept, gain[level]).cumsum()
        soonest = np.maximum(soonest, times[np.searchsorted(reached, wanted * full)])
    status = np.full(len(wanted), Status.OPTIMAL)
    # Copies, so that changing one in place leaves the others.
    value, objective, bound = (like(seconds, soonest.copy()) for _ in range(3))
    gap = like(seconds, np.zeros(len(wanted)))
    wall = time.perf_counter() - start
    return Solution(value, objective, bound, gap, status, "sort", wall)


def _soonest(levels: Levels, coverage: int) -> float:
    """Least time in which layers keep ``coverage`` times their neurons; 1 <= coverage <= clients.

    One of the levels' ends. Their median says which half of them it is in, and the median of that
    half goes on: less work than to sort all of them for a bisection.
    """
    wanted = coverage * levels.full
    begin = levels.begin
    if (levels.kept(begin) >= wanted).all():
        return begin
    ends = levels.seconds[levels.seconds > begin]
    while len(ends) > 1:
        middle = (len(ends) - 1) // 2
        ends.partition(middle)
        enough = (levels.kept(ends[middle]) >= wanted).all()
        ends = ends[: middle + 1] if enough else ends[middle + 1 :]
    return float(ends[0])


def _infeasible(objective: float, backend: str, start: float, message: str) -> Solution[Any]:
    wall = time.perf_counter() - start
    return Solution(None, objective, objective, 0.0, Status.INFEASIBLE, backend, wall, message)
