"""Bits per second and hertz at an SNR: Shannon's capacity, or a table of modulation and coding."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import FloatArray
from channels.loads import amounts

RateLaw = Literal["shannon", "mcs"]
"""How rates follow from SNRs: Shannon's capacity, or the table of modulation and coding."""
EFFICIENCY = np.array([
    0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023,
    4.5234, 5.1152, 5.5547,
])  # fmt: skip
"""Bits per symbol of CQI 1 to 15: Table 5.2.2.1-2 of 3GPP TS 38.214, QPSK to 64QAM."""
THRESHOLD_DB = np.array([
    -6.7, -4.7, -2.3, 0.2, 2.4, 4.3, 5.9, 8.1, 10.3, 11.7, 14.1, 16.3, 18.7, 21.0, 22.7,
])  # fmt: skip
"""SNRs from which on at most 10 % of the blocks of CQI 1 to 15 are lost, in dB.

They are those that simulators of LTE and 5G commonly use with this table, for white noise; the
standard has none. They are 2.8 to 6.1 dB above the SNRs at which Shannon's capacity is as large.
"""
BLOCK_ERROR = 0.1
"""Fraction of the blocks that are lost and sent again."""
_LN_2 = np.log(2)


@checked()
def spectral_efficiency(snr: ArrayLike, law: RateLaw = "shannon") -> FloatArray:
    """Bits per second and hertz that arrive at an SNR.

    ``shannon`` is log2(1 + SNR). With ``mcs`` a client sends with the most efficient entry k of the
    table of 3GPP TS 38.214 (CQI 1 to 15, QPSK to 64QAM) whose threshold its SNR reaches. A block is
    lost with probability 0.1 and sent again until it arrives (simple ARQ), 1 / 0.9 times in the
    mean:

        0.9 x efficiency_k.

    Below the first threshold, -6.7 dB, it sends blocks of the first entry r = ceil(threshold / SNR)
    times, and the receiver adds their SNRs (chase combining): the rate is divided by r.

    >>> import channels
    >>> channels.spectral_efficiency([0.1, 1.0, 1e3], "mcs").round(3).tolist()
    [0.046, 0.339, 4.999]

    Args:
        snr: signal over noise and interference as a ratio, in the band in which the client sends;
            any shape, finite and >= 0. At 0 nothing arrives.
        law: "shannon" or "mcs".
    """
    check_law(law)
    return efficiency_at(amounts("snr", snr), law)


def check_law(law: str) -> None:
    """Raise unless ``law`` is known."""
    if law not in get_args(RateLaw):
        raise ValueError(f'law is {law!r}: choose "shannon" or "mcs".')


def efficiency_at(snr: FloatArray, law: RateLaw) -> FloatArray:
    """As :func:`spectral_efficiency`, without checks."""
    if law == "shannon":
        return np.asarray(np.log1p(snr) / _LN_2)
    thresholds = 10 ** (THRESHOLD_DB / 10)
    entry = np.searchsorted(thresholds, snr, side="right")
    with np.errstate(divide="ignore", over="ignore"):
        repeats = np.where(entry > 0, 1.0, np.ceil(thresholds[0] / snr))
    return np.asarray((1 - BLOCK_ERROR) * EFFICIENCY[np.maximum(entry, 1) - 1] / repeats)


def band_efficiency(snr: FloatArray, law: RateLaw) -> FloatArray:
    """Efficiency of a band whose subcarriers have the SNRs ``snr`` [..., subcarriers].

    Shannon's is the mean over the subcarriers. One modulation and coding holds for the whole band,
    as in 5G NR: that of the SNR of a flat band with the same capacity, :func:`effective_snr`.
    """
    if law == "shannon":
        return np.asarray((np.log1p(snr) / np.log(2)).mean(-1))
    return efficiency_at(effective_snr(snr), law)


def effective_snr(snr: FloatArray) -> FloatArray:
    """SNR of a flat band with the mean capacity of the subcarriers, [...].

    Args:
        snr: [..., subcarriers].
    """
    return np.asarray(np.expm1(np.log1p(snr).mean(-1)))
