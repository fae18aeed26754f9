"""Least time with bands that are constant between the moments at which clients become ready.

In units of the cell's band: with b_ik the band of client i in interval k of l_k seconds, s_i bits
per Hz and phi_i(b) = b log2(1 + rho_i / b), the last interval, from t_m to T, is to be shortest
with sum_k l_k phi_i(b_ik) >= s_i and sum_i b_ik <= 1. For any weights mu_i of the clients' bits and
any prices lambda_k of the intervals' bands, an interval is worth at most

    V_k = lambda_k + sum_i max_b (mu_i phi_i(b) - lambda_k b)

per second, so that  T >= t_m + (sum_i mu_i s_i - sum_{k < m} l_k V_k) / V_m.  For T fixed,
sum mu s / sum l V is at most 1 if T is feasible; it is maximised by Newton's method in the
logarithms of weights and prices, where the Hessian of sum l V is the Laplacian of a bipartite graph
(plus a term that vanishes at the maximum). Each step is for the T of the best bound. Prices and
weights begin as those of a problem with fewer, longer intervals, in part of which a client may be
ready: then few steps have a system of all intervals. The bands that maximise V_k, scaled to fill
the intervals, leave bits for the last interval, in which the clients end together: an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray
from solvers.bands.allocate import soonest
from solvers.bands.least_band import LN2, excess
from solvers.bands.least_time import BandCells

_EPS = float(np.finfo(np.float64).eps)
_GAP = 1e-11
"""Relative gap at which the search ends."""
_CLOSE = 1e-5
"""Growth of the bound in a step after which the bands are evaluated."""
_COARSE = 1e-4
"""Growth of the bound in a step after which prices of longer intervals are a good start."""
_FEW, _KEPT, _MERGED = 24, 16, 4
"""Intervals that need no such start; first ones that stay, and later ones that are merged."""
_CLEARING_STEPS, _CLEARED = 8, 0.03
"""Newton steps for prices that fill an interval, and the last one's size."""
_PAIRS = 1 << 14
"""Clients x intervals that are evaluated together, so that temporary arrays stay in the cache."""
_RIDGE = 1e-13
"""Added to the scaled matrix, which is singular at the maximum: prices have no unit."""
_MAX_STEPS = 100
_TINY = 1e-12
"""Share of the band from which weights begin where a client has less."""
_MAX_NATS = 700.0
"""Largest ln(1 + SNR), that of bands so small that they do not matter."""


class Block(NamedTuple):
    """Clients that cannot all end before the last of them is ready, in order of readiness.

    Args:
        bits: s [clients] in bits per Hz, > 0.
        first: [clients], the first interval in which each client is ready, in increasing order. A
            client with k + 1/4 is ready for the last three quarters of interval k.
        snr: rho / B [clients], > 0.
        lengths: l [intervals - 1] in seconds; that of the last interval is what is sought.
    """

    bits: FloatArray
    first: FloatArray
    snr: FloatArray
    lengths: FloatArray

    def parts(self) -> Iterator[tuple[slice, slice]]:
        """Intervals that are evaluated together, and the clients that are ready in some of them."""
        count = len(self.lengths) + 1
        rows = max(_PAIRS // len(self.bits), 1)
        for begin in range(0, count, rows):
            end = min(begin + rows, count)
            yield slice(begin, end), slice(int(np.searchsorted(self.first, end)))

    def ready(self, part: slice, some: slice) -> FloatArray:
        """For which fraction of each interval each client is ready, [intervals, clients]."""
        after = np.arange(part.start + 1, part.stop + 1)[:, None]
        fraction: FloatArray = np.clip(after - self.first[some], 0.0, 1.0)
        return fraction

    def after(self, interval: int) -> Block:
        """Without the clients that are ready in ``interval`` and the intervals up to it."""
        keep = self.first > interval
        first = self.first[keep] - interval - 1
        return Block(self.bits[keep], first, self.snr[keep], self.lengths[interval + 1 :])


class IntervalPlan(NamedTuple):
    """Bands that deliver all bits.

    Args:
        bands: [intervals, clients], shares of the cell's band.
        last: seconds that the last interval takes.
    """

    bands: FloatArray
    last: float


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # such prices have no merit
def shortest(block: Block) -> tuple[IntervalPlan, float]:
    """The bands that end soonest, and a lower bound on the last interval's seconds."""
    plan, free = _fill(block, _constant(block))
    if free is not None:
        return _after(block, plan, free)
    bound = -np.inf
    for state, growth in _ascent(block, _start(block, plan), plan.last):
        bound = max(bound, state.bound)
        if growth > _CLOSE and not state.free:
            continue
        trial, free = _fill(block, state.bands)
        if free is not None:
            return _after(block, trial, free)
        better = trial.last < plan.last
        if better:
            plan = trial
        if plan.last - bound <= _GAP * plan.last or (abs(growth) <= 4 * _EPS and not better):
            break
    return plan, min(bound, plan.last)


def _start(block: Block, plan: IntervalPlan) -> IntervalPrices:
    """Prices and weights of fewer, longer intervals; for few intervals, those of the plan.

    Clients are ready for a fraction of a long interval.
    """
    ends = np.append(0.0, np.cumsum(block.lengths))
    if len(ends) <= _FEW:
        weights = -np.log(_marginal(block.snr / np.maximum(plan.bands[-1], _TINY)))
        marginal = _marginal(block.snr / np.maximum(plan.bands, _TINY))
        prices = np.log((plan.bands * np.exp(weights) * marginal).sum(-1))
        return IntervalPrices(block, prices, weights)
    few = np.concatenate([ends[:_KEPT], ends[_KEPT:-1:_MERGED], ends[-1:]])
    begin = np.interp(block.first, np.arange(len(ends)), ends)
    coarse = block._replace(first=np.interp(begin, few, np.arange(len(few))), lengths=np.diff(few))
    at, _ = _fill(coarse, _constant(coarse))
    for best, growth in _ascent(coarse, _start(coarse, at), plan.last):
        state = best
        if growth <= _COARSE:
            break
    middle, middles = ((e[1:] + e[:-1]) / 2 for e in (ends, few))
    prices = np.append(np.interp(middle, middles, state.prices[:-1]), state.prices[-1])
    return IntervalPrices(block, _clearing(block, prices, state.weights), state.weights)


def _after(block: Block, plan: IntervalPlan, free: int) -> tuple[IntervalPlan, float]:
    """As ``shortest``, where ``plan`` delivers the bits of some clients up to interval ``free``."""
    rest, bound = shortest(block.after(free))
    bands = np.zeros_like(plan.bands)
    early = block.first <= free
    bands[: free + 1, early] = plan.bands[: free + 1, early]
    bands[free + 1 :, ~early] = rest.bands
    return IntervalPlan(bands, rest.last), bound


class IntervalPrices:
    """What prices and weights, as logarithms, say about a block."""

    def __init__(self, block: Block, prices: FloatArray, weights: FloatArray) -> None:
        self.prices, self.weights = prices, weights
        self.price, self.weight = np.exp(prices), np.exp(weights)
        shape = len(prices), len(weights)
        self.bands, self.edges = np.zeros(shape), np.zeros(shape)
        self.worth, self.demand = np.empty((2, len(prices)))
        self.early, self.late, fill = np.zeros((3, len(weights)))
        for part, some in block.parts():
            bands, nat, edges = _demand(block, part, some, prices, weights)
            rates = bands * nat / LN2
            total = bands.sum(-1)
            self.bands[part, some], self.demand[part] = bands, total
            self.edges[part, some] = self.price[part, None] * edges
            self.worth[part] = self.price[part] * (1 - total) + rates @ self.weight[some]  # V
            lengths = block.lengths[part]
            early = rates[: len(lengths)]
            self.early[some] += lengths @ early
            fill[some] += (lengths / np.maximum(total[: len(lengths)], 1.0)) @ early
        self.late[some] = rates[-1]
        self.bits = float(self.weight @ block.bits)
        early_worth = block.lengths @ self.worth[:-1]
        rounding = len(prices) * _EPS * (self.bits + early_worth)
        self.bound = float((self.bits - early_worth - rounding) / self.worth[-1])
        self.free = bool(fill[0] >= block.bits[0])
        """Whether the first client ends before the last interval if bands are scaled to fit."""

    def merit(self, block: Block, last: float) -> float:
        """ln(sum mu s / sum l V) if the last interval has ``last`` seconds."""
        return float(np.log(self.bits / (np.append(block.lengths, last) @ self.worth)))


def _ascent(
    block: Block, state: IntervalPrices, last: float
) -> Iterator[tuple[IntervalPrices, float]]:
    """Prices of better bounds, and by what fraction the bound has grown; at first ``state``.

    A step maximises the merit for a last interval as long as the best bound, at which the merit is
    0: so the bound grows. Where it is not above 0 yet, the interval starts from ``last`` and
    shortens.
    """
    growth, bound = np.inf, state.bound
    for _ in range(_MAX_STEPS):
        yield state, growth
        last = bound if bound > 0 else last / 4
        better = _step(block, state, last)
        if better is None:
            yield state, 0.0
            return
        growth = (better.bound - bound) / abs(bound)
        state, bound = better, max(bound, better.bound)
    yield state, growth


def _step(block: Block, state: IntervalPrices, last: float) -> IntervalPrices | None:
    """Newton's step, shortened until the merit grows; None if it does not."""
    seconds = np.append(block.lengths, last)
    total = float(seconds @ state.worth)
    # Gradient of the merit, and minus its Hessian (edges of the graph), both times ``total``.
    rates = state.early + last * state.late
    by_weight = state.weight * (block.bits * total / state.bits - rates)
    by_price = seconds * state.price * (state.demand - 1)
    edges = state.edges * seconds[:, None]
    # Plus the gradient's absolute values: they limit steps in logarithms to about 1, keep the
    # matrix regular where a weight tends to 0, and vanish at the maximum.
    diagonal = edges.sum(0) + np.abs(by_weight) + 1e-300
    through = edges / np.sqrt(diagonal)
    matrix = -(through @ through.T)
    entries = matrix.reshape(-1)[:: len(matrix) + 1]
    entries += edges.sum(-1) + np.abs(by_price)
    scale = 1 / np.sqrt(entries + 1e-300)
    matrix *= scale * scale[:, None]
    entries[:] = 1 + _RIDGE
    right = scale * (by_price + edges @ (by_weight / diagonal))
    try:
        prices = scale * np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:  # the plan and the bound known so far remain
        return None
    weights = (by_weight + prices @ edges) / diagonal
    slope = (weights @ by_weight + prices @ by_price) / total
    if not slope > _EPS**2:
        return None
    least = state.merit(block, last) - 16 * _EPS
    length = 1.0
    for _ in range(40):
        trial = IntervalPrices(
            block, state.prices + length * prices, state.weights + length * weights
        )
        if least + 1e-4 * length * slope <= trial.merit(block, last) < np.inf:
            return trial
        length /= 2
    return None


def _clearing(block: Block, prices: FloatArray, weights: FloatArray) -> FloatArray:
    """Prices near ``prices`` at which the bands nearly fill each interval."""
    prices = prices.copy()
    for part, some in block.parts():
        for _ in range(_CLEARING_STEPS):
            bands, _, edges = _demand(block, part, some, prices, weights)
            total = bands.sum(-1)
            change = np.log(total) * total / edges.sum(-1)
            prices[part] += change
            if not (np.abs(change) > _CLEARED).any():
                break
    return prices


def _demand(
    block: Block, part: slice, some: slice, prices: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bands that maximise V, ln(1 + SNR) in them, and minus the bands' derivatives.

    The derivatives are by the logarithms of the intervals' prices.
    """
    z = LN2 * np.exp(prices[part, None] - weights[some])
    nat = np.minimum(nats(z), _MAX_NATS)
    less = -np.expm1(-nat)
    bands = block.ready(part, some) * block.snr[some] * np.exp(-nat) / less
    return bands, nat, bands * z / less**2


def _constant(block: Block) -> FloatArray:
    """Shares [clients] of the best bands that are constant in time."""
    ends = np.append(0.0, np.cumsum(block.lengths))
    begin = np.interp(block.first, np.arange(len(ends)), ends)
    cell = BandCells(block.bits[None], begin[None], block.snr[None], np.ones(1))
    return np.asarray(soonest(cell)[0][0])


def _fill(block: Block, ratios: FloatArray) -> tuple[IntervalPlan, int | None]:
    """Bands in given ratios that fill all intervals but the last, and the best in the last.

    Args:
        block: the clients.
        ratios: of bands, [intervals, clients] or [clients].

    Returns:
        The plan; and the last interval, if any, by which all clients that are ready have delivered
        their bits. The plan is then complete for these clients only.
    """
    count, clients = len(block.lengths) + 1, len(block.bits)
    ratios = np.broadcast_to(ratios, (count, clients))
    bands, sent = np.zeros((count, clients)), np.zeros(clients)
    free = None
    for part, some in block.parts():
        ready = block.ready(part, some)
        shares = ready * ratios[part, some]
        shares /= shares.sum(-1, keepdims=True)
        bands[part, some] = shares
        early = block.lengths[part]
        shares, ready = shares[: len(early)], ready[: len(early)]
        rates = np.where(shares > 0, shares * np.log1p(block.snr[some] * ready / shares), 0.0)
        total = sent[some] + np.cumsum(early[:, None] * rates / LN2, axis=0)
        done = np.flatnonzero(((total >= block.bits[some]) | (ready == 0)).all(-1))
        if done.size:
            free = part.start + int(done[-1])
        if len(total):
            sent[some] = total[-1]
    if free is not None:
        return IntervalPlan(bands, np.inf), free
    left = np.maximum(block.bits - sent, 0.0)
    cell = BandCells(left[None], np.zeros((1, clients)), block.snr[None], np.ones(1))
    share, end, _ = soonest(cell)
    bands[-1] = share[0]
    return IntervalPlan(bands, float(end[0])), None


def _marginal(snr: FloatArray) -> FloatArray:
    """phi'(b) at the SNR within the band."""
    return excess(snr) / LN2


def nats(z: FloatArray) -> FloatArray:
    """The root w > 0 of w - 1 + exp(-w) = z: ln(1 + SNR) in the band where phi' is z / ln 2."""
    root = np.sqrt(2 * z)
    w = np.minimum(root + root**2 / 6 + root**3 / 36, z + 1)
    small = z < 1e-8  # the series is exact, and the equation loses digits
    for _ in range(2):
        less = -np.expm1(-w)
        rest = w - less - z
        w = np.where(small, w, w - 2 * rest * less / (2 * less**2 - rest * (1 - less)))  # Halley
    return w
