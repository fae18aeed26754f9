"""Water-filling: the powers of parallel subcarriers with the largest rate."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked
from channels.arrays import FloatArray
from channels.validation import common_shape
from solvers.arrays import finite
from solvers.outcome import Outcome
from solvers.solution import Solution

LN2 = np.log(2)


@checked()
def water_filling(
    gain_per_noise: ArrayLike, power: ArrayLike, bandwidth: ArrayLike
) -> Solution[FloatArray]:
    """Powers of subcarriers with which a client's rate is largest.

    Solves  max sum_k b log2(1 + p_k G_k / b)  over p_k >= 0 with  sum_k p_k <= P,  where each of
    the K subcarriers has b = B / K. With the water level mu, p_k = max(0, mu - b / G_k): powers
    fill the subcarriers of least noise first (Cover and Thomas, Elements of Information Theory,
    2nd ed., Section 9.4). The level is exact: sorted by noise, the m best subcarriers are used,
    with the largest m whose level is above the noise of the last one.

    >>> import solvers
    >>> solution = solvers.water_filling([4e6, 1e6, 1e4], power=1.0, bandwidth=3e6)
    >>> solution.value.round(3).tolist(), round(float(solution.objective))
    ([0.875, 0.125, 0.0], 2339850)

    Args:
        gain_per_noise: G_k [..., subcarriers], power gain over noise density in Hz/W, finite and
            >= 0, as ``ChannelDraw.gain_per_noise`` of a flat channel.
        power: P [...], in watts, >= 0.
        bandwidth: B [...], in Hz, > 0.

    Leading axes are a batch, and broadcast.

    Returns:
        Powers [..., subcarriers] in watts, which sum to P where a subcarrier has a gain. The
        objective is the rate in bit/s, which is maximised; the bound is that of the Lagrangian dual
        at the multiplier b / (ln 2 mu), which no powers exceed. They agree to rounding errors.
    """
    start = time.perf_counter()
    gain = finite("gain_per_noise", gain_per_noise, "Hz/W")
    watts = finite("power", power, "watts")
    band = finite("bandwidth", bandwidth, "Hz", above=True)
    if not gain.ndim or not gain.shape[-1]:
        raise ValueError(
            f"gain_per_noise has shape {gain.shape}: give [..., subcarriers], at least one."
        )
    shapes = {"gain_per_noise": gain.shape, "power": watts.shape, "bandwidth": band.shape}
    layout = "[..., subcarriers], and [...] for power and bandwidth"
    compared = (gain.shape, (*watts.shape, 1), (*band.shape, 1))
    shape = common_shape(shapes, compared, layout)
    width = np.broadcast_to(band[..., None] / gain.shape[-1], shape)
    total = np.broadcast_to(watts[..., None], (*shape[:-1], 1))
    with np.errstate(divide="ignore", over="ignore"):
        noise = width / np.broadcast_to(gain, shape)  # watts; inf without a gain
    least = np.min(noise, axis=-1, keepdims=True)
    # Relative to the least noise, so that rounding errors do not hide powers far below it.
    above = np.where(np.isfinite(noise), noise - np.where(np.isfinite(least), least, 0.0), np.inf)
    depth = _depth(above, total)
    powers = np.maximum(depth - above, 0.0)
    used = powers.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        price = width[..., :1] / (least + depth)  # ln 2 times the multiplier
    # The powers maximise the Lagrangian at this multiplier, whatever they sum to.
    dual = (width * np.log1p(powers / noise)).sum(-1) + (price * (total - used))[..., 0]
    powers *= np.divide(total, used, out=np.zeros_like(used), where=used > 0)
    rate = (width * np.log1p(powers / noise)).sum(-1) / LN2
    bound = np.maximum(dual / LN2, rate)
    outcome = Outcome(powers.reshape(-1, shape[-1]), rate.reshape(-1), bound.reshape(-1))
    feasible = np.ones(rate.size, dtype=np.bool_)
    return outcome.solution(feasible, shape[:-1], gain_per_noise, backend="exact", start=start)


def _depth(above: FloatArray, total: FloatArray) -> FloatArray:
    """Water level [..., 1] over the least noise; 0 where no subcarrier has a gain.

    Args:
        above: [..., subcarriers], noise of each over the least; inf without a gain.
        total: [..., 1], power.
    """
    order = np.sort(above, axis=-1)
    usable = np.isfinite(order)
    depths = (total + np.where(usable, order, 0.0).cumsum(-1)) / np.arange(1, above.shape[-1] + 1)
    filled = usable & (depths > order)
    last = np.maximum(filled.sum(-1, keepdims=True) - 1, 0)
    return np.where(filled.any(-1, keepdims=True), np.take_along_axis(depths, last, -1), 0.0)
