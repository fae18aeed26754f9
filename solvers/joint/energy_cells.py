"""The least energy of cells whose clients train submodels of given sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray
from solvers.energy import allocate_energy
from solvers.joint.cells import SizedCells
from solvers.solution import Solution


class EnergyCells(NamedTuple):
    """The cells of one problem; sizes are in steps of the granularity.

    Args:
        bits, cycles: per step, [cells, clients].
        more_bits, more_cycles: those that do not depend on the size, [cells, clients].
        gain, power, speed, kappa: [cells, clients].
        band: [cells].
    """

    bits: FloatArray
    cycles: FloatArray
    more_bits: FloatArray
    more_cycles: FloatArray
    gain: FloatArray
    power: FloatArray
    speed: FloatArray
    kappa: FloatArray
    band: FloatArray

    def solve(self, sizes: FloatArray, deadline: float) -> Solution[Any]:
        """Least energy of each cell with ``sizes`` [..., cells]."""
        size = sizes[..., None]
        return allocate_energy(
            self.more_bits + size * self.bits,
            self.more_cycles + size * self.cycles,
            self.gain,
            self.band,
            deadline_seconds=deadline,
            max_power_watts=self.power,
            max_cpu_hz=self.speed,
            kappa=self.kappa,
        )

    def able(self) -> BoolArray:
        """Cells [cells] that can take on units: all of their clients can compute and send them."""
        snr = self.gain * self.power
        able = ((snr > 0) | (self.bits == 0)) & ((self.speed > 0) | (self.cycles == 0))
        return np.asarray(able.all(-1))

    def stuck(self) -> BoolArray:
        """Cells [cells] that cannot finish their fixed part, because of one of their clients."""
        snr = self.gain * self.power
        stuck = ((snr == 0) & (self.more_bits > 0)) | ((self.speed == 0) & (self.more_cycles > 0))
        return np.asarray(stuck.any(-1))

    def at_full_power(self) -> SizedCells:
        """The cells at full power and speed; clients without them have no work."""
        snr = self.gain * self.power
        ready, more = (
            np.divide(c, self.speed, np.zeros_like(c), where=self.speed > 0)
            for c in (self.cycles, self.more_cycles)
        )
        bits, more_bits = (np.where(snr > 0, b, 0.0) for b in (self.bits, self.more_bits))
        return SizedCells(bits, ready, more_bits, more, np.where(snr > 0, snr, 1.0), self.band)

    def largest(self, low: FloatArray, high: FloatArray, deadline: float) -> FloatArray:
        """Largest sizes [cells] that end by the deadline; ``low`` - 1 where ``low`` does not."""
        sized = self.at_full_power()
        high = np.where(self.able(), high, np.minimum(high, 0))
        ends = np.full(len(low), deadline)
        fits = sized.at(low).fit(ends) & ~self.stuck() & (low <= high)
        found = low - 1
        found[fits] = sized.rows(fits).largest(ends[fits], low[fits], high[fits])
        return found

    def offsets(self) -> tuple[FloatArray, BoolArray]:
        """The fixed part in steps, [cells], and where bits and cycles of all clients agree on it.

        Where they do, energy is convex in the size and the time together, see ``weighted``.
        """
        each = np.concatenate([self.bits, self.cycles], axis=-1)
        more = np.concatenate([self.more_bits, self.more_cycles], axis=-1)
        steps = np.divide(more, each, np.zeros_like(each), where=each > 0).max(-1)
        apart = np.abs(steps[:, None] * each - more)
        return steps, np.asarray((apart <= 1e-12 * more).all(-1))
