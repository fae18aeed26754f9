"""Time and energy of one unit of each cell and draw, and what they imply for all sizes.

With bits and cycles in proportion to q, the size and its fixed part, q units take q times the time
of one unit and, within q tau seconds, q times the least energy v(tau, H) of one unit within tau. v
is convex in tau and the local steps H together: its tangents a + g H + s tau bound the energy of
any size with any H by (a + g H) q + s t.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.bands.least_band import upload_seconds
from solvers.bands.least_time import least_time
from solvers.energy.least_energy import least_energy
from solvers.joint.sized_energy_cells import SizedEnergyCells
from solvers.training_rounds.grid_problem import GridProblem

_START = np.array([1.0, 1.03, 1.1, 1.3, 1.8, 2.8, 5.0, 12.0, 50.0])
"""First tangents, relative to the shortest time of a unit."""
_FIRST = 5
"""Numbers of local steps of the first tangents."""
_SAMPLE = np.geomspace(1.0, 1000.0, 10)[:, None, None]
"""Times at which tangents are compared, relative to the shortest."""
_NEAR = np.geomspace(0.7, 1.4, 6)[:, None, None]
"""Those relative to a design."""
_CLOSE = 2.0
"""Ratio of times up to which all tangents are used."""


class Lines(NamedTuple):
    """Lower bounds (a + g H) q + s t on joules.

    Args:
        base: a, [lines, draws, cells].
        per_step: g, [lines, draws, cells].
        per_second: s, [lines, draws, cells].
    """

    base: FloatArray
    per_step: FloatArray
    per_second: FloatArray


class Units:
    """One unit of all cells of all draws.

    Args:
        problem: the cells; only what grows with the size counts.
    """

    def __init__(self, problem: GridProblem) -> None:
        cells, none = problem.cells, np.zeros(problem.cells.bits.shape)
        able = ~cells.unable(np.ones(len(cells.band)))[:, None]
        self.cells = cells._replace(
            bits=np.where(able, cells.bits, 0.0),
            cycles=np.where(able, cells.cycles, 0.0),
            more_bits=none,
            more_cycles=none,
        )
        self.shape, self.local_steps = problem.shape, problem.local_steps
        self.full_power = problem.bands == "equal"
        self._share = (cells.band / np.maximum(senders(cells), 1.0))[:, None]
        self.soonest = self._soonest()
        """Seconds that a unit takes at least, [local steps, draws, cells]."""

    def _at(self, local: IntArray) -> SizedEnergyCells:
        """Cells [places x draws x cells] at places of the local steps."""
        rows = self.cells.rows(np.tile(np.arange(len(self.cells.band)), len(local)))
        steps = np.repeat(self.local_steps[local], len(self.cells.band))[:, None]
        return rows._replace(cycles=steps * rows.cycles)

    def _soonest(self) -> FloatArray:
        every = np.arange(len(self.local_steps))
        cells = self._at(every)
        if self.full_power:
            seconds = at_full_power(cells, np.tile(self._share, (len(every), 1)))[0]
        else:
            seconds = np.zeros(len(cells.band))
            busy = np.flatnonzero((cells.bits + cells.cycles > 0).any(-1))
            rounds = cells.rows(busy).rounds(np.ones(len(busy)), 1.0)
            seconds[busy] = least_time(rounds.cells(np.arange(len(busy))))[1]
        return np.asarray(seconds.reshape(-1, *self.shape))

    def solve(self, tau: FloatArray, local: IntArray) -> tuple[FloatArray, Lines]:
        """Energy of a unit within ``tau`` [points, draws, cells], and tangents there.

        Args:
            tau: seconds, no shorter than ``soonest``.
            local: places of the local steps, [points].
        """
        cells, until = self._at(local), tau.ravel()
        steps = self.local_steps[local][:, None, None]
        if self.full_power:
            _, sent, computed = at_full_power(cells, np.tile(self._share, (len(local), 1)))
            sent, computed = sent.reshape(tau.shape), computed.reshape(tau.shape)
            return sent + computed, Lines(sent, computed / steps, np.zeros(tau.shape))
        rounds = replace(cells.rounds(np.ones(len(until)), 1.0), deadline=until)
        plan = least_energy(rounds, rounds.feasible()[1])
        parts = (plan.energy, plan.bound, plan.slope, plan.by_cycles)
        energy, bound, slope, growth = (x.reshape(tau.shape) for x in parts)
        good = np.isfinite(bound) & np.isfinite(slope) & np.isfinite(growth)
        bound, slope, growth = (np.where(good, x, 0.0) for x in (bound, slope, growth))
        lines = Lines(bound - slope * tau - growth, growth / steps, slope)
        return np.where(np.isfinite(energy), energy, np.inf), lines


def senders(cells: SizedEnergyCells) -> FloatArray:
    """Number of clients [cells] that share the band of each cell."""
    return np.asarray(np.count_nonzero(cells.bits + cells.more_bits > 0, axis=-1) * 1.0)


def at_full_power(
    cells: SizedEnergyCells, band: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Seconds, and joules of uploads and of computations, of one unit of each cell, [cells] each.

    Args:
        cells: cells without fixed parts.
        band: of each client, [cells, 1] or [cells, clients].
    """
    snr = cells.gain * cells.power
    able = (cells.bits > 0) & (snr > 0)
    upload = upload_seconds(
        np.where(able, cells.bits, 0.0),
        np.where(able, band, 1.0),
        np.where(able, snr, 1.0),
    )
    busy = np.divide(cells.cycles, cells.speed, np.zeros_like(snr), where=cells.speed > 0)
    sent = (cells.power * upload).sum(-1)
    computed = (cells.kappa * cells.cycles * cells.speed**2).sum(-1)
    return np.asarray((busy + upload).max(-1)), np.asarray(sent), np.asarray(computed)


class Model:
    """A growing set of tangents of the energies of all cells and draws.

    Args:
        units: of all cells and draws.
        energy: whether energy counts.
    """

    def __init__(self, units: Units, energy: bool) -> None:
        self.units = units
        none = np.zeros((0, *units.shape))
        self.tau, self.local, self._lines = none, np.zeros(0, np.int64), Lines(none, none, none)
        if energy:
            steps = units.local_steps
            ladder = np.geomspace(steps[0], steps[-1], _FIRST)
            first = np.unique(np.searchsorted(steps, ladder * (1 - 1e-12)))
            first = np.minimum(first, len(steps) - 1)
            times = _START[:1] if units.full_power else _START
            local = np.repeat(first[:1] if units.full_power else first, len(times))
            tau = units.soonest[local] * np.tile(times, len(local) // len(times))[:, None, None]
            self.add(tau, local)

    def add(self, tau: FloatArray, local: IntArray) -> FloatArray:
        """Add tangents at ``tau`` [points, draws, cells]; the energies of a unit there.

        Times below the shortest are raised to it.
        """
        tau = np.maximum(tau, self.units.soonest[local])
        energy, lines = self.units.solve(tau, local)
        pairs = zip(self._lines, lines, strict=True)
        self._lines = Lines(*(np.concatenate(pair) for pair in pairs))
        self.tau = np.concatenate([self.tau, tau])
        self.local = np.concatenate([self.local, local])
        return energy

    def refine(self, tau: FloatArray, local: int, near: bool = True) -> FloatArray:
        """Add tangents at ``tau`` [draws, cells] and next to it; energies of a unit at ``tau``."""
        points = [tau]
        if self.units.full_power:
            return np.asarray(self.units.solve(tau[None], np.array([local]))[0][0])
        if near:
            breakpoints = self.tau[self.local == local]
            below, above = breakpoints < tau, breakpoints > tau
            left = np.where(below, breakpoints, 0.0).max(0, initial=0.0)
            right = np.where(above, breakpoints, np.inf).min(0, initial=np.inf)
            left = np.maximum(left, tau / 2)
            points += [np.sqrt(left * tau), np.sqrt(tau * np.minimum(right, 2 * tau))]
        return np.asarray(self.add(np.stack(points), np.full(len(points), local))[0])

    def lines(self, local: int) -> tuple[FloatArray, FloatArray]:
        """Joules per unit and per second [lines, draws, cells] of the tangents at H."""
        steps = float(self.units.local_steps[local])
        lines = self._lines
        return lines.base + lines.per_step * steps, lines.per_second

    def known(self, which: tuple[IntArray, ...]) -> Lines:
        """Some of the tangents, by their places in the three axes."""
        return Lines(*(array[which] for array in self._lines))

    def relevant(self, local: int, tau: FloatArray) -> BoolArray:
        """Tangents [lines, draws, cells] that matter at H: close to ``tau``, or best somewhere.

        Args:
            local: place of the local steps.
            tau: seconds per unit of the designs of interest, [draws, cells].
        """
        base, slope = self.lines(local)
        times = np.concatenate([self.units.soonest[local] * _SAMPLE, tau * _NEAR])
        near = (self.tau <= _CLOSE * tau) & (_CLOSE * self.tau >= tau)
        keep: BoolArray = np.asarray((self.local == local)[:, None, None] & near)
        for point in times if len(keep) else ():
            np.put_along_axis(keep, (base + slope * point).argmax(0)[None], True, 0)
        return keep
