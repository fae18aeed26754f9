"""Channel estimates from pilots: what they leave unknown."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import FloatArray
from channels.loads import amounts
from channels.validation import common_shape


@checked()
def estimation_error(symbols: ArrayLike, snr: ArrayLike) -> FloatArray:
    """Variance of the error of a channel estimate from N pilots, over the mean channel power.

    The receiver sees N known symbols over a channel coefficient h ~ CN(0, g) in white noise. The
    estimate of least mean squared error leaves an error of variance

        g / (1 + N SNR),    SNR = P g / (N0 B),

    per antenna (Hassibi and Hochwald, IEEE Trans. Inf. Theory 49(4), 2003, one transmit antenna).
    It is uncorrelated with the estimate. Correlation of antennas and a line of sight, which a
    receiver could use as well, do not count.

    >>> import channels
    >>> channels.estimation_error([0, 1, 10], snr=10.0).round(4).tolist()
    [1.0, 0.0909, 0.0099]

    Args:
        symbols: N, pilot symbols over the whole band, finite and >= 0.
        snr: mean SNR per antenna over that band, as a ratio, finite and >= 0.

    Returns:
        Ratios from 0 to 1; the arguments are broadcast.
    """
    number, ratio = amounts("symbols", symbols), amounts("snr", snr)
    shapes = {"symbols": number.shape, "snr": ratio.shape}
    common_shape(shapes, shapes.values(), "shapes that broadcast")
    return np.asarray(1 / (1 + number * ratio))
