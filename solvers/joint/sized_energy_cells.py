"""The least energy of cells whose clients train submodels of given sizes."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.energy.allocate import solved
from solvers.energy.energy_problem import EnergyProblem, lacking
from solvers.joint.sized_cells import SizedCells, largest
from solvers.outcome import unable
from solvers.solution import Solution


class SizedEnergyCells(NamedTuple):
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

    def rows(self, rows: IntArray) -> SizedEnergyCells:
        """Some of the cells."""
        return SizedEnergyCells(*(array[rows] for array in self))

    def rounds(self, sizes: FloatArray, deadline: float) -> EnergyProblem:
        """Rounds with ``sizes`` [..., cells] within a deadline, for ``allocate_energy``."""
        size, shape = sizes[..., None], (*sizes.shape, self.bits.shape[1])

        def each(clients: FloatArray) -> FloatArray:
            return np.broadcast_to(clients, shape).reshape(-1, shape[-1])

        count = sizes.size
        return EnergyProblem(
            bits=each(self.more_bits + size * self.bits),
            cycles=each(self.more_cycles + size * self.cycles),
            gain=each(self.gain),
            power=each(self.power),
            speed=each(self.speed),
            kappa=each(self.kappa),
            band=np.broadcast_to(self.band, sizes.shape).ravel(),
            deadline=np.full(count, deadline),
            weights=(np.zeros(count), np.ones(count)),
            shape=sizes.shape,
        )

    def solve(self, sizes: FloatArray, deadline: float) -> Solution[Any]:
        """Least energy of each cell with ``sizes`` [..., cells]."""
        return solved(self.rounds(sizes, deadline), None, time.perf_counter())

    def lacking(self, sizes: FloatArray) -> dict[str, BoolArray]:
        """Clients [cells, clients] that cannot compute or send ``sizes`` [cells], by reason."""
        part = self.rounds(sizes, 1.0)
        return lacking(part.bits, part.cycles, part.gain, part.power, part.speed)

    def unable(self, sizes: FloatArray) -> BoolArray:
        """Cells [cells] with a client that cannot compute or send ``sizes`` [cells]."""
        return np.asarray(np.any(list(self.lacking(sizes).values()), axis=0).any(-1))

    def named(self, cell: int, sizes: FloatArray) -> str:
        """Name the clients of a cell that cannot compute or send ``sizes`` [cells], and why."""
        reasons = {why: clients[cell] for why, clients in self.lacking(sizes).items()}
        return f"cell {cell}: {unable(reasons)}"

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

        def fits(rows: IntArray, size: FloatArray) -> BoolArray:
            return self.rows(rows).rounds(size, deadline).feasible()[0]

        sizes = low - 1
        at = np.flatnonzero(low <= high)
        at = at[fits(at, low[at])]
        sizes[at] = largest(lambda rows, size: fits(at[rows], size), low[at], high[at])
        return sizes

    def offsets(self) -> tuple[FloatArray, BoolArray]:
        """The fixed part in steps, [cells], and where bits and cycles of all clients agree on it.

        Where they do, energy is convex in the size and the time together, see ``weighted``.
        """
        amounts = np.concatenate([self.bits, self.cycles], axis=-1)
        more = np.concatenate([self.more_bits, self.more_cycles], axis=-1)
        steps = np.divide(more, amounts, np.zeros_like(amounts), where=amounts > 0).max(-1)
        apart = np.abs(steps[:, None] * amounts - more)
        return steps, np.asarray((apart <= 1e-12 * more).all(-1))
