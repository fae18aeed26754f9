"""Over-the-air computation: clients transmit simultaneously, and their signals add up to a mean.

:mod:`channels.precoders` defines the transmitted signals and the conventions for power and noise.
This module computes the received sum, its noise and its error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.air_sums import AirSum, air_sum
from channels.arguments import checked, is_numeric
from channels.arrays import ComplexArray, FloatArray
from channels.links import snr_linear
from channels.precoders import Convention, transmit_scales
from channels.streams import Stream
from channels.time_offsets import steps
from channels.validation import check_readable, is_tensor, shown


@dataclass(frozen=True, eq=False)
class AirMean:
    """The server's estimate of the clients' mean, with its error.

    >>> import channels
    >>> mean = channels.aircomp_mean(
    ...     [[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0]], [1.0], snr_db=200.0, stream=channels.Stream(1)
    ... )
    >>> mean.estimate.round(3).tolist(), mean.realised_error < 1e-12
    ([2.0, 3.0], True)

    Args:
        estimate: [elements], with the array type of the updates.
        realised_error: mean over elements of (estimate - weighted mean)^2.
        predicted_error: expectation of ``realised_error``, from the formula.
        power: [clients], mean transmit power of each client divided by its limit P_i.
        air: precoders, gains and variances of the sum.
    """

    estimate: Any
    realised_error: float
    predicted_error: float
    power: FloatArray
    air: AirSum


@checked(complex_valued=("h", "beamformer"))
def aircomp_mean(
    updates: Any,
    h: ArrayLike,
    beamformer: ArrayLike,
    *,
    snr_db: ArrayLike,
    convention: Convention = "published",
    stream: Stream,
    weights: ArrayLike | None = None,
    elements_per_symbol: int = 1,
    csi_error: ArrayLike = 0.0,
    phase_error: float = 0.0,
    time_offset: float = 0.0,
) -> AirMean:
    """Estimate the clients' mean by over-the-air computation (HIST, (22) to (25)).

    >>> import channels
    >>> updates, h = [[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0]]
    >>> mean = channels.aircomp_mean(updates, h, [1.0], snr_db=200.0, stream=channels.Stream(1))
    >>> mean.estimate.round(3).tolist()
    [2.0, 3.0]

    Args:
        updates: x [clients, elements] real, float32 or float64; NumPy, or torch on any device.
        h: channels [clients, antennas] as the server knows them.
        beamformer: a [antennas], e.g. from :func:`solvers.optimize_beamformer`.
        snr_db: P_i / sigma_0^2, one number or [clients], in dB; within [-300, 300].
        convention: definition of power and noise, see :mod:`channels.precoders`.
        stream: randomness of noise and errors; equal streams give equal draws.
        weights: q [clients] >= 0, weights of the mean, scaled to sum 1. None means 1 / clients.
        elements_per_symbol: 1, or 2 on I and Q (``physical`` only).
        csi_error: variance of the error of a channel coefficient, one number or [clients].
        phase_error: standard deviation of the residual phase, in radians.
        time_offset: largest delay of a client, in symbols, from 0 to 1; see
            :func:`channels.air_sum`.

    Raises:
        ValueError: a shape does not fit, a value is not finite or out of range, or the beamformer
            nulls a client's channel.
    """
    tensor = is_tensor(updates)
    check_readable("updates", updates)
    if not is_numeric(updates):
        raise TypeError(f"updates is {shown(updates)}: give numbers [clients, elements].")
    x: Any = updates.detach() if tensor else np.asarray(updates)
    real = str(x.dtype).removeprefix("torch.") in ("float32", "float64")
    if x.ndim != 2 or 0 in x.shape or not real:
        raise ValueError(
            f"updates have shape {tuple(x.shape)} and dtype {x.dtype}: give [clients, elements] "
            "float32 or float64."
        )
    clients, elements = x.shape
    if np.shape(h)[:1] != (clients,):
        raise ValueError(
            f"updates have shape {tuple(x.shape)} and h {np.shape(h)}: give [clients, elements] "
            "and [clients, antennas] of the same clients."
        )
    q = _weights(weights, clients)
    rms = root_mean_square(x)
    if not np.isfinite(rms).all():
        raise ValueError(
            f"updates[{np.flatnonzero(~np.isfinite(rms))[0]}] are not finite: give finite numbers."
        )
    snr = np.asarray(snr_db, np.float64)
    if snr.shape not in {(), (clients,)}:
        raise ValueError(f"snr_db has shape {snr.shape}: give one number, or [clients].")
    scales = transmit_scales(
        q, rms, snr_db=snr, convention=convention, elements_per_symbol=elements_per_symbol
    )
    air = air_sum(
        h,
        beamformer,
        q,
        scales,
        convention=convention,
        csi_error=csi_error,
        phase_error=phase_error,
        time_offset=time_offset,
        stream=stream,
    )
    mean = _like(x, q) @ x
    moved, bias, changes = rms, (1 - air.shrink) * float(root_mean_square(mean[None])[0]), None
    if not time_offset:
        estimate = through_the_air(x, air.gains, elements_per_symbol)
    else:
        late = steps(x, elements_per_symbol)
        received = x + _like(x, air.delays)[:, None] * late
        estimate = through_the_air(received, air.gains, elements_per_symbol)
        expected = x + time_offset / 2 * late
        offset = _like(x, air.shrink * q) @ expected - mean
        moved, changes = root_mean_square(expected), root_mean_square(late)
        bias = float(root_mean_square(offset[None])[0])
    deviation = np.sqrt(air.noise_variance)
    estimate = estimate + _like(x, deviation * noise(stream, elements))
    error = root_mean_square((estimate - mean)[None])
    return AirMean(
        estimate=estimate,
        realised_error=float(error[0] ** 2),
        predicted_error=air.predicted_error(moved, bias, elements_per_symbol, changes),
        power=np.abs(air.precoders) ** 2 * rms**2 * elements_per_symbol / snr_linear(snr),
        air=air,
    )


def through_the_air(updates: Any, gains: ComplexArray, elements_per_symbol: int = 1) -> Any:
    """Compute the noise-free received sum [elements] from the symbols sum_i c_i x_i.

    With one element per symbol, the result is the real part. With two, neighbouring elements are
    the real and imaginary part of a symbol; an odd last element has a symbol to itself.

    Args:
        updates: x [clients, elements], NumPy or torch.
        gains: c [clients] complex.
        elements_per_symbol: 1 or 2.
    """
    total = _like(updates, gains.real) @ updates
    if elements_per_symbol == 2 and gains.imag.any():
        turned = _like(updates, gains.imag) @ updates
        pairs = len(total) // 2 * 2
        total[0:pairs:2] -= turned[1:pairs:2]
        total[1:pairs:2] += turned[0:pairs:2]
    return total


def noise(stream: Stream, elements: int) -> NDArray[np.float32]:
    """Receiver noise [elements] of unit variance; equal streams give equal noise."""
    return stream.child("noise").generator().standard_normal(elements, dtype=np.float32)


def root_mean_square(updates: Any) -> FloatArray:
    """Root mean square [clients] of each client's elements, in float64."""
    if is_tensor(updates):
        squared: FloatArray = updates.detach().double().square().mean(1).cpu().numpy()
        return np.sqrt(squared)
    return np.asarray(np.sqrt(np.square(updates, dtype=np.float64).mean(1)))


def _weights(weights: ArrayLike | None, clients: int) -> FloatArray:
    if weights is None:
        return np.full(clients, 1 / clients)
    q = np.asarray(weights, np.float64)
    if q.shape != (clients,) or not (np.isfinite(q) & (q >= 0)).all() or not q.any():
        raise ValueError(
            f"weights are {shown(q)}: give [clients] finite numbers >= 0, here {clients}, not all "
            "0."
        )
    return np.asarray(q / q.sum())


def _like(updates: Any, values: NDArray[np.floating[Any]]) -> Any:
    """``values`` with the array type, dtype and device of ``updates``."""
    if not is_tensor(updates):
        return values.astype(updates.dtype)
    return updates.new_tensor(values)
