"""Uplink rates, and how the clients of a cell share its band.

A multiple-access scheme is described by two numbers per client, both in seconds per bit: the
duration of the upload, which determines latency, and the airtime, during which the client itself
transmits, which determines energy.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import BoolArray, FloatArray
from channels.modulation import RateLaw, band_efficiency, check_law, efficiency_at
from channels.network import ChannelDraw, Network
from channels.validation import LEAST, MOST, check_amounts, common_shape

Scheme = Literal["tdma", "ofdma"]
SUBCARRIER_HZ = 15e3
"""Subcarrier spacing of 5G NR."""
SYMBOL_SECONDS = 1e-3 / 14
"""Symbol duration t_s of 5G NR at that spacing, including the cyclic prefix."""


@checked()
def snr_linear(snr_db: ArrayLike) -> FloatArray:
    """Convert decibels to a power ratio, 10^(snr_db / 10).

    >>> import channels
    >>> channels.snr_linear([0.0, 10.0]).tolist()
    [1.0, 10.0]
    """
    return np.asarray(10 ** (np.asarray(snr_db, dtype=np.float64) / 10))


@checked()
def rate_bps(
    bandwidth_hz: ArrayLike, snr: ArrayLike, gain: ArrayLike, law: RateLaw = "shannon"
) -> FloatArray:
    """Rate with maximum-ratio combining, R = B log2(1 + SNR ||h||^2) (HIST, VI-C).

    >>> import channels
    >>> float(channels.rate_bps(1e6, snr=3.0, gain=1.0))
    2000000.0

    Args:
        bandwidth_hz: B, finite and >= 0.
        snr: transmit SNR as a ratio, finite and >= 0, see :func:`snr_linear`.
        gain: ||h||^2 over the antennas, finite and >= 0.
        law: "mcs" replaces the logarithm by a table of modulation and coding, see
            :func:`spectral_efficiency`.

    Returns:
        Bits per second; the arguments are broadcast.
    """
    check_law(law)
    arguments = {"bandwidth_hz": bandwidth_hz, "snr": snr, "gain": gain}
    for name, values in arguments.items():
        check_amounts(name, values)
    try:
        received = np.multiply(snr, gain, dtype=np.float64)
        return np.asarray(np.multiply(bandwidth_hz, efficiency_at(received, law)))
    except ValueError:
        shapes = {name: np.shape(values) for name, values in arguments.items()}
        common_shape(shapes, shapes.values(), "shapes that broadcast")
        raise


def rate_at(bandwidth_hz: float, snr: FloatArray, law: RateLaw) -> FloatArray:
    """As :func:`rate_bps`, of received SNRs [clients], which alone are checked."""
    check_amounts("snr", snr)
    return np.asarray(bandwidth_hz * efficiency_at(snr, law))


@checked()
def tdma_seconds_per_bit(
    draw: ChannelDraw, active: ArrayLike | None = None, *, law: RateLaw = "shannon"
) -> FloatArray:
    """Seconds of upload per bit under time division, n_j / R_i (HIST, second term of (17)).

    The n_j clients of a cell have equal time slots, in which they use the whole band at full power.
    Over K subcarriers of gains g_k the rate is the sum of B / K log2(1 + SNR g_k), with equal power
    on each.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> channels.tdma_seconds_per_bit(draw).shape
    (4,)

    Args:
        draw: channels.
        active: [..., clients], whether each client uploads; only active clients have slots. None
            means all upload.
        law: how rates follow from SNRs, see :func:`spectral_efficiency`.

    Returns:
        [..., clients]; inf where the channel is zero, 0 for inactive clients.
    """
    network, sends = draw.network, sending(draw.network, active, draw.h.shape[:-2])
    rate = _rate(_band(network), draw.snr, draw, law)
    return _seconds(_sharers(network, sends), rate, sends)


@checked()
def ofdma_seconds_per_bit(
    draw: ChannelDraw, active: ArrayLike | None = None, *, law: RateLaw = "shannon"
) -> FloatArray:
    """Seconds of upload per bit under frequency division, 1 / R_i (HIST, footnote 2).

    Each of the n_j clients of a cell transmits continuously at full power in bandwidth B / n_j. Its
    SNR is n_j times as high as over the whole band: R_i = (B / n_j) log2(1 + n_j SNR ||h_i||^2).
    Where cells interfere, one client of each other cell sends at full power in each of these bands,
    see :meth:`ChannelDraw.in_bands`. Where the band has subcarriers, each client has every n_j-th
    one (interleaved), so that its band samples the whole spectrum: R_i is the mean over the
    subcarriers k of (B / n_j) log2(1 + n_j SNR g_k).

    Arguments, result and errors are those of :func:`tdma_seconds_per_bit`.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> ofdma, tdma = channels.ofdma_seconds_per_bit(draw), channels.tdma_seconds_per_bit(draw)
    >>> bool((ofdma < tdma).all())  # each client concentrates its power in its own band
    True
    """
    network, sends = draw.network, sending(draw.network, active, draw.h.shape[:-2])
    sharers = _sharers(network, sends)
    snr = draw.snr
    if draw.noise_rise is not None:
        snr = snr * draw.rise() / draw.rise(sharers)
    rate = _rate(_band(network) / sharers, sharers * snr, draw, law)
    return _seconds(1.0, rate, sends)


@checked()
def aircomp_seconds_per_element(
    draw: ChannelDraw,
    active: ArrayLike | None = None,
    *,
    elements_per_symbol: float = 1,
    subcarrier_hz: float = SUBCARRIER_HZ,
    symbol_seconds: float = SYMBOL_SECONDS,
) -> FloatArray:
    """Seconds of upload per element over the air, t_s / (B / Delta_f) (HIST, (34)).

    All clients of a cell transmit simultaneously, and each symbol of each subcarrier carries
    ``elements_per_symbol`` elements. The duration does not depend on the number of clients or on
    their channels.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> seconds = channels.aircomp_seconds_per_element(draw)
    >>> bool(seconds[0] == seconds[-1])  # the clients send at once
    True

    Args:
        draw: channels.
        active: [..., clients], whether each client uploads. None means all upload.
        elements_per_symbol: 1; 2 on I and Q; or 1/2 if an element takes two symbols.
        subcarrier_hz: Delta_f, > 0.
        symbol_seconds: t_s, > 0.

    Returns:
        [..., clients]; 0 for inactive clients.
    """
    if elements_per_symbol not in (0.5, 1, 2):
        raise ValueError(f"elements_per_symbol is {elements_per_symbol}: choose 1, 2 or 0.5.")
    for name, value in (
        ("subcarrier_hz", subcarrier_hz),
        ("symbol_seconds", symbol_seconds),
    ):
        if not LEAST <= value <= MOST:
            raise ValueError(f"{name} is {value}: give a finite number > 0.")
    symbols_at_once = _band(draw.network) / subcarrier_hz
    seconds = symbol_seconds / (symbols_at_once * elements_per_symbol)
    seconds = np.broadcast_to(seconds, (*draw.h.shape[:-2], draw.network.clients))
    return np.where(sending(draw.network, active, draw.h.shape[:-2]), seconds, 0.0)


@checked()
def airtime_seconds_per_bit(
    draw: ChannelDraw,
    scheme: Scheme,
    active: ArrayLike | None = None,
    *,
    law: RateLaw = "shannon",
) -> FloatArray:
    """Airtime per bit in seconds: how long a client itself transmits, which determines its energy.

    It is 1 / R_i in both schemes: under ``tdma`` a client is silent in the other clients' slots;
    under ``ofdma`` it transmits continuously.

    Other arguments, result and errors are those of :func:`tdma_seconds_per_bit`.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> airtime = channels.airtime_seconds_per_bit(draw, "tdma")
    >>> (channels.tdma_seconds_per_bit(draw) / airtime).round(6).tolist()  # two clients per cell
    [2.0, 2.0, 2.0, 2.0]
    """
    if scheme == "ofdma":
        return ofdma_seconds_per_bit(draw, active, law=law)
    if scheme != "tdma":
        raise ValueError(f'scheme is {scheme!r}: choose "tdma" or "ofdma".')
    network = draw.network
    rate = _rate(_band(network), draw.snr, draw, law)
    return _seconds(1.0, rate, sending(network, active, draw.h.shape[:-2]))


def _rate(bandwidth_hz: FloatArray, snr: FloatArray, draw: ChannelDraw, law: RateLaw) -> FloatArray:
    """Rate of each client in a band of its own, spread over the subcarriers, [..., clients]."""
    if draw.spectrum is None:
        return rate_bps(bandwidth_hz, snr, draw.gain, law)
    by_subcarrier = (snr * draw.gain)[..., None] * draw.spectrum
    return np.asarray(bandwidth_hz * band_efficiency(by_subcarrier, law))


def _band(network: Network) -> FloatArray:
    """Bandwidth of each client's cell, [clients]."""
    return network.bandwidth_hz[network.cell_of]


def sending(network: Network, active: ArrayLike | None, blocks: tuple[int, ...]) -> BoolArray:
    """Whether each client transmits, [..., clients].

    Args:
        network: network of the clients.
        active: [..., clients], whether each client transmits; None means all transmit.
        blocks: leading axes of the values that are computed, with which those of ``active`` must
            broadcast.
    """
    if active is None:
        return np.ones(network.clients, dtype=np.bool_)
    sends = np.asarray(active)
    if sends.dtype != np.bool_ or sends.shape[-1:] != (network.clients,):
        raise ValueError(
            f"active has shape {sends.shape} and dtype {sends.dtype}: "
            f"give [..., clients] booleans, here (..., {network.clients})."
        )
    try:
        np.broadcast_shapes(sends.shape[:-1], blocks)
    except ValueError:
        raise ValueError(
            f"active has shape {sends.shape}, but the channels or values have leading axes "
            f"{blocks}: give [..., clients] whose leading axes broadcast with these."
        ) from None
    return sends


def _sharers(network: Network, sends: BoolArray) -> FloatArray:
    """Number of senders in each client's cell, [..., clients]; at least 1."""
    count = network.over_cells(np.add, sends.astype(np.float64))
    return np.maximum(count, 1.0)[..., network.cell_of]


def _seconds(share: FloatArray | float, rate: FloatArray, sends: BoolArray) -> FloatArray:
    """share / rate for senders (inf at rate 0); 0 for clients that do not send."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(sends, share / rate, 0.0)
