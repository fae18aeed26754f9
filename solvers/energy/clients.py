"""What each client does when the band has a price and the end of the round is fixed.

A client sends n = bits ln 2 nats over a channel of gain per noise G = g / N0 (Hz/W) in t seconds
within a band b, and computes c cycles at f hertz before. With u = b t and x = n / u, the energy of
the upload is e = u (exp(x) - 1) / G. At lambda joules per hertz of band, it minimises

    kappa c f^2 + e + lambda b    s.t.    c / f + t <= T,  f <= F,  e <= P t,

which is convex in (b, t, f). With E = exp(x) - 1 and D = x exp(x) - E, the best point is one of

    t = lambda G / D(x),   b = n / (x t),   mu = lambda b / t,                    power below P,
    t = n E / (x P G),     b = P G / E,     mu = |b'(t)| (lambda - D t / G) + P D / E,     at P,

where mu is the price of a second, b'(t) = -(b / t) (1 + E / D) the derivative of the least band for
a window t, and f = min(F, cbrt(mu / (2 kappa))). Either way c / f + t = T is an equation for x
alone. The curves meet where both give the same t; the client is on either only below that x. Below
it, the first curve has c / f + t decreasing, the second increasing.

Newton's method finds y = ln E; E is the SNR, as p G / b = E on both curves. In y, the logarithms of
D, mu, t and c / f have slopes of about 1 and 2 throughout, so that few steps are enough from
anywhere. On the second curve, ln(P + mu) for f = c / (T - t), less ln(lambda |b'|), the window and
the distance to the first curve increase: the least of their three roots counts. On the first
curve, it is the larger root of two. Any y gives a lower bound (see ``dual``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray

_MAX_STEPS = 60
_TIE = 1e-13
"""Relative difference of the two curves' windows that rounding errors explain."""


class Clients(NamedTuple):
    """Clients with something to send, [problems, clients] each.

    Args:
        nats: n > 0.
        cycles: c >= 0.
        gain: G > 0 in Hz/W.
        power: P > 0 in watts.
        speed: F > 0 in Hz.
        kappa: >= 0, joules per cycle and Hz^2.
        weight: 1; 0 for a client that only fills the row of a problem with fewer clients.
    """

    nats: FloatArray
    cycles: FloatArray
    gain: FloatArray
    power: FloatArray
    speed: FloatArray
    kappa: FloatArray
    weight: FloatArray

    def rows(self, rows: slice | IntArray | BoolArray) -> Clients:
        """Some of the problems."""
        return Clients(*(array[rows] for array in self))

    def frequency(self, worth: FloatArray) -> FloatArray:
        """Frequency that minimises kappa c f^2 + worth c / f up to the speed, in Hz."""
        with np.errstate(divide="ignore"):
            return np.minimum(np.cbrt(worth / (2 * self.kappa)), self.speed)

    def busy(self, frequency: FloatArray) -> FloatArray:
        """Seconds of the computation; 0 without cycles."""
        none = np.zeros(self.cycles.shape)
        return np.divide(self.cycles, frequency, out=none, where=self.cycles > 0)


class Replies(NamedTuple):
    """What the clients do, [problems, clients] each.

    Args:
        y: ln of the SNR.
        limited: whether at full power.
        band: b in Hz.
        window: t in seconds.
        worth: mu, joules that a second is worth.
        y_price, y_end: derivatives of y with respect to ln(price) and to the end T.
        band_price, band_end: those of ln b.
        worth_price, worth_end: those of ln mu.
    """

    y: FloatArray
    limited: BoolArray
    band: FloatArray
    window: FloatArray
    worth: FloatArray
    y_price: FloatArray
    y_end: FloatArray
    band_price: FloatArray
    band_end: FloatArray
    worth_price: FloatArray
    worth_end: FloatArray

    def rows(self, rows: IntArray | BoolArray) -> Replies:
        """Those of some of the problems."""
        return Replies._make(array[rows] for array in self)


class _Point(NamedTuple):
    """The curves at an SNR; what differs between them is that of the client's own."""

    ratio: FloatArray  # E: the SNR
    x: FloatArray
    log_x: FloatArray  # d ln x / dy
    fall: FloatArray  # -d ln t / dy on the first curve
    rise: FloatArray  # d ln t / dy on the second
    ahead: FloatArray  # ln of the second curve's window / the first's: > 0 where neither is valid
    window: FloatArray
    band: FloatArray
    worth: FloatArray
    slope: FloatArray  # lambda |b'| on the second curve
    bend: FloatArray  # d ln |b'| / dy
    rest: FloatArray  # c / f for f = cbrt(mu / (2 kappa)), not limited


def growth(x: FloatArray, ratio: FloatArray) -> FloatArray:
    """D = x (1 + E) - E for E = exp(x) - 1, to rounding errors / max(x, 0.02)."""
    d = x + (x - 1) * ratio
    low = np.flatnonzero(x < 0.02)
    if low.size:
        v = x.flat[low]
        series = 1 / 8 + v * (1 / 30 + v * (1 / 144 + v / 840))
        d.flat[low] = v * v * (1 / 2 + v * (1 / 3 + v * series))
    return d


def _point(clients: Clients, price: FloatArray, y: FloatArray, limited: BoolArray) -> _Point:
    e = np.exp(y)
    x = np.log1p(e)
    d = growth(x, e)
    eta = d / e
    log_x = e / (x + x * e)
    fall, rise = x / eta, eta * log_x
    first = price[:, None] * clients.gain / d
    second = clients.nats * e / (clients.power * clients.gain * x)
    ratio = second / first
    some = limited.any()
    window = np.where(limited, second, first) if some else first
    band = clients.nats / (x * window)
    worth = price[:, None] * band / window
    slope = bend = worth
    if some:
        slope = worth * (1 + 1 / eta)
        bend = x * log_x - 2 * rise - fall
        full = slope * (1 - ratio) + clients.power * eta
        worth = np.where(limited & (full > 0), full, worth)
    rest = clients.cycles * np.cbrt(2 * clients.kappa / worth)
    ahead = np.log(ratio)
    return _Point(e, x, log_x, fall, rise, ahead, window, band, worth, slope, bend, rest)


def settle(
    clients: Clients,
    price: FloatArray,
    end: FloatArray,
    y: FloatArray,
    limited: BoolArray,
    close: FloatArray,
) -> Replies:
    """What the clients do at a price of the band and an end of the round.

    Args:
        clients: those of all problems.
        price: lambda > 0 in joules per Hz, [problems].
        end: T in seconds, [problems]; later than c / F + n / (P G) for each client.
        y: start, [problems, clients].
        limited: start, [problems, clients].
        close: largest last step in y, [problems]; the rest is of the order of its square.
    """
    with np.errstate(all="ignore"):
        y, limited = y.copy(), limited.copy()
        at = np.arange(len(y))
        part, cost, until, near = clients, price, end, close
        here, full = y, limited
        for _ in range(_MAX_STEPS):
            point = _point(part, cost, here, full)
            step, switch = _step(part, until, point, full, near[:, None])
            here, full = here + step, full ^ switch
            y[at], limited[at] = here, full
            keep: BoolArray = np.asarray(((np.abs(step) > near[:, None]) | switch).any(-1))
            if not keep.any():
                break
            if not keep.all():
                at, part, cost, until = at[keep], part.rows(keep), cost[keep], until[keep]
                here, full, near = here[keep], full[keep], near[keep]
        return _replies(clients, y, limited, _point(clients, price, y, limited))


def _step(
    clients: Clients, end: FloatArray, point: _Point, limited: BoolArray, close: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Newton's step in y, and who goes on on the other curve, near where they meet."""
    until = end[:, None]
    t, rest = point.window, point.rest
    over = np.log(t / (until - clients.cycles / clients.speed))
    apart = -point.ahead / (point.rise + point.fall)  # step to where the curves meet
    # First curve, below the speed limit and at it: the larger root.
    both = t + rest
    slope = t * point.fall + rest * ((2 * point.fall - point.log_x) / 3)
    step = np.maximum(np.log(both / until) * both / slope, over / point.fall)
    switch = ~limited & (step >= np.maximum(apart, -close)) & (point.ahead > _TIE)
    if limited.any():
        spare = until - t
        # Second curve: ln(P + mu(f)) - ln(lambda |b'|) for f = c / (T - t), and the window.
        toll = 2 * clients.kappa * (clients.cycles / spare) ** 3
        whole = clients.power + toll
        turn = 3 * toll / whole * t * point.rise / spare - point.bend
        second = np.where(spare > 0, np.log(point.slope / whole) / turn, np.nan)
        # The same root from c / f + t = T, flat where the former is steep (T - t or mu near 0).
        slope = t * point.rise - point.slope / point.worth * point.bend * (rest / 3)
        same = np.where(point.ahead <= 0, -np.log(both / until) * both / slope, np.nan)
        second = np.fmin(np.fmin(second, same), -over / point.rise)
        beyond = (second > 0) & (point.ahead > _TIE)
        switch |= limited & (beyond | (second > apart + _TIE) & (np.abs(apart) <= close))
        step = np.where(limited, np.minimum(second, apart), step)
    return np.where(switch, np.minimum(apart, 0.0), step), switch


def _replies(clients: Clients, y: FloatArray, limited: BoolArray, point: _Point) -> Replies:
    t, fall = point.window, point.fall
    rest = np.where(point.rest * clients.speed > clients.cycles, point.rest, 0.0)
    worth = 2 * fall - point.log_x
    slope = t * fall + rest * (worth / 3)
    y_price, y_end = (t + rest / 3) / slope, -1 / slope
    band_price, band_end = (fall - point.log_x) * y_price - 1, (fall - point.log_x) * y_end
    worth_price, worth_end = worth * y_price - 1, worth * y_end
    if limited.any():
        pull = point.slope / point.worth  # d ln mu / d ln(price) at fixed y
        bend = pull * point.bend
        turn = t * point.rise - bend * rest / 3
        full_price, full_end = pull * rest / 3 / turn, 1 / turn
        y_price, y_end = np.where(limited, full_price, y_price), np.where(limited, full_end, y_end)
        band_price = np.where(limited, -full_price, band_price)
        band_end = np.where(limited, -full_end, band_end)
        worth_price = np.where(limited, pull + bend * full_price, worth_price)
        worth_end = np.where(limited, bend * full_end, worth_end)
    return Replies(
        y, limited, point.band, t, point.worth, y_price, y_end,
        band_price, band_end, worth_price, worth_end,
    )  # fmt: skip


def dual(
    clients: Clients, price: FloatArray, end: FloatArray, replies: Replies
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower bounds on the clients' costs within T, and their derivatives.

    Weak duality: with a price mu >= 0 of the time constraint, the least of
    kappa c f^2 + e + lambda b + mu (c / f + t - T) bounds the cost from below. For mu from y, it is
    known exactly: f is ``frequency(mu)``, and the band and window are those of y, on either curve
    where that is valid, and else on the first, which is best without the power limit. So there is
    no inner search whose error would have to be taken off the bound. It is linear in T and in the
    cycles.

    Returns:
        The bounds; -mu, their derivatives with respect to T; and those with respect to ln c of all
        clients together. All are summed over the clients, [problems].
    """
    with np.errstate(all="ignore"):
        point = _point(clients, price, replies.y, replies.limited)
        wrong = replies.limited & (point.ahead > 0)
        if wrong.any():
            point = _point(clients, price, replies.y, replies.limited & ~wrong)
        speed = clients.frequency(point.worth)
        busy = np.divide(clients.cycles, speed)
        sent = point.band * point.window * point.ratio / clients.gain
        cost = sent + price[:, None] * point.band + clients.kappa * clients.cycles * speed**2
        cost += point.worth * (point.window + busy - end[:, None])
        computed = clients.kappa * clients.cycles * speed**2 + point.worth * busy
    sums = cost, -point.worth, computed
    bound, slope, by_cycles = ((x * clients.weight).sum(-1) for x in sums)
    return bound, slope, by_cycles
