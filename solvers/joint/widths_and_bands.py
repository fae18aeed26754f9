"""Submodel widths and bands together: how much each client trains within a deadline.

A client with band b, rate r(b) = b log2(1 + rho / b), s bits and W seconds of computation for the
full model finishes the share p(b) = T / (s / r(b) + W) of it by the deadline T. Since r is concave,
so is p: the sum of weighted shares is maximised by water-filling. At the price lambda of the band a
client takes the b with w p'(b) = lambda, or what the full model needs if that is less.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import is_complex, is_number
from channels.arrays import BoolArray, FloatArray
from channels.plausible import noted
from channels.validation import LEAST, as_numpy, shown
from solvers.arrays import broadcast, finite
from solvers.bands.least_band import LN2, excess, least_band
from solvers.bands.shared import shared_band
from solvers.outcome import Outcome, left_out, unable
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor

_EPS = float(np.finfo(np.float64).eps)
_MAX_STEPS = 120
_NEAR = 1e-8
"""Relative distance within which a maximum is proven."""
_SMALL, _LARGE = 600.0, 300.0
"""Bands are from exp(-600) to exp(300) times snr_hz."""
_MIN_BAND, _MIN_RATIO = 1e-250, 1e-300
"""Smaller bands, in Hz and relative to snr_hz, are 0: rates are out of range."""


class WidthsAndBands(NamedTuple):
    """A joint design.

    >>> import solvers
    >>> plan = solvers.optimize_widths_and_bands([1e6, 1e6], 0.5, [1e7, 1e7], 1e6, 0.8).value
    >>> plan.widths.round(2).tolist(), plan.bandwidth_hz.round(-3).tolist()
    ([0.84, 0.84], [500000.0, 500000.0])

    Args:
        widths: share of the model that each client trains, [..., clients], from 0 to ``cap``.
        bandwidth_hz: band of each client, [..., clients], in Hz; 0 for clients that train nothing.
    """

    widths: Any
    bandwidth_hz: Any


class _Clients(NamedTuple):
    """All clients [problems, clients] that can send.

    Args:
        bits: s of the full model, > 0.
        seconds: W of the full model.
        snr_hz: rho > 0.
        weight: w > 0.
        deadline: T [problems, 1].
        enough: band with which a client trains the cap; infinite if no band is enough.
    """

    bits: FloatArray
    seconds: FloatArray
    snr_hz: FloatArray
    weight: FloatArray
    deadline: FloatArray
    enough: FloatArray

    def share(self, band: FloatArray) -> FloatArray:
        """p(b)."""
        rate = band * np.log1p(self.snr_hz / band) / LN2
        return self.deadline * rate / (self.bits + self.seconds * rate)

    def slope(self, log: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logarithm of w p'(b), and its derivative, at logarithms of b."""
        band = np.exp(log)
        y = self.snr_hz / band
        rate, steep = band * np.log1p(y) / LN2, excess(y) / LN2
        whole = self.bits + self.seconds * rate
        value = np.log(self.weight * self.deadline * self.bits) + np.log(steep) - 2 * np.log(whole)
        falling = (y / (1 + y)) ** 2 / LN2 / steep
        return value, -falling - 2 * self.seconds * band * steep / whole

    def taken(self, price: FloatArray, log: FloatArray) -> FloatArray:
        """Logarithms of the bands with w p'(b) = price, from its logarithm [problems]."""
        centre = np.log(self.snr_hz)
        low, high = centre - _SMALL, centre + _LARGE
        for _ in range(_MAX_STEPS):
            value, steep = self.slope(log)
            more = value > price[:, None]
            low, high = np.where(more, log, low), np.where(more, high, log)
            after = _inside(log - (value - price[:, None]) / steep, low, high)
            moved = np.abs(after - log) > 4 * _EPS * np.maximum(np.abs(log), 1)
            log = after
            if not moved.any():
                break
        return log


@noted
def optimize_widths_and_bands(
    bits: ArrayLike | Tensor,
    compute_seconds: ArrayLike | Tensor,
    snr_hz: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
    deadline_seconds: ArrayLike | Tensor,
    *,
    weights: ArrayLike | Tensor = 1.0,
    cap: float = 1.0,
) -> Solution[WidthsAndBands]:
    """Find the submodel widths and bands that let clients train the most within a deadline.

    Solves  max sum_i w_i p_i  over widths 0 <= p_i <= cap and bands b_i >= 0 with sum b_i <= B, and

        p_i W_i + p_i s_i / (b_i log2(1 + rho_i / b_i)) <= T

    for every client i, whose bits and computation are proportional to its width.

    >>> import solvers
    >>> solution = solvers.optimize_widths_and_bands([1e6, 1e6], 0.5, [1e7, 1e6], 1e6, 1.0)
    >>> strong, weak = solution.value.widths
    >>> bool(strong > weak)
    True

    Args:
        bits: s > 0, [..., clients], size of the full model's update.
        compute_seconds: W, [..., clients], seconds of computation for the full model.
        snr_hz: rho, [..., clients], transmit power x gain / noise density in Hz; a client with 0
            trains nothing, and the message names it.
        bandwidth_hz: B, [...], the band of the cell in Hz.
        deadline_seconds: T > 0, [...].
        weights: w > 0, [..., clients], e.g. numbers of samples.
        cap: largest width, from above 0 to 1.

    Arrays are broadcast; leading axes are a batch. Array-like, or torch tensors on any device.

    Returns:
        ``WidthsAndBands`` with the array type of ``bits``. The objective is sum w p; the bound is
        that of Lagrangian duality at the price of the band. All problems are feasible.
    """
    start = time.perf_counter()
    arrays = {
        "bits": finite("bits", bits, "bits", above=True),
        "compute_seconds": finite("compute_seconds", compute_seconds, "seconds"),
        "snr_hz": finite("snr_hz", snr_hz, "Hz: transmit power x gain / noise density"),
        "weights": finite("weights", weights, "the unit of the objective", above=True),
    }
    if not (is_number(cap) and not is_complex(cap) and LEAST <= cap <= 1):
        raise ValueError(f"cap is {shown(cap)}: give a number above 0, from {LEAST:g} to 1.")
    cap = float(as_numpy(cap))
    scalars = {
        "bandwidth_hz": shared_band(bandwidth_hz, arrays),
        "deadline_seconds": finite("deadline_seconds", deadline_seconds, "seconds", above=True),
    }
    full, (band, end), _ = broadcast(arrays, scalars, "[..., clients]")
    size, ready, snr, weight = (a.reshape(-1, a.shape[-1]) for a in full)
    deadline = end.reshape(-1, 1)
    able, snr = snr > 0, np.where(snr > 0, snr, 1.0)
    window = deadline - cap * ready
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = able & (cap * size * LN2 < window * snr)
    enough = np.full(size.shape, np.inf)
    enough[ends] = least_band(cap * size[ends], window[ends], snr[ends])[0]
    clients = _Clients(size, ready, snr, weight, deadline, enough)
    bands, price = _filled(clients, able, band.reshape(-1))
    heard = able & (bands >= np.maximum(_MIN_BAND, _MIN_RATIO * snr))
    bands = np.where(heard, bands, 0.0)
    widths = np.where(heard, np.minimum(clients.share(np.where(heard, bands, snr)), cap), 0.0)
    widths[bands >= enough] = cap
    objective = (weight * widths).sum(-1)
    bound = np.maximum(_bound(clients, able, cap, price, band.reshape(-1)), objective)
    outcome = Outcome(WidthsAndBands(widths, bands), objective, bound)
    message = left_out(~able, band.shape, lambda row: unable({"send: snr_hz is 0": ~able[row]}))
    every = np.ones(len(bands), dtype=bool)
    return outcome.solution(
        every, band.shape, bits, backend="water_filling", start=start, message=message
    )


def _filled(clients: _Clients, able: BoolArray, band: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bands [problems, clients] that fill the cell, and the logarithm of the price [problems].

    Where the band is enough for every cap, the price is -inf.
    """
    cell = _Cell(clients, able, band)
    price = cell.price()
    bands = cell.sold(price)
    # The price is exact up to rounding, so the bands below the caps are scaled to the rest.
    free = able & (bands < clients.enough)
    rest = band - np.where(free, 0.0, bands).sum(-1)
    total = np.where(free, bands, 0.0).sum(-1)
    factor = np.divide(rest, total, np.ones_like(total), where=total > 0)
    price = np.where(cell.scarce, price, -np.inf)
    return np.where(free, bands * factor[:, None], bands), price


class _Cell:
    """The price at which the clients take the whole band of their cell.

    Args:
        clients: all clients.
        able: clients that can send, [problems, clients].
        band: B [problems].
    """

    def __init__(self, clients: _Clients, able: BoolArray, band: FloatArray) -> None:
        self._clients, self._able, self._band = clients, able, band
        count = np.maximum(able.sum(-1), 1)
        self._even = np.log(np.broadcast_to((band / count)[:, None], able.shape))
        self._log = self._even  # of the bands at the last price, from which the next search begins
        self.scarce = np.where(able, clients.enough, 0.0).sum(-1) > band
        """Whether the band is not enough for every client's cap, [problems]."""

    def sold(self, price: FloatArray) -> FloatArray:
        """Bands [problems, clients] that the clients take, at logarithms of the price."""
        self._log = self._clients.taken(price, self._log)
        return np.where(self._able, np.minimum(np.exp(self._log), self._clients.enough), 0.0)

    def price(self) -> FloatArray:
        """Logarithm of the price [problems]; -300 where the band is not scarce."""
        low, high = self._ends()
        price = np.where(self.scarce, (low + high) / 2, -_LARGE)
        low = np.where(self.scarce, low, price)
        high = np.where(self.scarce, high, price)
        for _ in range(_MAX_STEPS):
            total = self.sold(price).sum(-1)
            over = total > self._band
            low, high = np.where(over, price, low), np.where(over, high, price)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = (total - self._band) / self._fall()
            after = _inside(price - step, low, high)
            moved = np.abs(after - price) > 4 * _EPS * np.maximum(np.abs(price), 1)
            price = after
            if not moved.any():
                break
        return price

    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of prices at which too much and too little of the band is taken."""
        able = self._able
        value = np.where(able, self._clients.slope(self._even)[0], -np.inf)
        low = np.where(able, value, np.inf).min(-1) - 1.0  # too much is taken without caps
        high = value.max(-1) + 1.0  # every client takes less
        low, high = np.where(able.any(-1), low, -1.0), np.where(able.any(-1), high, 1.0)
        for _ in range(_MAX_STEPS):
            few = (self.sold(low).sum(-1) < self._band) & self.scarce
            if not few.any():
                break
            low = np.where(few, 2 * low - high, low)
        return low, high

    def _fall(self) -> FloatArray:
        """Derivative of the band that is taken by the logarithm of the price, [problems]."""
        free = self._able & (np.exp(self._log) < self._clients.enough)
        slope = self._clients.slope(self._log)[1]
        return np.asarray(np.where(free, np.exp(self._log) / slope, 0.0).sum(-1))


def _inside(newton: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The next points of a search: Newton's, or the middle if they leave the interval."""
    return np.where((newton > low) & (newton < high), newton, (low + high) / 2)


def _bound(
    clients: _Clients, able: BoolArray, cap: float, price: FloatArray, band: FloatArray
) -> FloatArray:
    """Upper bound of the objective [problems]: sum_i max_b (w p(b) - lambda b) + lambda B.

    For each client the maximum of this concave function is at most its value near the maximum plus
    |slope| x distance; the slopes on both sides prove the distance.
    """
    log = clients.taken(price, np.log(clients.snr_hz))
    left, right = (clients.slope(log + shift)[0] for shift in (-_NEAR, _NEAR))
    proven = (left >= price[:, None]) & (right <= price[:, None])
    least, bands = np.exp(price)[:, None], np.exp(log + _NEAR)
    error = np.abs(np.exp(right) - least) * bands * 2 * _NEAR
    inside = clients.weight * clients.share(bands) - least * bands + error
    with np.errstate(invalid="ignore"):
        ended = clients.weight * cap - least * clients.enough
    # Up to `enough` the function still increases if its root lies beyond.
    beyond = log - _NEAR >= np.log(clients.enough)
    # A maximum at a band below the least one: there the share is even less.
    tiny = np.where(right <= price[:, None], clients.weight * clients.share(bands), np.inf)
    limits = np.where(beyond, ended, np.where(proven, inside, tiny))
    most = np.where(able, np.minimum(limits, clients.weight * cap), 0.0)
    return np.asarray(most.sum(-1) + np.exp(price) * band)
