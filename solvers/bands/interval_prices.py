"""Least time with bands that are constant between the moments at which clients become ready.

In units of the cell's band: with b_ik the band of client i in interval k of l_k seconds, s_i bits
per Hz and phi_i(b) = b log2(1 + rho_i / b), the last interval, from t_m to T, is to be shortest
with sum_k l_k phi_i(b_ik) >= s_i and sum_i b_ik <= 1. For any weights mu_i of the clients' bits and
any prices lambda_k of the intervals' bands, an interval is worth at most

    V_k = lambda_k + sum_i max_b (mu_i phi_i(b) - lambda_k b)

per second, so that  T >= t_m + (sum_i mu_i s_i - sum_{k < m} l_k V_k) / V_m.  For T fixed,
sum mu s / sum l V is at most 1 if T is feasible; it is maximised by Newton's method in the
logarithms of weights and prices, where the Hessian of sum l V is the Laplacian of a bipartite graph
(plus a term that vanishes at the maximum). The bands that maximise V_k, scaled to fill the
intervals, leave bits for the last interval, in which the clients end together: an upper bound of T,
from which the next step starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.bands.allocate import soonest
from solvers.bands.least_band import LN2, excess
from solvers.bands.least_time import BandCells

_EPS = float(np.finfo(np.float64).eps)
_GAP = 1e-11
"""Relative gap at which the search ends."""
_MAX_STEPS = 100
_TINY = 1e-12
"""Share of the band from which weights begin where a client has less."""
_MAX_NATS = 700.0
"""Largest ln(1 + SNR), that of bands so small that they do not matter."""


class Block(NamedTuple):
    """Clients that cannot all end before the last of them is ready, in order of readiness.

    Args:
        bits: s [clients] in bits per Hz, > 0.
        first: [clients], the first interval in which each client is ready.
        snr: rho / B [clients], > 0.
        lengths: l [intervals - 1] in seconds; that of the last interval is what is sought.
    """

    bits: FloatArray
    first: IntArray
    snr: FloatArray
    lengths: FloatArray

    @property
    def ready(self) -> BoolArray:
        """Whether each client is ready, [intervals, clients]."""
        ready: BoolArray = self.first <= np.arange(len(self.lengths) + 1)[:, None]
        return ready

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
    weights = -np.log(_marginal(block.snr / np.maximum(plan.bands[-1], _TINY)))
    marginal = _marginal(block.snr / np.maximum(plan.bands, _TINY))
    prices = np.log((plan.bands * np.exp(weights) * marginal).sum(-1))
    bound = -np.inf
    state = IntervalPrices(block, prices, weights, plan.last)
    for _ in range(_MAX_STEPS):
        bound = max(bound, state.bound)
        if plan.last - bound <= _GAP * plan.last:
            break
        trial, free = _fill(block, state.bands)
        if free is not None:
            return _after(block, trial, free)
        if trial.last < plan.last:
            plan = trial
        better = _step(
            block, IntervalPrices(block, state.prices, state.weights, plan.last), plan.last
        )
        if better is None:
            break
        state = better
    return plan, min(max(bound, state.bound), plan.last)


def _after(block: Block, plan: IntervalPlan, free: int) -> tuple[IntervalPlan, float]:
    """As ``shortest``, where ``plan`` delivers the bits of some clients up to interval ``free``."""
    rest, bound = shortest(block.after(free))
    bands = np.zeros_like(plan.bands)
    early = block.first <= free
    bands[: free + 1, early] = plan.bands[: free + 1, early]
    bands[free + 1 :, ~early] = rest.bands
    return IntervalPlan(bands, rest.last), bound


class IntervalPrices:
    """What prices and weights, as logarithms, say about a block that has ``last`` seconds."""

    def __init__(self, block: Block, prices: FloatArray, weights: FloatArray, last: float) -> None:
        self.prices, self.weights = prices, weights
        price, weight = np.exp(prices), np.exp(weights)
        seconds = np.append(block.lengths, last)
        z = LN2 * np.exp(prices[:, None] - weights)
        log_snr = np.minimum(nats(z), _MAX_NATS)  # ln(1 + SNR) within the bands
        bands = np.where(block.ready, block.snr / np.expm1(log_snr), 0.0)
        rates = bands * log_snr / LN2
        worth = price + (weight * rates).sum(-1) - price * bands.sum(-1)  # V
        bits = weight @ block.bits
        early = block.lengths @ worth[:-1]
        rounding = len(z) * _EPS * (bits + early)
        self.bands = bands
        self.bound = float((bits - early - rounding) / worth[-1])
        total = seconds @ worth
        self.merit = float(np.log(bits / total))
        # Gradient of the merit, and minus its Hessian (edges of the graph), both times ``total``.
        self.by_weight = weight * (block.bits * total / bits - seconds @ rates)
        self.by_price = seconds * price * (bands.sum(-1) - 1)
        self.edges = (seconds * price)[:, None] * bands * z / np.expm1(-log_snr) ** 2
        self.total = float(total)


def _step(block: Block, state: IntervalPrices, last: float) -> IntervalPrices | None:
    """Newton's step, shortened until the merit grows; None if it does not."""
    # Plus the gradient's absolute values: they limit steps in logarithms to about 1, keep the
    # matrix regular where a weight tends to 0, and vanish at the maximum.
    diagonal = state.edges.sum(-1) + np.abs(state.by_price)
    through = state.edges / diagonal[:, None]
    matrix = np.diag(state.edges.sum(0) + np.abs(state.by_weight)) - through.T @ state.edges
    right = state.by_weight + through.T @ state.by_price
    scale = 1 / np.sqrt(matrix.diagonal() + 1e-300)
    try:
        solved = np.linalg.lstsq(matrix * scale * scale[:, None], right * scale, rcond=1e-14)[0]
    except np.linalg.LinAlgError:  # the plan and the bound known so far remain
        return None
    weights = solved * scale
    prices = state.by_price / diagonal + through @ weights
    slope = (weights @ state.by_weight + prices @ state.by_price) / state.total
    if slope < 4 * _EPS:
        return None
    length = 1.0
    for _ in range(40):
        trial = IntervalPrices(
            block, state.prices + length * prices, state.weights + length * weights, last
        )
        if state.merit + 1e-4 * length * slope <= trial.merit < np.inf:
            return trial
        length /= 2
    return None


def _constant(block: Block) -> FloatArray:
    """Shares [intervals, clients] in the ratio of the best bands that are constant in time."""
    begin = np.append(0.0, np.cumsum(block.lengths))[block.first]
    cell = BandCells(block.bits[None], begin[None], block.snr[None], np.ones(1))
    return np.where(block.ready, soonest(cell)[0], 0.0)


def _fill(block: Block, bands: FloatArray) -> tuple[IntervalPlan, int | None]:
    """Bands in given ratios that fill all intervals but the last, and the best in the last.

    Returns:
        The plan; and the last interval, if any, by which all clients that are ready have delivered
        their bits. The plan is then complete for these clients only.
    """
    bands = bands / bands.sum(-1, keepdims=True)
    early = bands[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(early > 0, early * np.log1p(block.snr / early) / LN2, 0.0)
    sent = np.cumsum(block.lengths[:, None] * rates, axis=0)
    done = np.flatnonzero(((sent >= block.bits) | ~block.ready[:-1]).all(-1))
    if done.size:
        return IntervalPlan(bands, np.inf), int(done[-1])
    left = np.maximum(block.bits - (sent[-1] if len(sent) else 0.0), 0.0)
    cell = BandCells(left[None], np.zeros((1, len(left))), block.snr[None], np.ones(1))
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
    for _ in range(4):
        w = np.where(small, w, w - (w + np.expm1(-w) - z) / -np.expm1(-w))
    return w
