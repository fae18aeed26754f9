"""Time and energy of one unit of each cell and draw, and what they imply for all sizes.

With bits and cycles in proportion to q, the size and its fixed part, q units take q times the time
of one unit and, within q tau seconds, q times the least energy v(tau) of one unit within tau.
v is convex, so that its tangents a + s tau bound the energy of any size by a q + s t.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from channels.arrays import FloatArray
from solvers.bands.least_band import upload_seconds
from solvers.joint.energy_cells import EnergyCells
from solvers.joint.fronts import Fronts, Tangents
from solvers.training_rounds.problem import Bands

_START = np.array([1.0, 1.03, 1.1, 1.25, 1.6, 2.2, 3.5, 6.0, 12.0, 30.0, 100.0])
"""First tangents, relative to the shortest time of a unit."""


class Units(Protocol):
    """Energy of one unit against its time; ``solvers.joint.fronts.Fronts`` is one.

    Args:
        soonest: a bracket of the shortest time of a unit, [cells] each.
    """

    soonest: tuple[FloatArray, FloatArray]

    def solve(self, tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Energy, lower bound and slope of one unit within ``tau``, [points, cells] each."""

    def tangents(self, tau: FloatArray) -> Tangents:
        """Bounds that are tight at ``tau`` [points, cells]."""


class FullPower:
    """Units of cells whose clients share the band equally, at full power and speed.

    Args:
        cells: cells; only what grows with the size counts.
        senders: number of clients that share the band, [cells].
    """

    def __init__(self, cells: EnergyCells, senders: FloatArray) -> None:
        snr = cells.gain * cells.power
        able = (cells.bits > 0) & (snr > 0)
        band = np.broadcast_to((cells.band / np.maximum(senders, 1))[:, None], snr.shape)
        upload = upload_seconds(np.where(able, cells.bits, 0.0), band, np.where(able, snr, 1.0))
        busy = np.divide(cells.cycles, cells.speed, np.zeros_like(snr), where=cells.speed > 0)
        joules = cells.kappa * cells.cycles * cells.speed**2 + cells.power * upload
        self.energy: FloatArray = np.asarray(joules.sum(-1))
        self.soonest = ((busy + upload).max(-1),) * 2

    def solve(self, tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """See ``Units``: a cell that has more time waits."""
        energy = np.broadcast_to(self.energy, tau.shape)
        return energy, energy, np.zeros(tau.shape)

    def tangents(self, tau: FloatArray) -> Tangents:
        """See ``Units``."""
        return Tangents(*self.solve(tau)[1:])


def units_of(cells: EnergyCells, bands: Bands) -> Units:
    """The units of cells whose clients share the band in this way."""
    none = np.zeros(cells.bits.shape)
    alone = cells._replace(more_bits=none, more_cycles=none)
    if bands == "equal":
        return FullPower(alone, senders(cells))
    return Fronts(alone)


def senders(cells: EnergyCells) -> FloatArray:
    """Number of clients [cells] that share the band of each cell."""
    return np.asarray(np.count_nonzero(cells.bits + cells.more_bits > 0, axis=-1) * 1.0)


class Model:
    """A growing set of tangents of the energies of all cells and draws.

    Args:
        units: of the cells of all draws at a number of local steps.
        shape: numbers of draws and cells.
        energy: whether energy counts.
    """

    def __init__(self, units: Units, shape: tuple[int, int], energy: bool) -> None:
        self.units, self.shape = units, shape
        self.soonest = units.soonest[1].reshape(shape)
        """Seconds that a unit takes at least, [draws, cells]."""
        self.surely = units.soonest[0].reshape(shape)
        """No unit takes as few seconds, but for rounding errors."""
        none = np.zeros((0, *shape))
        self.tau, self.tangents = none, Tangents(none, none)
        if energy:
            constant = isinstance(units, FullPower)
            self.add(np.multiply.outer(_START[:1] if constant else _START, self.soonest))

    def add(self, tau: FloatArray) -> FloatArray:
        """Add tangents at ``tau`` [points, draws, cells]; the energies of a unit there.

        Times below the shortest are raised to it.
        """
        flat = np.maximum(tau, self.soonest).reshape(len(tau), -1)
        energy, bound, slope = self.units.solve(flat)
        good = np.isfinite(bound) & np.isfinite(slope)
        slope = np.where(good, slope, 0.0)
        base = np.where(good, bound - slope * flat, 0.0)
        new = Tangents(base.reshape(tau.shape), slope.reshape(tau.shape))
        pairs = zip(self.tangents, new, strict=True)
        self.tangents = Tangents(*(np.concatenate(pair) for pair in pairs))
        self.tau = np.concatenate([self.tau, flat.reshape(tau.shape)])
        return np.asarray(np.where(np.isfinite(energy), energy, np.inf).reshape(tau.shape))

    def refine(self, tau: FloatArray) -> FloatArray:
        """Add tangents at ``tau`` [draws, cells] and next to it; energies of a unit at ``tau``."""
        if isinstance(self.units, FullPower):
            return np.asarray(self.units.energy.reshape(self.shape))
        below, above = self.tau < tau, self.tau > tau
        left = np.where(below, self.tau, 0.0).max(0)
        left = np.where(below.any(0), np.sqrt(left * tau), tau)
        right = np.where(above, self.tau, np.inf).min(0)
        right = np.where(above.any(0), np.sqrt(right * tau), tau * 8)
        return np.asarray(self.add(np.stack([tau, left, right]))[0])
