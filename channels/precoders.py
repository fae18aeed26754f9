"""Precoders of over-the-air sums: what a cell's clients transmit, and how accurate the sum is.

The server estimates sum_i q_i x_i, element by element, as m^H (sum_i h_i alpha_i x_i + z) with
m = a / nu, ||a|| = 1 and z ~ CN(0, sigma_0^2 I) (HIST, (22)). The precoders alpha_i =
q_i / (m^H h_i) invert the channels (23), and nu is the largest value that all power limits allow.
Let s_i be the scale of client i's signal at unit gain; then nu = min_i |a^H h_i| / s_i, in units
of sigma_0:

- ``published``: s_i = sqrt(sigma_0^2 / P_i). The power limit is |alpha_i|^2 <= q_i^2 P_i. Elements
  of unit variance then use at most the fraction q_i^2 of the power P_i; unnormalised elements may
  exceed P_i. The error of the complex estimate, sigma_0^2 / nu^2 per element (25), is added to
  real elements unchanged.
- ``physical``: s_i = q_i rms_i sqrt(e sigma_0^2 / P_i), where rms_i is the root mean square of
  client i's elements, known to the server, and e is the number of elements per symbol. The
  weakest client meets its limit P_i on the mean power per symbol with equality. The server takes
  the real part, so the variance is sigma_0^2 / (2 nu^2) per real element.

The server knows h; the channel applies h + e_i with e_i ~ CN(0, csi_error I), and rotates client
i's signal by a residual phase ~ N(0, phase_error^2). Both errors are constant during an upload.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.decibels import LARGEST_DB
from channels.links import snr_linear
from channels.streams import Stream
from channels.validation import common_shape

Convention = Literal["published", "physical"]


@dataclass(frozen=True, eq=False)
class AirSum:
    """Parameters of one over-the-air sum: precoders, effective gains and variances.

    Args:
        weights: q [clients], weights of the mean.
        precoders: alpha [clients] complex, in units of sigma_0 per unit of the elements.
        gains: c [clients] complex, m^H (h_i + e_i) alpha_i rotated by the phase error; equal to
            q_i without channel and phase errors.
        noise_variance: noise variance per real element of the estimate.
        gain_variance: [2, clients], variance of c_i's real and imaginary part over the errors.
        shrink: E c_i / q_i; below 1 if there is a phase error.
    """

    weights: FloatArray
    precoders: ComplexArray
    gains: ComplexArray
    noise_variance: float
    gain_variance: FloatArray
    shrink: float

    def predicted_error(self, rms: FloatArray, mean_rms: float, per_symbol: int = 1) -> float:
        """Mean squared error per real element, over noise and channel errors.

        Args:
            rms: [clients], root mean square of each client's elements.
            mean_rms: root mean square of the weighted mean; has an effect only with a phase error.
            per_symbol: elements per symbol; two elements on a symbol interfere with each other.
        """
        variance = self.gain_variance[:per_symbol].sum(0)
        bias = (1 - self.shrink) * mean_rms
        return float(self.noise_variance + variance @ np.square(rms) + bias**2)


@checked()
def transmit_scales(
    weights: ArrayLike,
    rms: ArrayLike,
    *,
    snr_db: ArrayLike,
    convention: Convention = "published",
    elements_per_symbol: int = 1,
) -> FloatArray:
    """Scales s_i [..., clients] of the clients' signals at unit gain, in units of sigma_0.

    The best beamformer maximises min_i |a^H h_i| / s_i: pass these values as ``scales`` to
    :func:`solvers.optimize_beamformer`.

    Args:
        weights: q [..., clients], weights of the mean, >= 0.
        rms: [..., clients], root mean square of each client's elements, >= 0.
        snr_db: P_i / sigma_0^2 [..., clients] or one number, in dB; within [-300, 300].
        convention: definition of transmit power, see ``channels.precoders``.
        elements_per_symbol: 1, or 2 on I and Q (``physical`` only).

    Raises:
        ValueError: the convention is unknown or conflicts with ``elements_per_symbol``, a value is
            negative, not finite or out of range, or the shapes do not fit.
    """
    check_convention(convention, elements_per_symbol)
    q, size = _numbers("weights", weights, min_value=0), _numbers("rms", rms, min_value=0)
    amplitude = np.sqrt(snr_linear(_numbers("snr_db", snr_db, limit=LARGEST_DB)))
    shapes = {"weights": q.shape, "rms": size.shape, "snr_db": amplitude.shape}
    common_shape(shapes, shapes.values(), "[..., clients] for each; one number applies to all")
    if convention == "published":
        return np.asarray((q > 0) / amplitude)
    return np.asarray(q * size * np.sqrt(elements_per_symbol) / amplitude)


def check_convention(convention: str, elements_per_symbol: int) -> None:
    """Raise unless the convention is known and supports ``elements_per_symbol``.

    Raises:
        ValueError: the convention or the number is unknown, or the convention is ``published``
            with two elements per symbol.
    """
    if convention not in ("published", "physical"):
        raise ValueError(f"convention is {convention!r}: choose 'published' or 'physical'.")
    if elements_per_symbol not in (1, 2):
        raise ValueError(f"elements_per_symbol is {elements_per_symbol!r}: choose 1 or 2.")
    if convention == "published" and elements_per_symbol == 2:
        raise ValueError(
            "elements_per_symbol=2 conflicts with convention='published', which sends one real "
            "element per symbol: choose convention='physical'."
        )


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
    stream: Stream | None = None,
    clients: ArrayLike | None = None,
) -> AirSum:
    """Precoders (23), effective gains and variances of one over-the-air sum.

    Args:
        h: channels [clients, antennas] as the server knows them.
        beamformer: a [antennas], not 0; it is normalised.
        weights: q [clients], weights of the mean.
        scales: s [clients] from :func:`transmit_scales`; a client with scale 0 does not transmit.
        convention: definition of the noise variance, see ``channels.precoders``.
        csi_error: variance of the error of a channel coefficient, one number or [clients].
        phase_error: standard deviation of the residual phase, in radians.
        stream: randomness of the two errors; required if one of them is not 0.
        clients: [clients], client indices from which the errors are drawn, so that a client's
            errors do not depend on the other clients. None means 0, 1, ....

    Raises:
        ValueError: the beamformer nulls a client's channel, shapes do not fit, or a value is out
            of range.
    """
    check_convention(convention, 1)
    channels, a = np.asarray(h, np.complex128), np.asarray(beamformer, np.complex128)
    q, s = _numbers("weights", weights, min_value=0), _numbers("scales", scales, min_value=0)
    csi, phase = _numbers("csi_error", csi_error, min_value=0), phase_error
    if csi.shape not in {(), (len(channels),)}:
        raise ValueError(f"csi_error has shape {csi.shape}: give one number, or [clients].")
    if np.ndim(phase) or not (np.isfinite(phase) and phase >= 0):
        raise ValueError(f"phase_error is {phase}: give one finite number >= 0, in radians.")
    if channels.ndim != 2 or a.shape != channels.shape[1:]:
        raise ValueError(
            f"h has shape {channels.shape} and beamformer {a.shape}: give [clients, antennas] and "
            "[antennas]."
        )
    if not (np.isfinite(channels).all() and np.isfinite(a).all() and a.any()):
        raise ValueError(
            "h or beamformer is not finite, or the beamformer is 0: give finite values and a "
            "nonzero beamformer."
        )
    numbers = np.arange(len(channels)) if clients is None else np.asarray(clients)
    if any(given.shape != (len(channels),) for given in (q, s, numbers)):
        raise ValueError(
            f"weights have shape {q.shape}, scales {s.shape} and clients {numbers.shape}: give "
            f"[clients] values for each, here ({len(channels)},)."
        )
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
    variance = csi / np.abs(effective) ** 2
    relative = _errors(variance, phase_error, stream, numbers)
    shrink = float(np.exp(-(phase_error**2) / 2))
    cosine, sine = (1 + shrink**4) / 2 - shrink**2, (1 - shrink**4) / 2
    return AirSum(
        weights=q,
        precoders=precoders,
        gains=q * relative,
        noise_variance=(1.0 if convention == "published" else 0.5) / nu**2,
        gain_variance=np.square(q) * np.stack([cosine + variance / 2, sine + variance / 2]),
        shrink=shrink,
    )


def _errors(
    variance: FloatArray, phase_error: float, stream: Stream | None, clients: IntArray
) -> ComplexArray:
    """Relative gains c_i / q_i = (1 + a^H e_i / a^H h_i) e^(j phi_i).

    They depend on e_i only through its projection on a, so only the projection is drawn.
    """
    if not variance.any() and not phase_error:
        return np.ones(len(variance), np.complex128)
    if stream is None:
        raise ValueError("stream is None: give a Stream from which to draw the channel errors.")
    pairs = stream.child("csi").normals(0, clients, 2).astype(np.float64)
    deviation = np.sqrt(variance / 2) * (pairs[:, 0] + 1j * pairs[:, 1])
    phase = phase_error * stream.child("phase").normals(0, clients, 1)[:, 0].astype(np.float64)
    return np.asarray((1 + deviation) * np.exp(1j * phase))


def _numbers(
    name: str, values: ArrayLike, min_value: float = -np.inf, limit: float = np.inf
) -> FloatArray:
    """``values`` as float64, finite, at least ``min_value`` and of magnitude up to ``limit``.

    Raises:
        ValueError: a value is out of range.
    """
    given = np.asarray(values, np.float64)
    bad = ~(np.isfinite(given) & (given >= min_value) & (np.abs(given) <= limit))
    if bad.any():
        wanted = "finite numbers" + (f" >= {min_value:g}" if min_value > -np.inf else "")
        wanted += f" within [{-limit:g}, {limit:g}]" if limit < np.inf else ""
        raise ValueError(f"{name} contains {given[bad].flat[0]}: give {wanted}.")
    return given
