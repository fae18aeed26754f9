"""Decibels, dBm and watts, and the power of thermal noise."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import FloatArray
from channels.validation import LEAST, MOST, in_range

THERMAL_DBM_PER_HZ = -174.0
"""Density of thermal noise at 290 K, k T, rounded as in 3GPP link budgets."""
LARGEST_DB = 300.0
"""Largest magnitude in decibels; beyond this, squared amplitudes overflow single precision."""
LARGEST_POWER_W = 10.0
"""Largest transmit power of a client: 40 dBm. A larger number is a power in dBm."""
LARGEST_NOISE_DBM_PER_HZ = -100.0
"""Largest noise density. A larger number is a density in watts per hertz, or a noise power."""


@checked()
def dbm_to_watts(power_dbm: ArrayLike) -> FloatArray:
    """Convert dBm to watts: 20 dBm are 0.1 W, 23 dBm are 0.2 W.

    >>> import channels
    >>> channels.dbm_to_watts([0.0, 20.0]).tolist()
    [0.001, 0.1]

    Args:
        power_dbm: powers in dBm, any shape; within [-300, 300].
    """
    power = np.asarray(power_dbm, dtype=np.float64)
    bad = ~(np.abs(power) <= LARGEST_DB)
    if bad.any():
        raise ValueError(f"power_dbm contains {power[bad].flat[0]}: give dBm within [-300, 300].")
    return np.asarray(10 ** (power / 10) / 1000)


@checked()
def watts_to_dbm(power_w: ArrayLike) -> FloatArray:
    """Convert watts to dBm.

    >>> import channels
    >>> channels.watts_to_dbm([0.1, 1.0]).tolist()
    [20.0, 30.0]

    Args:
        power_w: powers in watts, any shape; finite and > 0.
    """
    power = np.asarray(power_w, dtype=np.float64)
    bad = ~((power >= LEAST) & (power <= MOST))
    if bad.any():
        raise ValueError(
            f"power_w contains {power[bad].flat[0]}: give finite watts > 0. A power in dBm is a "
            "logarithm already; convert it with dbm_to_watts."
        )
    return np.asarray(10 * np.log10(1000 * power))


@checked()
def noise_power_dbm(
    bandwidth_hz: ArrayLike,
    noise_figure_db: float = 0.0,
    noise_dbm_per_hz: float = THERMAL_DBM_PER_HZ,
) -> FloatArray:
    """Noise power of a receiver, N0 + 10 log10(B) + NF in dBm.

    >>> import channels
    >>> round(float(channels.noise_power_dbm(1e6, noise_figure_db=5.0)), 3)
    -109.0

    Args:
        bandwidth_hz: B, any shape; finite and > 0.
        noise_figure_db: NF of the receiver in dB, from 0 to 60.
        noise_dbm_per_hz: N0 in dBm/Hz, from -300 to -100.
    """
    band = np.asarray(bandwidth_hz, dtype=np.float64)
    bad = ~((band >= LEAST) & (band <= MOST))
    if bad.any():
        raise ValueError(f"bandwidth_hz contains {band[bad].flat[0]}: give finite hertz > 0.")
    check_noise(noise_figure_db, noise_dbm_per_hz)
    return np.asarray(noise_dbm_per_hz + 10 * np.log10(band) + noise_figure_db)


def check_noise(noise_figure_db: float, noise_dbm_per_hz: float) -> None:
    """Raise unless the noise figure and the noise density are in their ranges."""
    if not 0 <= noise_figure_db <= 60:
        raise ValueError(f"noise_figure_db is {noise_figure_db}: give 0 to 60 dB.")
    if not -LARGEST_DB <= noise_dbm_per_hz <= LARGEST_NOISE_DBM_PER_HZ:
        raise ValueError(
            f"noise_dbm_per_hz is {noise_dbm_per_hz}: give a density from -300 to -100 dBm/Hz, "
            "e.g. -174. Convert watts with watts_to_dbm."
        )


def gains_in_range(gain_db: ArrayLike, shape: tuple[str, int | tuple[int, ...]]) -> FloatArray:
    """Mean channel gains in dB, of a shape as in :func:`in_range`."""
    gain = in_range("gain_db", gain_db, shape, limit=LARGEST_DB)
    if (gain > 0).any():
        raise ValueError(
            f"gain_db contains {gain.max():g}: a mean channel gain is at most 0 dB. Give minus the "
            "path loss, e.g. -path_loss_db(distance_m)."
        )
    return gain


def check_without_gains(others: Mapping[str, object]) -> None:
    """Raise if the arguments beside SNRs contain gains."""
    if "gain_db" in others:
        raise TypeError("gain_db conflicts with snr_db, which fixes the gains: omit one.")


def powers_in_range(
    transmit_power_w: ArrayLike, shape: tuple[str, int | tuple[int, ...]]
) -> FloatArray:
    """Transmit powers in watts, of a shape as in :func:`in_range`."""
    power = in_range("transmit_power_w", transmit_power_w, shape, above=0)
    if (power > LARGEST_POWER_W).any():
        dbm = float(power.max())
        raise ValueError(
            f"transmit_power_w contains {dbm:g}, and a client sends at most {LARGEST_POWER_W:g} W "
            f"(40 dBm). Give watts: dbm_to_watts({dbm:g}) converts dBm."
        )
    return power
