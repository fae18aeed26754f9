"""Bands, windows, powers and CPU frequencies of a round, chosen for the least energy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from channels.loads import Load
from channels.network import ChannelDraw
from channels.plausible import noted
from solvers.bands.least_time import least_time
from solvers.energy.energy_problem import EnergyProblem, read_problem
from solvers.energy.least_energy import least_energy
from solvers.load_rows import takes_load
from solvers.outcome import Outcome
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor

Array = TypeVar("Array")


class EnergyAllocation(NamedTuple, Generic[Array]):
    """What each client does in a round.

    >>> import solvers
    >>> plan = solvers.allocate_energy(
    ...     [1e6, 1e6],
    ...     [1e8, 1e8],
    ...     [1e8, 1e7],
    ...     1e6,
    ...     max_power_watts=0.1,
    ...     max_cpu_hz=1e9,
    ...     kappa=1e-28,
    ...     deadline_seconds=2.0,
    ... ).value
    >>> bool(plan.bandwidth_hz[0] < plan.bandwidth_hz[1])  # the weak client gets more of the band
    True

    Args:
        bandwidth_hz: [..., clients].
        upload_seconds: [..., clients].
        power_watts: transmit power, [..., clients].
        cpu_hz: [..., clients].
        seconds: end of the round, [...].
    """

    bandwidth_hz: Array
    upload_seconds: Array
    power_watts: Array
    cpu_hz: Array
    seconds: Array


@overload
def allocate_energy(
    bits: Tensor,
    cycles: ArrayLike | Tensor,
    gain_per_noise: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
    *,
    max_power_watts: ArrayLike | Tensor,
    max_cpu_hz: ArrayLike | Tensor,
    kappa: ArrayLike | Tensor,
    deadline_seconds: ArrayLike | Tensor | None = None,
    weights: tuple[ArrayLike | Tensor, ArrayLike | Tensor] | None = None,
) -> Solution[EnergyAllocation[Tensor]]: ...
@overload
def allocate_energy(
    bits: ArrayLike,
    cycles: ArrayLike | Tensor,
    gain_per_noise: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
    *,
    max_power_watts: ArrayLike | Tensor,
    max_cpu_hz: ArrayLike | Tensor,
    kappa: ArrayLike | Tensor,
    deadline_seconds: ArrayLike | Tensor | None = None,
    weights: tuple[ArrayLike | Tensor, ArrayLike | Tensor] | None = None,
) -> Solution[EnergyAllocation[FloatArray]]: ...
@overload
def allocate_energy(
    bits: Load,
    cycles: ChannelDraw,
    /,
    *,
    deadline_seconds: ArrayLike | None = None,
    weights: tuple[ArrayLike, ArrayLike] | None = None,
) -> Solution[EnergyAllocation[FloatArray]]: ...
@noted
@takes_load
def allocate_energy(
    bits: ArrayLike | Tensor,
    cycles: ArrayLike | Tensor,
    gain_per_noise: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
    *,
    max_power_watts: ArrayLike | Tensor,
    max_cpu_hz: ArrayLike | Tensor,
    kappa: ArrayLike | Tensor,
    deadline_seconds: ArrayLike | Tensor | None = None,
    weights: tuple[ArrayLike | Tensor, ArrayLike | Tensor] | None = None,
) -> Solution[Any]:
    """Find the bands, windows, powers and CPU frequencies that spend the least energy in a round.

    Each client computes c_i cycles at f_i Hz and then sends s_i bits in t_i seconds within a band
    b_i. Solves

        min  sum_i kappa_i c_i f_i^2 + e_i,  e_i = (u_i / G_i) (2^(s_i / u_i) - 1),  u_i = b_i t_i,
        s.t. c_i / f_i + t_i <= T,  f_i <= F_i,  e_i <= P_i t_i,  sum_i b_i <= B

    within the deadline T, or over T too with the objective w_T T + w_E times the energy. Both are
    jointly convex: e_i is a sum of powers of 1 / (b_i t_i). The solution prices the band, where
    every client has an answer of its own, and finds the price at which the bands sum to B.

    >>> import solvers
    >>> plan = solvers.allocate_energy(
    ...     [1e6, 1e6],
    ...     [1e8, 1e8],
    ...     [1e8, 1e7],
    ...     1e6,
    ...     max_power_watts=0.1,
    ...     max_cpu_hz=1e9,
    ...     kappa=1e-28,
    ...     deadline_seconds=2.0,
    ... )
    >>> bool((plan.value.seconds <= 2.0 + 1e-6).all())
    True

    A :class:`channels.Load` and the :class:`channels.ChannelDraw` of its clients can replace the
    arrays of clients and bands. Every cell is then a problem, with a place for each client of the
    largest cell, in the order of ``Network.by_cell``.

    Args:
        bits: s, size of each upload, >= 0.
        cycles: c, CPU cycles before the upload, >= 0.
        gain_per_noise: G, power gain / noise density in Hz/W. The SNR at p watts within a band b is
            p G / b.
        bandwidth_hz: B > 0, the band of the cell.
        max_power_watts: P, largest transmit power.
        max_cpu_hz: F, highest CPU frequency.
        kappa: energy factor of the CPU: kappa c f^2 joules for c cycles at f Hz.
        deadline_seconds: T > 0, when all uploads must have ended.
        weights: w_T > 0 and w_E >= 0, costs of a second and of a joule, instead of a deadline.

    Arrays [..., clients], and [...] for ``bandwidth_hz``, ``deadline_seconds`` and the weights, are
    broadcast; leading axes are a batch: an array of deadlines gives the front of joules against
    seconds in one call. Array-like, or torch tensors on any device.

    Returns:
        An ``EnergyAllocation`` with the array type and device of ``bits``; the bands sum to B if
        there is anything to send. Powers and frequencies keep their limits; the sum of the bands
        and the ends of the clients keep theirs to rounding errors, which were below a relative
        1e-14 in 60,000 random rounds near their least times. A deadline that falls short of the
        least time by 8 units of rounding or less is moved to it; ``seconds`` is the end. The
        objective is in joules, or in the unit of the weights; the bound follows from weak duality.
        With the gap they are [...] float64, or floats for a single problem. With w_E = 0, the
        energy is the least one within the least time: time first, then energy. A problem is
        infeasible if a client has bits and no channel or power, or cycles and no CPU, or if the
        deadline is shorter than the least time: the value is None (-1 in a batch), the objective
        infinite, and the message names the client or the least time.
    """
    start = time.perf_counter()
    clients = {
        "bits": bits,
        "cycles": cycles,
        "gain_per_noise": gain_per_noise,
        "max_power_watts": max_power_watts,
        "max_cpu_hz": max_cpu_hz,
        "kappa": kappa,
    }
    problem = read_problem(clients, bandwidth_hz, deadline_seconds, weights)
    return solved(problem, bits, start)


def solved(problem: EnergyProblem, model: Any, start: float) -> Solution[Any]:
    """The solution of all problems, with the array type of ``model``; ``start``: when it began."""
    feasible, end = problem.feasible()
    message = "" if feasible.all() else problem.explain(feasible)
    outcome = _outcome(problem.rows(feasible), end[feasible])
    return outcome.solution(
        feasible, problem.shape, model, backend="dual", start=start, message=message
    )


def _outcome(problem: EnergyProblem, end: FloatArray) -> Outcome:
    """Allocations of problems that have answers."""
    seconds, joules = problem.weights
    fixed = ~np.isnan(end) | (joules == 0)
    soonest = np.flatnonzero(joules == 0)
    earliest = np.zeros(len(end))
    if soonest.size:
        end = end.copy()
        earliest[soonest], end[soonest] = least_time(problem.cells(soonest))
    plan = least_energy(problem, end)
    objective = seconds * plan.end + joules * plan.energy
    bound = np.where(fixed, seconds * earliest, 0.0) + joules * plan.bound
    value = EnergyAllocation(*plan[:4], plan.end)
    return Outcome(value, objective, np.minimum(bound, objective))
