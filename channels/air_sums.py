"""Effective gains and noise of over-the-air sums, for precoders that invert channels or do not.

The server knows h; the channel applies h + e_i with e_i ~ CN(0, csi_error I), rotates client i's
signal by a residual phase ~ N(0, phase_error^2), and delays it by a part of a symbol, uniform from
0 to ``time_offset`` (:mod:`channels.time_offsets`). All errors are constant during an upload.
:mod:`channels.precoders` defines the symbols.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.precoders import Convention, check_convention, numbers
from channels.streams import Stream
from channels.time_offsets import check_time_offset, delays
from channels.validation import MOST

LARGEST_PHASE_ERROR = 1e6
"""Largest standard deviation of the phase, whose square is finite; far above a full turn."""
LARGEST_SCALE = 1e100
"""Largest scale, whose square is finite; its inverse is the least."""


@dataclass(frozen=True, eq=False)
class AirSum:
    """Parameters of one over-the-air sum: precoders, effective gains and variances.

    >>> import channels
    >>> scales = channels.transmit_scales([0.5, 0.5], [1.0, 1.0], snr_db=10.0)
    >>> air = channels.air_sum([[1.0], [2.0]], [1.0], [0.5, 0.5], scales)
    >>> abs(air.precoders).round(3).tolist()  # the stronger client sends with less power
    [1.581, 0.791]

    Args:
        weights: q [clients], weights of the mean.
        precoders: alpha [clients] complex, in units of sigma_0 per unit of the elements.
        aligned: w [clients], gains m^H h_i alpha_i without channel and phase errors; q_i if the
            precoders invert the channels.
        gains: c [clients] complex, m^H (h_i + e_i) alpha_i rotated by the phase error; equal to
            w_i without channel and phase errors.
        noise_variance: noise variance per real element of the estimate.
        gain_variance: [2, clients], variance of c_i's real and imaginary part over the errors.
        shrink: E c_i / w_i; below 1 if there is a phase error.
        delays: tau [clients], delays in symbols.
        time_offset: largest delay, in symbols.
    """

    weights: FloatArray
    precoders: ComplexArray
    aligned: FloatArray
    gains: ComplexArray
    noise_variance: float
    gain_variance: FloatArray
    shrink: float
    delays: FloatArray
    time_offset: float

    @np.errstate(invalid="ignore")  # diverged updates have no error
    def predicted_error(
        self,
        rms: FloatArray,
        bias: float,
        per_symbol: int = 1,
        steps: FloatArray | None = None,
    ) -> float:
        """Mean squared error per real element, over noise, channel errors and delays.

        Args:
            rms: [clients], root mean square of each client's elements x_i; with delays, of
                x_i + E tau d_i.
            bias: root mean square of sum_i (E c_i - q_i) x_i. If the precoders invert the channels,
                it is 1 - ``shrink`` times that of the weighted mean. With delays, of
                sum_i E c_i (x_i + E tau d_i) - q_i x_i.
            per_symbol: elements per symbol; two elements on a symbol interfere with each other.
            steps: [clients], root mean square of the differences d_i of ``channels.time_offsets``;
                None without delays.
        """
        variance = self.gain_variance[:per_symbol].sum(0)
        error = self.noise_variance + variance @ np.square(rms) + bias**2
        if steps is not None:
            squares = variance + np.square(self.shrink * self.aligned)
            error += self.time_offset**2 / 12 * (squares @ np.square(steps))
        return float(error)


@checked(complex_valued=("h", "beamformer"))
def air_sum(
    h: ArrayLike,
    beamformer: ArrayLike,
    weights: ArrayLike,
    scales: ArrayLike,
    *,
    convention: Convention = "published",
    csi_error: ArrayLike = 0.0,
    phase_error: float = 0.0,
    time_offset: float = 0.0,
    stream: Stream | None = None,
    clients: ArrayLike | None = None,
) -> AirSum:
    """Precoders (23), effective gains and variances of one over-the-air sum.

    >>> import channels
    >>> scales = channels.transmit_scales([0.5, 0.5], [1.0, 1.0], snr_db=10.0)
    >>> air = channels.air_sum([[1.0], [2.0]], [1.0], [0.5, 0.5], scales)
    >>> air.gains.real.round(6).tolist()  # the server receives the weights
    [0.5, 0.5]

    Args:
        h: channels [clients, antennas] as the server knows them.
        beamformer: a [antennas], not 0; it is normalised.
        weights: q [clients], weights of the mean.
        scales: s [clients] from :func:`transmit_scales`; a client with scale 0 does not transmit.
        convention: definition of the noise variance, see ``channels.precoders``.
        csi_error: variance of the error of a channel coefficient, one number or [clients].
        phase_error: standard deviation of the residual phase, in radians.
        time_offset: largest delay of a client, in symbols, from 0 to 1.
        stream: randomness of the errors; required if one of them is not 0.
        clients: [clients], client indices from which the errors are drawn, so that a client's
            errors do not depend on the other clients. None means 0, 1, ....

    Raises:
        ValueError: the beamformer nulls a client's channel, shapes do not fit, or a value is out
            of range.
    """
    check_convention(convention, 1)
    s = numbers("scales", scales, min_value=0, limit=LARGEST_SCALE)
    tiny = s[(s > 0) & (s < 1 / LARGEST_SCALE)]
    if tiny.size:
        raise ValueError(f"scales contains {tiny[0]}: give 0 or at least {1 / LARGEST_SCALE:g}.")
    channels, a, q, indices = _cell("beamformer", h, beamformer, weights, clients, scales=s.shape)
    csi, shrink = _imperfect(csi_error, phase_error, len(q)), _shrink(phase_error)
    check_time_offset(time_offset)
    if not a.any():
        raise ValueError("the beamformer is 0: give a nonzero beamformer.")
    effective = channels @ (a / np.linalg.norm(a)).conj()  # a^H h_i
    sends = s > 0
    if (sends & (effective == 0)).any():
        nulled = int(np.flatnonzero(sends & (effective == 0))[0])
        raise ValueError(
            f"client {nulled} has |a^H h| = 0: the server cannot receive it at any power. Leave it "
            "out, or choose another beamformer."
        )
    effective = np.where(sends, effective, 1.0)
    nu = float(np.min(np.abs(effective[sends]) / s[sends], initial=np.inf))
    with np.errstate(invalid="ignore"):
        precoders = np.where(sends, q * nu / effective, 0.0)
    ones, variance = np.ones(len(q)), csi / np.abs(effective) ** 2
    relative = _with_errors(ones, variance, phase_error, stream, indices)  # c_i / q_i
    return AirSum(
        weights=q,
        precoders=precoders,
        aligned=q,
        gains=q * relative,
        noise_variance=(1.0 if convention == "published" else 0.5) / nu**2,
        gain_variance=np.square(q) * _variance(ones, variance, shrink),
        shrink=shrink,
        delays=delays(stream, indices, time_offset),
        time_offset=time_offset,
    )


@checked(complex_valued=("h", "receive", "precoders"))
def aligned_sum(
    h: ArrayLike,
    receive: ArrayLike,
    weights: ArrayLike,
    precoders: ArrayLike,
    *,
    csi_error: ArrayLike = 0.0,
    phase_error: float = 0.0,
    time_offset: float = 0.0,
    stream: Stream | None = None,
    clients: ArrayLike | None = None,
) -> AirSum:
    """Effective gains and variances of an over-the-air sum whose precoders are given.

    The server takes the real part of a^H y, so the noise variance is ||a||^2 / 2 per real element.
    The gains a^H h_i alpha_i may differ from the weights q_i.

    >>> import channels
    >>> air = channels.aligned_sum([[1.0], [0.1]], [1.0], [0.5, 0.5], precoders=[0.5, 1.0])
    >>> air.gains.real.round(6).tolist()  # the second client cannot reach its weight
    [0.5, 0.1]

    Args:
        h: channels [clients, antennas] as the server knows them.
        receive: a [antennas], e.g. from :func:`solvers.align_transmitters`; its norm matters, and 0
            means that the server receives nothing.
        weights: q [clients], weights of the mean.
        precoders: alpha [clients], in units of sigma_0 per unit of the elements. Their phases must
            align the signals: a^H h_i alpha_i is real and >= 0.
        csi_error: variance of the error of a channel coefficient, one number or [clients].
        phase_error: standard deviation of the residual phase, in radians.
        time_offset: largest delay of a client, in symbols, from 0 to 1.
        stream: randomness of the errors; required if one of them is not 0.
        clients: [clients], client indices from which the errors are drawn, as in :func:`air_sum`.

    Raises:
        ValueError: the signals are not aligned, shapes do not fit, or a value is out of range.
    """
    alpha = np.asarray(precoders, np.complex128)
    channels, a, q, indices = _cell("receive", h, receive, weights, clients, precoders=alpha.shape)
    csi, shrink = _imperfect(csi_error, phase_error, len(q)), _shrink(phase_error)
    check_time_offset(time_offset)
    with np.errstate(invalid="ignore"):  # infinite precoders
        gains = (channels @ a.conj()) * alpha
        largest = np.linalg.norm(channels, axis=1) * np.linalg.norm(a) * np.abs(alpha)
        # Rounding turns the phase of a gain that is small because the beamformer nearly nulls it.
        turned = np.abs(gains - np.abs(gains)) > 1e-6 * np.abs(gains) + 1e-12 * largest
    bad = turned | ~np.isfinite(gains)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"client {i} has a^H h alpha = {gains[i]:.3g}: give finite precoders with which it is "
            "real and >= 0."
        )
    aligned, norm = np.abs(gains), float(np.vdot(a, a).real)
    variance = csi * norm * np.abs(alpha) ** 2
    return AirSum(
        weights=q,
        precoders=alpha,
        aligned=aligned,
        gains=_with_errors(aligned, variance, phase_error, stream, indices),
        noise_variance=0.5 * norm,
        gain_variance=_variance(aligned, variance, shrink),
        shrink=shrink,
        delays=delays(stream, indices, time_offset),
        time_offset=time_offset,
    )


def _cell(
    name: str,
    h: ArrayLike,
    receive: ArrayLike,
    weights: ArrayLike,
    clients: ArrayLike | None,
    **shapes: tuple[int, ...],
) -> tuple[ComplexArray, ComplexArray, FloatArray, IntArray]:
    """Channels, beamformer, weights and client indices of a cell; ``shapes`` of other arguments."""
    channels, a = np.asarray(h, np.complex128), np.asarray(receive, np.complex128)
    q = numbers("weights", weights, min_value=0, limit=MOST)
    if channels.ndim != 2 or a.shape != channels.shape[1:]:
        raise ValueError(
            f"h has shape {channels.shape} and {name} {a.shape}: give [clients, antennas] and "
            "[antennas]."
        )
    if not (np.isfinite(channels).all() and np.isfinite(a).all()):
        raise ValueError(f"h or {name} is not finite: give finite values.")
    indices = np.arange(len(channels)) if clients is None else np.asarray(clients)
    shapes = {"weights": q.shape, **shapes, "clients": indices.shape}
    if any(shape != (len(channels),) for shape in shapes.values()):
        listing = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"the shapes are {listing}: give [clients] values for each, here ({len(channels)},)."
        )
    return channels, a, q, indices


def _imperfect(csi_error: ArrayLike, phase_error: float, clients: int) -> FloatArray:
    """Variances of the channel errors; checks the phase error as well."""
    csi = numbers("csi_error", csi_error, min_value=0, limit=1e30)
    if csi.shape not in {(), (clients,)}:
        raise ValueError(f"csi_error has shape {csi.shape}: give one number, or [clients].")
    if np.ndim(phase_error) or not 0 <= phase_error <= LARGEST_PHASE_ERROR:
        raise ValueError(
            f"phase_error is {phase_error}: give one finite number from 0 to "
            f"{LARGEST_PHASE_ERROR:g}, in radians."
        )
    return csi


def _shrink(phase_error: float) -> float:
    """E e^(j phi) for a residual phase phi."""
    return float(np.exp(-(phase_error**2) / 2))


def _variance(gains: FloatArray, variance: FloatArray, shrink: float) -> FloatArray:
    """Variance [2, clients] of the real and imaginary parts of what ``_with_errors`` returns."""
    cosine, sine = (1 + shrink**4) / 2 - shrink**2, (1 - shrink**4) / 2
    return np.stack([cosine * gains**2 + variance / 2, sine * gains**2 + variance / 2])


def _with_errors(
    gains: FloatArray,
    variance: FloatArray,
    phase_error: float,
    stream: Stream | None,
    clients: IntArray,
) -> ComplexArray:
    """Gains [clients] of which each has an error of this variance, then a residual phase.

    The gains depend on e_i only through its projection on a, so only the projection is drawn.
    """
    if not variance.any() and not phase_error:
        return gains.astype(np.complex128)
    if stream is None:
        raise ValueError("stream is None: give a Stream from which to draw the channel errors.")
    pairs = stream.child("csi").normals(0, clients, 2).astype(np.float64)
    deviation = np.sqrt(variance / 2) * (pairs[:, 0] + 1j * pairs[:, 1])
    phase = phase_error * stream.child("phase").normals(0, clients, 1)[:, 0].astype(np.float64)
    return np.asarray((gains + deviation) * np.exp(1j * phase))
