"""The least energy of rounds: a start, the clearing price, a feasible point and a lower bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.bands.allocate import soonest
from solvers.bands.least_band import LN2, least_band, upload_seconds
from solvers.bands.least_time import least_time
from solvers.energy.band_price import PricedRounds, State, clear
from solvers.energy.clients import Clients, dual, growth
from solvers.energy.energy_problem import EnergyProblem
from solvers.energy.uploads import ROUNDING, uploads

_BLOCK = 1 << 14
"""Clients that are solved together, so that temporary arrays stay in the cache."""
_LATE = 1e-13
"""Relative excess of an end or of a sum of bands that rounding errors explain."""


class EnergyPlan(NamedTuple):
    """Feasible points and lower bounds.

    Args:
        band, window, power, frequency: [problems, clients].
        end: T in seconds, [problems].
        energy: joules, [problems].
        bound: on the energy, or on (w_T / w_E) T + energy where the end is weighed, [problems].
        slope: for other deadlines, the energy is at least bound + slope x (deadline - end),
            [problems]; 0 where the end is weighed, and -inf where duality gives no bound. The bound
            is then that of clients alone in the whole band, and holds for this deadline only.
        by_cycles: for x times the cycles, the energy is at least bound + by_cycles x (x - 1), also
            in combination with other deadlines, [problems]; known where ``slope`` is.
    """

    band: FloatArray
    window: FloatArray
    power: FloatArray
    frequency: FloatArray
    end: FloatArray
    energy: FloatArray
    bound: FloatArray
    slope: FloatArray
    by_cycles: FloatArray


def no_plan(problem: EnergyProblem) -> EnergyPlan:
    """A plan of zeros, to be filled."""
    shape = problem.bits.shape
    return EnergyPlan(*(np.zeros(shape) for _ in range(4)), *np.zeros((5, shape[0])))


def least_energy(problem: EnergyProblem, end: FloatArray) -> EnergyPlan:
    """Solve problems that have answers.

    Args:
        problem: the arguments.
        end: feasible deadlines, [problems]; NaN where the end is weighed.
    """
    plan = no_plan(problem)
    rows = max(_BLOCK // problem.bits.shape[1], 1)
    for first in range(0, len(end), rows):
        part = slice(first, first + rows)
        for whole, some in zip(plan, _least_energy(problem.rows(part), end[part]), strict=True):
            whole[part] = some
    return plan


@np.errstate(all="ignore")
def _least_energy(problem: EnergyProblem, end: FloatArray) -> EnergyPlan:
    """As ``least_energy``, all problems together.

    Numbers out of range raise no warnings: an energy that is not finite is reported as unknown.
    """
    seconds, joules = problem.weights
    free = np.isnan(end)
    second = np.divide(seconds, joules, out=np.full(len(end), np.nan), where=free)
    sends = problem.bits > 0
    idle = np.where(sends, 0.0, problem.kappa * problem.cycles**3).sum(-1)
    floor = np.where(sends, 0.0, problem.ready).max(-1)
    plan = no_plan(problem)
    late = np.zeros(len(end), dtype=np.bool_)
    alone = np.maximum(np.cbrt(2 * idle / second), floor)  # the end of those who do not send
    plan.end[:] = np.where(free, alone, end)
    at = np.flatnonzero(sends.any(-1))
    if at.size:
        clients = _clients(problem, sends, at)
        state, rounds = _cleared(
            clients, problem.band[at], end[at], second[at], idle[at], floor[at]
        )
        for whole, some in zip(plan[:4], uploads(rounds, state), strict=True):
            whole[at] = np.where(sends[at], some, 0.0)
        last = (clients.busy(plan.frequency[at]) + plan.window[at]).max(-1)
        plan.end[at] = np.where(free[at], np.maximum(state.end, last), end[at])
        late[at] = last > plan.end[at] * (1 + _LATE)
    slow = np.minimum(problem.cycles / plan.end[:, None], problem.speed)
    plan.slope[:] = np.where(free | (idle == 0), 0.0, -2 * idle * plan.end**-3.0)
    plan.by_cycles[:] = np.where(idle == 0, 0.0, 3 * idle * plan.end**-2.0)
    plan.frequency[:] = np.where(sends, plan.frequency, np.where(problem.cycles > 0, slow, 0.0))
    plan.energy[:] = (plan.power * plan.window).sum(-1)
    plan.energy[:] += (problem.kappa * problem.cycles * plan.frequency**2).sum(-1)
    plan.bound[:] = plan.energy + np.where(free, second * plan.end, 0.0)
    if at.size:
        for whole, some in zip(
            plan[6:], _bound(rounds, state, plan.energy[at], plan.end[at]), strict=True
        ):
            whole[at] = some
    failed = late | ~np.isfinite(plan.energy + plan.end)
    lost = np.flatnonzero(np.isinf(plan.slope) & ~free | failed)
    earliest, last = np.zeros(len(lost)), end[lost]
    early = np.flatnonzero(free[lost])
    if early.size:
        earliest[early], last[early] = least_time(problem.cells(lost[early]))
    full = _at_full_power(problem.rows(lost), last)
    worse = late[lost] | ~(plan.energy[lost] <= full[-1])
    for whole, some in zip(plan, full, strict=False):
        whole[lost[worse]] = some[worse]
    plan.bound[lost[early]] = second[lost[early]] * earliest[early]
    return plan


def _at_full_power(problem: EnergyProblem, end: FloatArray) -> tuple[FloatArray, ...]:
    """Feasible points and their energies where rounding errors spoil those from the price.

    That occurs at or near the least time if bands are so wide that rates hardly depend on them.
    """
    snr = problem.power * problem.gain
    last = end[:, None] - problem.ready
    least = np.where(problem.bits > 0, least_band(problem.bits, last, snr)[0], 0.0)
    total = least.sum(-1)
    band = least * (problem.band / total)[:, None]
    # Near T*, windows that are rounding errors of T leave too little of the band for others.
    short = np.flatnonzero(~(total <= problem.band * (1 + _LATE)))
    if short.size:
        band[short] = soonest(problem.cells(short))[0]
    window = upload_seconds(problem.bits, band, snr)  # ``last`` to rounding errors of T
    window = np.where(problem.bits > 0, window, 0.0)
    power = np.where(problem.bits > 0, problem.power, 0.0)
    frequency = np.where(problem.cycles > 0, problem.speed, 0.0)
    energy = (power * window + problem.kappa * problem.cycles * frequency**2).sum(-1)
    return band, window, power, frequency, end, energy


def _clients(problem: EnergyProblem, sends: BoolArray, at: IntArray) -> Clients:
    """Those that send; in the place of others, one that sends and does not count."""
    sends = sends[at]
    one = sends.argmax(-1)[:, None]

    def filled(array: FloatArray) -> FloatArray:
        return np.where(sends, array[at], np.take_along_axis(array[at], one, -1))

    cycles = np.where(sends, problem.cycles[at], 0.0)
    return Clients(
        nats=filled(problem.bits) * LN2,
        cycles=cycles,
        gain=filled(problem.gain),
        power=filled(problem.power),
        speed=np.where(cycles > 0, problem.speed[at], 1.0),
        kappa=np.where(cycles > 0, problem.kappa[at], 0.0),
        weight=sends.astype(float),
    )


def _cleared(
    clients: Clients,
    band: FloatArray,
    end: FloatArray,
    second: FloatArray,
    idle: FloatArray,
    floor: FloatArray,
) -> tuple[State, PricedRounds]:
    """Solve from a start: bands in the ratio of the least, or equal ones where the end is free."""
    ready = clients.cycles / clients.speed
    snr = clients.power * clients.gain
    free = np.isnan(end)
    equal = band[:, None] / clients.weight.sum(-1)[:, None]
    if free.any():
        alone = ready + upload_seconds(clients.nats / LN2, np.broadcast_to(equal, ready.shape), snr)
        end = np.where(free, np.maximum(alone.max(-1), floor), end)
    last = end[:, None] - ready
    # Uploads shorter than the rounding of T have no start.
    least, slope = least_band(clients.nats / LN2, last, snr)
    x = clients.nats / (least * last)
    most = np.expm1(x)  # SNR at full power in the least band
    meet = growth(x, most) * last / clients.gain  # price at which that is the best band
    busy = 2 * clients.kappa * clients.speed**3 * (clients.cycles > 0)
    full = (clients.power + busy) / -slope
    top = np.where(free, np.inf, np.log(np.maximum(full, meet).max(-1)))
    share = least * (band / (least * clients.weight).sum(-1))[:, None]
    share = np.where(free[:, None], equal, share)
    x = clients.nats / (share * last)
    ratio = np.expm1(x)
    d = growth(x, ratio)
    price = _price(share, least, d * last / clients.gain, d / (x * ratio), clients.weight)
    price = np.minimum(price, top)
    limited = np.exp(price)[:, None] > meet
    y = np.log(np.where(limited, most, ratio))
    first = (ready + clients.nats / snr).max(-1)
    rounds = PricedRounds(clients, band, end, second, idle, first, floor, top)
    return clear(rounds, price, y, limited), rounds


def _price(
    share: FloatArray,
    least: FloatArray,
    marginal: FloatArray,
    power: FloatArray,
    weight: FloatArray,
) -> FloatArray:
    """Start of ln lambda: bands follow powers of the price from ``share`` down to ``least``."""
    log_price = np.log(marginal)
    counted = share * weight
    total = counted.sum(-1)
    price = (log_price * counted).sum(-1) / total
    for _ in range(3):
        bands = share * np.exp(power * (log_price - price[:, None]))
        moving = np.where(bands > least, bands, 0.0) * weight
        excess = np.log((np.maximum(bands, least) * weight).sum(-1) / total)
        slope = (moving * power).sum(-1) / total
        price = price + np.clip(excess / np.maximum(slope, 0.05), -2.0, 2.0)
    return np.asarray(price)


def _bound(
    rounds: PricedRounds, state: State, energy: FloatArray, end: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A lower bound by weak duality; over all ends that can be best, if free.

    Returns:
        The bound, and its derivatives with respect to the end and to ln(cycles).
    """
    price = np.exp(state.price)
    cost, slope, by_cycles = dual(rounds.clients, price, state.end, state.replies)
    bound = cost - price * rounds.band + rounds.idle * state.end**-2.0
    slope = slope - 2 * rounds.idle * state.end**-3.0
    by_cycles = by_cycles + 3 * rounds.idle * state.end**-2.0
    best = energy
    if not np.isnan(rounds.second).all():
        # Linear in T, with what is left of w_T / w_E as slope: least at one of the ends.
        left = rounds.second + slope
        first = np.maximum(rounds.first, rounds.floor)
        latest = end + energy / rounds.second  # later, the time alone costs more
        linear = rounds.second * state.end + left * (np.where(left > 0, first, latest) - state.end)
        free = ~np.isnan(rounds.second)
        bound += np.where(free, linear, 0.0)
        slope = np.where(free, 0.0, slope)
        best = energy + np.where(free, rounds.second * end, 0.0)
    # Rounding errors of the band, dear next to T*, may lift the bound above the energy. By more
    # than that, the solve has failed, and the bound of clients alone is what remains.
    slack = 1e-9 * best + 1e-12 * price * rounds.band
    good = bound <= best + slack
    if not good.all():
        bound = np.where(good, bound, _alone(rounds, energy, end))
    return np.fmin(bound, best), np.where(good, slope, -np.inf), by_cycles


def _alone(rounds: PricedRounds, energy: FloatArray, end: FloatArray) -> FloatArray:
    """A lower bound [problems] without prices: each client sends alone in the whole band.

    Then no upload begins before c / F or takes less than its time at full power, so that the
    largest window and the lowest frequency bound the energies of upload and computation.
    """
    clients, free = rounds.clients, ~np.isnan(rounds.second)
    second = np.where(free, rounds.second, 0.0)
    sooner = np.where(free, second * np.maximum(rounds.first, rounds.floor), 0.0)
    latest = np.where(free, end + energy / rounds.second, end)  # later, time costs more
    last = (latest * (1 + ROUNDING))[:, None]
    band = np.broadcast_to(rounds.band[:, None], clients.nats.shape)
    product = band * (last - clients.cycles / clients.speed)
    sent = product * np.expm1(clients.nats / product) / clients.gain
    shortest = upload_seconds(clients.nats / LN2, band, clients.power * clients.gain)
    rest = np.maximum(last - shortest, clients.cycles / clients.speed)
    slowest = np.divide(clients.cycles, rest, np.zeros(rest.shape), where=clients.cycles > 0)
    computed = clients.kappa * clients.cycles * slowest**2
    idle = rounds.idle / latest**2
    return np.asarray(sooner + ((sent + computed) * clients.weight).sum(-1) + idle)
