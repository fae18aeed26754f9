"""The price of the band, and the end of the round where it is free.

At the price lambda the clients' bands sum to H(lambda), which decreases: the search is for
H(lambda) = B. ln H against ln lambda is smooth but for kinks, where a client reaches a limit, with
slopes from -1/2 (SNRs far below 0 dB, no limits) to 0 (all at full power and speed). Steps are
Newton's, or of a cubic polynomial through two points with their slopes; brackets safeguard them.

Where a second costs w, the round ends where the clients' prices of a second sum to w. That end
T(lambda) increases, H(lambda) at T(lambda) decreases, and the search is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.energy.clients import Clients, Replies, settle

_EPS = float(np.finfo(np.float64).eps)
_CLOSE = 1e-13
"""Relative rest of the band, and of the price of a second."""
_MAX_STEPS = 100
_FARTHEST = 5.0
"""Largest step of ln lambda; bands that hardly depend on it would take it out of range."""
_FAR, _NEAR = 1e-2, 1e-7
"""Last steps of the clients' replies far from the price and near it; their error is the square."""


@dataclass(frozen=True, eq=False)
class PricedRounds:
    """Problems with someone to send in each, one per row.

    Args:
        clients: those that send.
        band: B in Hz, [problems].
        end: T in seconds, [problems]; a start where it is free.
        second: w, joules that a second costs, [problems]; NaN where the end is fixed.
        idle: sum of kappa c^3 over clients without bits: they spend idle / T^2 joules, [problems].
        first: a time before the earliest possible end, [problems].
        floor: earliest end of the clients without bits, [problems].
        top: ln of a price from which on no band changes, [problems]; inf where the end is free.
    """

    clients: Clients
    band: FloatArray
    end: FloatArray
    second: FloatArray
    idle: FloatArray
    first: FloatArray
    floor: FloatArray
    top: FloatArray

    def rows(self, rows: slice | IntArray | BoolArray) -> PricedRounds:
        """Some of the problems."""
        return PricedRounds(
            self.clients.rows(rows), self.band[rows], self.end[rows], self.second[rows],
            self.idle[rows], self.first[rows], self.floor[rows], self.top[rows],
        )  # fmt: skip


@dataclass(eq=False)
class State:
    """A price and an end [problems], with the clients' replies.

    Args:
        price: ln lambda.
        end: T.
        replies: of the clients.
        end_price: derivative of T with respect to ln lambda.
    """

    price: FloatArray
    end: FloatArray
    replies: Replies
    end_price: FloatArray

    def rows(self, rows: IntArray | BoolArray) -> State:
        """Those of some of the problems."""
        return State(
            self.price[rows], self.end[rows], self.replies.rows(rows), self.end_price[rows]
        )

    def put(self, at: IntArray, other: State) -> None:
        """Overwrite some of the problems."""
        for mine, theirs in zip(
            (self.price, self.end, self.end_price, *self.replies),
            (other.price, other.end, other.end_price, *other.replies),
            strict=True,
        ):
            mine[at] = theirs


def clear(rounds: PricedRounds, price: FloatArray, y: FloatArray, limited: BoolArray) -> State:
    """The state at which the bands sum to B, from a start.

    Args:
        rounds: the problems.
        price: ln lambda, [problems].
        y: [problems, clients].
        limited: [problems, clients].
    """
    close = np.full(len(price), _FAR)
    state = cleared = _state(rounds, price, rounds.end, y, limited, close)
    low, high = np.full(len(price), -np.inf), np.full(len(price), np.inf)
    at = np.arange(len(price))
    before = np.full((3, len(price)), np.nan)
    for _ in range(_MAX_STEPS):
        rest, slope = _excess(rounds, state)
        size = np.abs(rest)
        sure = size > 10 * close**2  # else the sign may be wrong
        low = np.where(sure & (rest > 0), np.maximum(low, state.price), low)
        high = np.where(sure & (rest < 0), np.minimum(high, state.price), high)
        now = np.stack((state.price, rest, slope))
        goal = np.minimum(_inside(_root(now, before), low, high, now, sure), rounds.top)
        done = (size <= _CLOSE) | ((goal == state.price) & (close <= _NEAR))
        if cleared is not state:
            cleared.put(at, state)
        # Rounding errors: no further price would be better.
        lost = np.isnan(rest) | (~done & _closed(low, high))
        if lost.any():
            cleared.put(at[lost], _spare(rounds.rows(lost), state.rows(lost), high[lost]))
            done |= lost
        if done.all():
            break
        close = np.clip(size / 10, _NEAR, _FAR)
        if done.any():
            keep = ~done
            at, rounds, state, goal = at[keep], rounds.rows(keep), state.rows(keep), goal[keep]
            low, high, close, now = low[keep], high[keep], close[keep], now[:, keep]
        before = now
        step = goal - state.price
        end = state.end + np.maximum(state.end_price * step, (rounds.first - state.end) / 2)
        end = np.maximum(end, rounds.floor)
        move = state.replies.y_price * step[:, None]
        move += state.replies.y_end * (end - state.end)[:, None]
        y = state.replies.y + np.clip(move, -1.0, 1.0)
        state = _state(rounds, goal, end, y, state.replies.limited, close)
    else:
        cleared.put(at, _spare(rounds, state, high))
    return cleared


def _closed(low: FloatArray, high: FloatArray) -> BoolArray:
    """Whether hardly a number is left in a bracket."""
    return np.isfinite(high) & (high - low <= 4 * _EPS * np.abs(high))


def _spare(rounds: PricedRounds, state: State, high: FloatArray) -> State:
    """Where the search fails: a price that leaves some of the band, for a feasible point."""
    price = np.minimum(high, rounds.top)
    price = np.where(np.isinf(price), state.price, price)
    close = np.full(len(price), _NEAR)
    return _state(rounds, price, state.end, state.replies.y, state.replies.limited, close)


def _root(now: FloatArray, before: FloatArray) -> FloatArray:
    """Where ln(H / B) is 0: from two prices, their rests and slopes, or else from the last one.

    ln lambda as a cubic polynomial of the rest (inverse interpolation), [3, problems] each.
    """
    price, rest, slope = now
    newton = price - rest / slope
    span = before[1] - rest
    mean = (before[0] - price) / span
    share = rest / span
    bend = mean - 1 / slope
    twist = 1 / before[2] - mean - bend
    more = rest * share * (bend - twist * (1 + share))
    modest = np.abs(more) <= np.abs(newton - price)
    return np.asarray(newton + np.where(modest, more, 0.0))


def _excess(rounds: PricedRounds, state: State) -> tuple[FloatArray, FloatArray]:
    """ln(H / B) and its derivative with respect to ln lambda."""
    replies = state.replies
    bands = replies.band * rounds.clients.weight
    total = bands.sum(-1)
    slope = (bands * replies.band_price).sum(-1)
    slope += (bands * replies.band_end).sum(-1) * state.end_price
    return np.log(total / rounds.band), slope / total


def _inside(
    goal: FloatArray, low: FloatArray, high: FloatArray, now: FloatArray, sure: BoolArray
) -> FloatArray:
    """The goal where it is within the bracket, else a point within; the same if not sure."""
    half = (low + high) / 2
    goal = np.clip(goal, now[0] - _FARTHEST, now[0] + _FARTHEST)
    aside = now[0] + np.where(sure, np.copysign(2.0, now[1]), 0.0)
    other = np.where(np.isfinite(half) & sure, half, aside)
    return np.where((goal > low) & (goal < high), goal, other)


def _state(
    rounds: PricedRounds,
    price: FloatArray,
    end: FloatArray,
    y: FloatArray,
    limited: BoolArray,
    close: FloatArray,
) -> State:
    """The clients' replies to a price, and where a second has a price, the end too."""
    free = ~np.isnan(rounds.second)
    replies = settle(rounds.clients, np.exp(price), end, y, limited, close)
    state = State(price, end.copy(), replies, np.zeros_like(end))
    if free.all():
        return _ending(rounds, state, close)
    if free.any():
        at = np.flatnonzero(free)
        state.put(at, _ending(rounds.rows(at), state.rows(at), close[at]))
    return state


def _ending(rounds: PricedRounds, state: State, close: FloatArray) -> State:
    """The state at the end that the price of a second calls for."""
    ended = state
    at = np.arange(len(state.price))
    low, high = rounds.first, np.full(len(at), np.inf)
    for _ in range(_MAX_STEPS):
        replies, end = state.replies, state.end
        worth = replies.worth * rounds.clients.weight
        idle = 2 * rounds.idle * end**-3.0
        total = worth.sum(-1) + idle
        rest = np.log(total / rounds.second)
        by_end = (worth * replies.worth_end).sum(-1) - 3 * idle / end
        stay = (end <= rounds.floor) & (rest <= 0)  # pinned by a client without bits
        state.end_price = np.where(stay, 0.0, -(worth * replies.worth_price).sum(-1) / by_end)
        if ended is not state:
            ended.put(at, state)
        low, high = np.where(rest > 0, end, low), np.where(rest > 0, high, end)
        goal = end * np.exp(np.clip(-rest * total / (by_end * end), -4.0, 4.0))
        half = np.where(np.isinf(high), 4 * end, (low + high) / 2)
        goal = np.where((goal > low) & (goal < high), goal, half)
        goal = np.maximum(goal, rounds.floor)
        keep = (np.abs(rest) > np.maximum(close**2, _CLOSE)) & (goal != end) & ~stay
        keep &= ~_closed(low, high)
        if not keep.any():
            break
        if not keep.all():
            at, rounds, state, goal = at[keep], rounds.rows(keep), state.rows(keep), goal[keep]
            low, high, close = low[keep], high[keep], close[keep]
        step = goal - state.end
        y = state.replies.y + np.clip(state.replies.y_end * step[:, None], -1.0, 1.0)
        replies = settle(rounds.clients, np.exp(state.price), goal, y, state.replies.limited, close)
        state = State(state.price, goal, replies, np.zeros_like(goal))
    return ended
