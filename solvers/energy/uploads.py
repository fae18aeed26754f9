"""Bands, windows, powers and frequencies at the clearing price, within all limits.

The price leaves relative errors of about 1e-13 in the bands. What they would do to the ends of
clients is made up for by their CPUs, and at full power and speed by the least bands.
"""

from __future__ import annotations

import numpy as np

from channels.arrays import BoolArray, FloatArray
from solvers.bands.least_band import LN2, least_band, upload_seconds
from solvers.energy.band_price import PricedRounds, State
from solvers.energy.clients import Clients, Replies

ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""Relative rounding error of an end."""
_TURNS = 6
"""Turns in which further clients get their least bands."""


def uploads(
    rounds: PricedRounds, state: State
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Bands that fill the cell, windows, powers and frequencies, within all limits."""
    clients, end = rounds.clients, state.end[:, None]
    band = state.replies.band
    latest = end - clients.cycles / clients.speed
    least = least_band(clients.nats / LN2, latest, clients.power * clients.gain)[0]
    pinned = np.zeros(band.shape, dtype=np.bool_)  # at full power and speed until the end
    for _ in range(_TURNS):
        band = _filled(rounds, state.replies.band, least, pinned)
        window, power, frequency = _in_time(clients, band, end, state.replies)
        late = clients.busy(frequency) + window > end * (1 + ROUNDING)
        if not (late & ~pinned).any():
            break
        pinned |= late
    return band, window, power, frequency


def _filled(
    rounds: PricedRounds, shares: FloatArray, least: FloatArray, pinned: BoolArray
) -> FloatArray:
    """Bands that sum to B, as ``shares`` up to rounding errors: those ``pinned`` have the least."""
    weight = rounds.clients.weight
    taken = np.where(pinned, least, 0.0)
    scale = (rounds.band - (taken * weight).sum(-1)) / (shares * weight * ~pinned).sum(-1)
    band = np.where(pinned, least, shares * np.where(scale > 0, scale, 1.0)[:, None])
    return np.asarray(band * (rounds.band / (band * weight).sum(-1))[:, None])


def _in_time(
    clients: Clients, band: FloatArray, end: FloatArray, replies: Replies
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Windows, powers and frequencies with which clients end in time within ``band``, if they can.

    Next to the end T, only rounding errors set them apart from those of ``replies``.
    """
    frequency = clients.frequency(replies.worth)
    busy = clients.cycles / frequency
    # Of c / f and t, the difference of T and the larger one has lost digits.
    long = replies.window > busy
    window = np.minimum(replies.window, end - clients.cycles / clients.speed)
    window = np.where(long, end - busy, window)
    power = np.expm1(clients.nats / (band * window)) * band / clients.gain
    over = power > clients.power
    if over.any():
        shortest = upload_seconds(clients.nats / LN2, band, clients.power * clients.gain)
        window = np.where(over, shortest, window)
        power = np.where(over, clients.power, power)
    needed = np.where(end > window, clients.cycles / (end - window), np.inf)
    # A window at full power may exceed that of the reply: the computation must end sooner.
    late = clients.busy(frequency) + window > end * (1 + ROUNDING)
    frequency = np.minimum(np.where(long & ~late, frequency, needed), clients.speed)
    return window, power, np.where(clients.cycles > 0, frequency, 0.0)
