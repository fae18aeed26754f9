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

Precoders of least mean squared error do not invert the channels: :func:`solvers.align_transmitters`
computes them, with power and noise as in ``physical``, and clients in a fade arrive with less than
their weight. :mod:`channels.air_sums` computes the gains and the noise of either.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import FloatArray
from channels.decibels import LARGEST_DB
from channels.links import snr_linear
from channels.validation import common_shape

Convention = Literal["published", "physical"]


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

    >>> import channels
    >>> weights, rms = [0.5, 0.5], [1.0, 2.0]
    >>> scales = channels.transmit_scales(weights, rms, snr_db=20.0, convention="physical")
    >>> scales.round(6).tolist()
    [0.05, 0.1]

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
    q, size = numbers("weights", weights, min_value=0), numbers("rms", rms, min_value=0)
    amplitude = np.sqrt(snr_linear(numbers("snr_db", snr_db, limit=LARGEST_DB)))
    shapes = {"weights": q.shape, "rms": size.shape, "snr_db": amplitude.shape}
    common_shape(shapes, shapes.values(), "[..., clients] for each; one number applies to all")
    if convention == "published":
        return np.asarray((q > 0) / amplitude)
    return np.asarray(q * size * np.sqrt(elements_per_symbol) / amplitude)


def check_convention(convention: str, elements_per_symbol: int) -> None:
    """Raise unless the convention is known and supports ``elements_per_symbol``."""
    if convention not in ("published", "physical"):
        mmse = " For 'mmse', solvers.align_transmitters decides precoders." * (convention == "mmse")
        raise ValueError(f"convention is {convention!r}: choose 'published' or 'physical'.{mmse}")
    if elements_per_symbol not in (1, 2):
        raise ValueError(f"elements_per_symbol is {elements_per_symbol!r}: choose 1 or 2.")
    if convention == "published" and elements_per_symbol == 2:
        raise ValueError(
            "elements_per_symbol=2 conflicts with convention='published', which sends one real "
            "element per symbol: choose convention='physical'."
        )


def numbers(
    name: str, values: ArrayLike, min_value: float = -np.inf, limit: float = np.inf
) -> FloatArray:
    """``values`` as float64, finite, at least ``min_value`` and of magnitude up to ``limit``."""
    array = np.asarray(values, np.float64)
    bad = ~(np.isfinite(array) & (array >= min_value) & (np.abs(array) <= limit))
    if bad.any():
        interval = "finite numbers" + (f" >= {min_value:g}" if min_value > -np.inf else "")
        interval += f" within [{-limit:g}, {limit:g}]" if limit < np.inf else ""
        raise ValueError(f"{name} contains {array[bad].flat[0]}: give {interval}.")
    return array
