"""How long each cell needs to train and send a submodel of a given size, with the best bands."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.bands.least_time import BandCells, least_time


class SizedCells(NamedTuple):
    """Cells whose clients compute and send in proportion to the size of the cell's submodel.

    Args:
        bits: bits per unit [cells, clients]; 0 for a client that does not exist.
        ready: seconds of computation per unit [cells, clients].
        more_bits: further bits [cells, clients], which do not depend on the size.
        more_ready: further seconds [cells, clients].
        snr_hz: SNR x band [cells, clients], > 0.
        bandwidth_hz: [cells].
    """

    bits: FloatArray
    ready: FloatArray
    more_bits: FloatArray
    more_ready: FloatArray
    snr_hz: FloatArray
    bandwidth_hz: FloatArray

    def rows(self, rows: BoolArray | IntArray) -> SizedCells:
        """Some of the cells."""
        return SizedCells(*(array[rows] for array in self))

    def at(self, size: FloatArray) -> BandCells:
        """The uploads of submodels of these sizes [cells]."""
        bits = self.more_bits + size[:, None] * self.bits
        ready = self.more_ready + size[:, None] * self.ready
        return BandCells(bits, ready, self.snr_hz, self.bandwidth_hz)

    def seconds(self, size: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Least seconds [cells] at these sizes, as a bracket; convex and increasing in the size."""
        return least_time(self.at(size))

    def largest(self, end: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Largest whole size [cells] from ``low`` to ``high`` that ends by ``end`` [cells].

        ``low`` must end by then.
        """
        return largest(lambda rows, size: self.rows(rows).at(size).fit(end[rows]), low, high)


def largest(
    fits: Callable[[IntArray, FloatArray], BoolArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Largest whole size [cells] from ``low`` to ``high`` that fits, by bisection.

    Args:
        fits: whether some of the cells, by index, can train these sizes. ``low`` must fit, and so
            must all sizes below one that does.
        low, high: [cells].
    """
    low, high = low.copy(), high.copy()
    while True:
        rows = np.flatnonzero(low < high)
        if not rows.size:
            return low
        middle = np.ceil((low[rows] + high[rows]) / 2)
        good = fits(rows, middle)
        low[rows] = np.where(good, middle, low[rows])
        high[rows] = np.where(good, high[rows], middle - 1)
