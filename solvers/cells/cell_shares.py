"""What clients need of a cell's band to end by some time, with equal and with optimal bands.

With b_ij(T) the least band with which client i ends by T in cell j (see ``bands.least_band``) and
w_ij = b_ij(T) / B_j, the clients S of cell j can end by T

- with optimal bands if and only if  sum_{i in S} w_ij <= 1;
- with equal bands B_j / n, n = |S|, if and only if  n max_{i in S} w_ij <= 1.

Equal bands are bands, so that the first condition is necessary for both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from channels.arrays import FloatArray, IntArray
from solvers.bands.allocate import soonest
from solvers.bands.least_band import upload_seconds
from solvers.bands.least_time import BandCells
from solvers.bands.select import bands_at


@dataclass(frozen=True, eq=False)
class CellShares(ABC):
    """Clients that can upload to one of several cells.

    Args:
        bits: s [clients], > 0.
        ready: [clients], seconds until a client can send.
        snr_hz: [clients, cells], P g / N0; 0 where a client cannot send.
        bandwidth_hz: B [cells].
        fewest, most: [cells], limits of the number of clients.
    """

    bits: FloatArray
    ready: FloatArray
    snr_hz: FloatArray
    bandwidth_hz: FloatArray
    fewest: IntArray
    most: IntArray

    join: ClassVar[np.ufunc]
    """How the shares of a cell's clients combine."""

    def shares(self, end: float) -> FloatArray:
        """w [clients, cells] at a time; infinite for clients that end later in any band."""
        bits, ready = (np.broadcast_to(a, self.snr_hz.T.shape) for a in (self.bits, self.ready))
        rows = BandCells(bits, ready, self.snr_hz.T, self.bandwidth_hz)
        ends = np.full(len(self.bandwidth_hz), end)
        return np.asarray(bands_at(rows, ends).T / self.bandwidth_hz)

    def alone(self, sharing: int | IntArray = 1) -> FloatArray:
        """Seconds [clients, cells] of clients with the equal band of ``sharing`` clients."""
        band = np.broadcast_to(self.bandwidth_hz / sharing, self.snr_hz.shape)
        bits = np.broadcast_to(self.bits[:, None], band.shape)
        return self.ready[:, None] + upload_seconds(bits, band, self.snr_hz)

    def seconds(self, cell_of: IntArray, cells: IntArray | None = None) -> FloatArray:
        """Seconds of each of ``cells``, None for all, [cells]; 0 for others or without clients."""
        ends = np.zeros(len(self.bandwidth_hz))
        for cell in np.arange(len(ends)) if cells is None else cells:
            clients = np.flatnonzero(cell_of == cell)
            ends[cell] = self.cell_seconds(cell, clients) if clients.size else 0.0
        return ends

    @abstractmethod
    def cell_seconds(self, cell: int, clients: IntArray) -> float:
        """Seconds of a cell with these clients, one at least."""

    @abstractmethod
    def load(self, joined: FloatArray, number: IntArray) -> FloatArray:
        """Load of cells, at most 1 if their clients end in time.

        Args:
            joined: shares of the clients, joined.
            number: number of clients.
        """

    @abstractmethod
    def others(self, shares: FloatArray, joined: FloatArray, cell_of: IntArray) -> FloatArray:
        """Joined shares [clients] of the other clients of each client's cell.

        Args:
            shares: w [clients] in the client's own cell.
            joined: [cells].
            cell_of: [clients].
        """

    @abstractmethod
    def linear(self, end: float) -> FloatArray:
        """Shares [clients, cells] whose sum in each cell is at most 1 if all end by ``end``."""


class OptimalBands(CellShares):
    """Cells whose bands are optimal."""

    join = np.add

    def cell_seconds(self, cell: int, clients: IntArray) -> float:
        """See :class:`CellShares`."""
        snr_hz = self.snr_hz[clients, cell]
        if not snr_hz.all():
            return np.inf
        rows = self.bits[clients][None], self.ready[clients][None], snr_hz[None]
        return float(soonest(BandCells(*rows, self.bandwidth_hz[cell : cell + 1]))[1][0])

    def load(self, joined: FloatArray, number: IntArray) -> FloatArray:
        """See :class:`CellShares`."""
        return joined

    def others(self, shares: FloatArray, joined: FloatArray, cell_of: IntArray) -> FloatArray:
        """See :class:`CellShares`."""
        return np.maximum(joined[cell_of] - shares, 0)

    def linear(self, end: float) -> FloatArray:
        """See :class:`CellShares`."""
        return self.shares(end)


class EqualBands(CellShares):
    """Cells whose clients have equal bands."""

    join = np.maximum

    def cell_seconds(self, cell: int, clients: IntArray) -> float:
        """See :class:`CellShares`."""
        band = np.full(len(clients), self.bandwidth_hz[cell] / len(clients))
        upload = upload_seconds(self.bits[clients], band, self.snr_hz[clients, cell])
        return float((self.ready[clients] + upload).max())

    def load(self, joined: FloatArray, number: IntArray) -> FloatArray:
        """See :class:`CellShares`."""
        return number * joined

    def others(self, shares: FloatArray, joined: FloatArray, cell_of: IntArray) -> FloatArray:
        """See :class:`CellShares`."""
        result = joined[cell_of]
        order = np.lexsort((-shares, cell_of))  # the largest share of each cell first
        starts = np.flatnonzero(np.diff(cell_of[order], prepend=-1))
        second = np.append(shares[order], 0.0)[starts + 1]
        alone = np.append(cell_of[order], -1)[starts + 1] != cell_of[order[starts]]
        result[order[starts]] = np.where(alone, 0.0, second)
        return result

    def linear(self, end: float) -> FloatArray:
        """See :class:`CellShares`: the n clients of a cell need at least 1 / n each."""
        sharing = self.sharing(end)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(sharing > 0, 1 / sharing, np.inf))

    def sharing(self, end: float) -> FloatArray:
        """Most clients [clients, cells] of a cell with whom each one ends by ``end``, or 0."""
        with np.errstate(divide="ignore"):
            number = np.minimum(np.floor(1 / self.shares(end)), len(self.bits))
        # The division's rounding errors can be at an integer.
        number += self.alone(np.maximum(number + 1, 1)) <= end
        number -= self.alone(np.maximum(number, 1)) > end
        return np.asarray(np.clip(number, 0, len(self.bits)))
