"""Widths that each have given seconds, and the coverage that they guarantee.

Clients train submodels of different widths, whose masks select arbitrary neurons (RA-Fed, proof
supplement of the KDD '23 submission). The coverage of a neuron is the number of masks that contain
it; here Gamma* is the minimum coverage over neurons. (In the rate O(1 / sqrt(Gamma* T Q)) Gamma* is
a minimum over parameters. The two are equal with one hidden layer; a weight between two hidden
layers is covered by the masks that contain both of its neurons.)

The number of neurons per mask alone decides which Gamma* is possible: if the masks keep w_n <= K of
a layer's K neurons, they can cover each neuron G times if and only if sum_n w_n >= G K. The
condition is necessary because each neuron uses G units of the sum. It is sufficient by
construction: place the neurons on a circle, and let each client take the w_n neurons that follow
those of the previous client. Since w_n <= K, no client takes a neuron twice; together the clients
go round the circle sum_n w_n / K times and cover each neuron floor or ceil of that many times.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from channels.validation import whole_number
from solvers.arrays import like
from solvers.solution import Solution, Status
from solvers.widths.width_problem import (
    FloatArray,
    IntArray,
    WidthLevels,
    check_deadline,
    missed,
    read_levels,
)

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
    """Find the widths that minimise the duration of a round with a given minimum coverage.

    Solves  min_k max_n seconds[n, k_n]  over levels k_n with  sum_n w_l(k_n) >= Gamma* K_l  in
    every layer l, where w_l(k) is the number of neurons that level k keeps and K_l that of the full
    model. Masks with minimum coverage Gamma* exist if and only if the widths meet this constraint
    (see the module's docstring). Every client participates, so no round is shorter than the slowest
    client's time at level 0.

    >>> import solvers
    >>> seconds = [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    >>> solution = solvers.fastest_widths(seconds, neurons=[5, 10], coverage=2)
    >>> solution.value.tolist(), float(solution.objective)
    ([1, 0, 0], 3.0)

    Args:
        seconds: [clients, levels], duration of a round for client n at level k; finite, >= 0, not
            decreasing along levels. Array-like, or a torch tensor on any device.
        neurons: [levels] or [layers, levels], number of neurons of each hidden layer that a
            submodel at level k keeps; integers from 1 to 2^30, not decreasing along levels. The
            last level is the full model.
        coverage: Gamma* >= 1, the minimum number of masks that contain a neuron.

    Returns:
        Level of each client, [clients] int64, with the array type and device of ``seconds``: the
        largest level that the client finishes within the objective, so that coverage which costs no
        time is included. The objective is in seconds. The bound equals it: in less time some client
        cannot finish level 0, or some layer has fewer than Gamma* K_l neurons even if every client
        takes the largest level that it can finish. The problem is infeasible, with no value, if
        ``coverage`` exceeds the number of clients; the message names the layer and the shortfall in
        neurons.
    """
    start = time.perf_counter()
    levels = read_levels(seconds, neurons)
    min_coverage = whole_number("coverage", coverage)
    if min_coverage < 1:
        raise ValueError(
            f"coverage is {min_coverage}: give a whole number >= 1, the minimum number of masks "
            "per neuron."
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
    """Find the largest widths with which every client finishes by a deadline.

    Solves  max_k min_l sum_n w_l(k_n) / K_l  over levels k_n with seconds[n, k_n] <= deadline. The
    objective is the mean coverage of the layer with the lowest mean coverage. Rounded down, it is
    the largest Gamma* that masks can guarantee within the deadline.

    >>> import solvers
    >>> seconds = [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    >>> solvers.widths_by_deadline(seconds, neurons=[5, 10], deadline=4.0).value.tolist()
    [1, 1, 0]

    Args:
        seconds: [clients, levels], as for :func:`fastest_widths`.
        neurons: [levels] or [layers, levels], as for :func:`fastest_widths`.
        deadline: maximum duration of a round in seconds, finite and > 0.

    Returns:
        Level of each client, [clients] int64, with the array type and device of ``seconds``: the
        largest level that the client finishes by the deadline. The objective is the mean coverage
        in masks per neuron. The bound equals it, because the clients' levels are independent of
        each other. If a client misses the deadline even at level 0, there is no value and the
        objective is -inf; the message names the slowest client and the time it needs.
    """
    start = time.perf_counter()
    levels = read_levels(seconds, neurons)
    limit = check_deadline(deadline)
    if levels.begin > limit:
        return _infeasible(-np.inf, "greedy", start, missed(levels.seconds[:, 0], limit))
    value = levels.by(limit)
    kept = levels.neurons[:, value].sum(-1)
    coverage = float((kept / levels.full).min())
    wall = time.perf_counter() - start
    return Solution(like(seconds, value), coverage, coverage, 0.0, Status.OPTIMAL, "greedy", wall)


@overload
def coverage_frontier(seconds: Tensor, neurons: ArrayLike | Tensor) -> Solution[Tensor]: ...
@overload
def coverage_frontier(seconds: ArrayLike, neurons: ArrayLike | Tensor) -> Solution[FloatArray]: ...
def coverage_frontier(seconds: ArrayLike | Tensor, neurons: ArrayLike | Tensor) -> Solution[Any]:
    """Compute the objectives of :func:`fastest_widths` for all Gamma*.

    A single sort of the seconds yields all of them. To get the widths for one of them, pass its
    objective as the deadline to :func:`widths_by_deadline`.

    >>> import solvers
    >>> seconds = [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    >>> solvers.coverage_frontier(seconds, neurons=[5, 10]).value.tolist()
    [3.0, 3.0, 6.0]

    Args:
        seconds: [clients, levels], as for :func:`fastest_widths`.
        neurons: [levels] or [layers, levels], as for :func:`fastest_widths`.

    Returns:
        A batch of problems, one for each Gamma* from 1 to the number of clients; all are feasible.
        The value is the shortest duration of a round in seconds, [clients] float64, with item
        g - 1 for Gamma* = g; objective and bound equal it. Arrays have the type and device of
        ``seconds``.
    """
    start = time.perf_counter()
    levels = read_levels(seconds, neurons)
    begin, later = levels.begin, levels.seconds > levels.begin
    ends = levels.seconds[later]
    order = np.argsort(ends)
    level = np.broadcast_to(np.arange(later.shape[1], dtype=np.int32), later.shape)[later][order]
    times = np.append(begin, ends[order])
    coverages = np.arange(1, len(later) + 1)
    soonest = np.full(len(coverages), begin)
    # Each finished level adds its gain. Levels that finish together share one time, so their order
    # does not matter.
    for gain, kept, full in zip(levels.gains, levels.kept(begin), levels.full, strict=True):
        reached = np.append(kept, gain[level]).cumsum()
        soonest = np.maximum(soonest, times[np.searchsorted(reached, coverages * full)])
    status = np.full(len(coverages), Status.OPTIMAL)
    # Copies, so that changing one in place does not change the others.
    value, objective, bound = (like(seconds, soonest.copy()) for _ in range(3))
    gap = like(seconds, np.zeros(len(coverages)))
    wall = time.perf_counter() - start
    return Solution(value, objective, bound, gap, status, "sort", wall)


def _soonest(levels: WidthLevels, coverage: int) -> float:
    """Minimum time in which all layers reach ``coverage``, from 1 to the number of clients.

    The result is an entry of ``levels.seconds``. Repeated median selection halves the candidates,
    which costs less than sorting all of them for a bisection.
    """
    minimum = coverage * levels.full
    begin = levels.begin
    if (levels.kept(begin) >= minimum).all():
        return begin
    ends = levels.seconds[levels.seconds > begin]
    while len(ends) > 1:
        middle = (len(ends) - 1) // 2
        ends.partition(middle)
        enough = (levels.kept(ends[middle]) >= minimum).all()
        ends = ends[: middle + 1] if enough else ends[middle + 1 :]
    return float(ends[0])


def _infeasible(objective: float, backend: str, start: float, message: str) -> Solution[Any]:
    wall = time.perf_counter() - start
    return Solution(None, objective, objective, 0.0, Status.INFEASIBLE, backend, wall, message)
