"""Mask sizes, bands, powers and CPU frequencies together: least energy within a deadline.

V_j(p), the least energy of cell j with a submodel of p units, is convex: energy is jointly convex
in bands, windows and frequencies, and bits and cycles grow linearly with p. A sum of convex
functions of integers is minimal if and only if moving one unit from a cell to another never lowers
it, so that units can be allocated in order of what they cost. That takes place first on a coarse
grid of sizes, then on finer ones around the result.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from solvers.arrays import broadcast, finite
from solvers.energy import allocate_energy
from solvers.joint.cells import SizedCells
from solvers.mask_sizes.problem import Problem as Sizes
from solvers.mask_sizes.problem import read_problem as read_sizes
from solvers.outcome import Outcome, located
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor

_POINTS = 64
"""Sizes per cell that are tried together."""


class MasksAndEnergy(NamedTuple):
    """A joint design.

    Args:
        sizes: units of each cell, [..., cells], integers.
        bandwidth_hz, upload_seconds, power_watts, cpu_hz: [..., cells, clients].
    """

    sizes: Any
    bandwidth_hz: Any
    upload_seconds: Any
    power_watts: Any
    cpu_hz: Any


class _Cells(NamedTuple):
    """The cells of one problem; sizes are in steps of the granularity.

    Args:
        bits, cycles: per step, [cells, clients].
        more_bits, more_cycles: those that do not depend on the size, [cells, clients].
        gain, power, speed, kappa: [cells, clients].
        band: [cells].
        deadline: in seconds.
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
    deadline: float

    def solve(self, sizes: FloatArray) -> Solution[Any]:
        """Least energy of each cell with ``sizes`` [points, cells]."""
        size = sizes[..., None]
        return allocate_energy(
            self.more_bits + size * self.bits,
            self.more_cycles + size * self.cycles,
            self.gain,
            self.band,
            deadline_seconds=self.deadline,
            max_power_watts=self.power,
            max_cpu_hz=self.speed,
            kappa=self.kappa,
        )

    def largest(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Largest sizes [cells] that end by the deadline; ``low`` - 1 where ``low`` does not."""
        snr = self.gain * self.power
        able = ((snr > 0) | (self.bits == 0)) & ((self.speed > 0) | (self.cycles == 0))
        ready, more = (
            np.divide(c, self.speed, np.zeros_like(c), where=self.speed > 0)
            for c in (self.cycles, self.more_cycles)
        )
        bits = np.where(snr > 0, self.bits, 0.0)
        more_bits = np.where(snr > 0, self.more_bits, 0.0)
        sized = SizedCells(bits, ready, more_bits, more, np.where(snr > 0, snr, 1.0), self.band)
        stuck = ((snr == 0) & (self.more_bits > 0)) | ((self.speed == 0) & (self.more_cycles > 0))
        high = np.where(able.all(-1), high, np.minimum(high, 0))
        ends = np.full(len(low), self.deadline)
        fits = sized.at(low).fit(ends) & ~stuck.any(-1) & (low <= high)
        found = low - 1
        found[fits] = sized.rows(fits).largest(ends[fits], low[fits], high[fits])
        return found


def optimize_masks_and_energy(
    bits_per_unit: ArrayLike | Tensor,
    cycles_per_unit: ArrayLike | Tensor,
    gain_per_noise: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
    total: int,
    *,
    deadline_seconds: ArrayLike | Tensor,
    max_power_watts: ArrayLike | Tensor,
    max_cpu_hz: ArrayLike | Tensor,
    kappa: ArrayLike | Tensor,
    offset_bits: ArrayLike | Tensor = 0.0,
    offset_cycles: ArrayLike | Tensor = 0.0,
    cap: ArrayLike | Tensor | None = None,
    lower: ArrayLike | Tensor = 0,
    granularity: int = 1,
) -> Solution[MasksAndEnergy]:
    """Find submodel sizes, bands, powers and CPU frequencies that spend the least energy.

    Solves  min sum_j V_j(p_j)  over integers p_j in [lower_j, cap_j], multiples of ``granularity``,
    with sum_j p_j = total, where V_j is the least energy of cell j within the deadline, as in
    ``allocate_energy``, with bits o + s p_j and cycles w + v p_j for each of its clients.

    Args:
        bits_per_unit: s, [..., cells, clients], bits that a client sends per unit (neuron) of its
            cell's submodel; 0, with 0 cycles, for clients that a smaller cell lacks.
        cycles_per_unit: v, [..., cells, clients], CPU cycles per unit.
        gain_per_noise: [..., cells, clients], power gain / noise density in Hz/W.
        bandwidth_hz: [..., cells], the band of each cell in Hz.
        total: number of units to allocate.
        deadline_seconds: [...], by which all cells end.
        max_power_watts, max_cpu_hz, kappa: [..., cells, clients], as for ``allocate_energy``.
        offset_bits: o, [..., cells, clients], bits of layers that all cells share.
        offset_cycles: w, [..., cells, clients], cycles of layers that all cells share.
        cap, lower, granularity: bounds of the sizes, as for ``optimize_mask_sizes``.

    Arrays are broadcast; leading axes are a batch, solved one by one. Array-like, or torch tensors
    on any device.

    Returns:
        ``MasksAndEnergy`` with the array type of ``bits_per_unit``. The objective is in joules; the
        bound is the sum of the cells' bounds at sizes between which no unit can be moved with a
        gain. Infeasible problems have no value (-1 in a batch); the message names the constraint,
        or how many units end by the deadline.

    Raises:
        ValueError: an argument is negative, not finite or not an integer, or shapes do not fit.
    """
    start = time.perf_counter()
    arrays = {
        "bits_per_unit": finite("bits_per_unit", bits_per_unit, "bits"),
        "cycles_per_unit": finite("cycles_per_unit", cycles_per_unit, "CPU cycles"),
        "offset_bits": finite("offset_bits", offset_bits, "bits"),
        "offset_cycles": finite("offset_cycles", offset_cycles, "CPU cycles"),
        "gain_per_noise": finite("gain_per_noise", gain_per_noise, "Hz/W"),
        "max_power_watts": finite("max_power_watts", max_power_watts, "watts"),
        "max_cpu_hz": finite("max_cpu_hz", max_cpu_hz, "Hz"),
        "kappa": finite("kappa", kappa, "joules per cycle and Hz^2"),
    }
    limit = finite("deadline_seconds", deadline_seconds, "seconds", above=True)
    scalars = {
        "bandwidth_hz": finite("bandwidth_hz", bandwidth_hz, "Hz", above=True),
        "deadline_seconds": limit[..., None],
    }
    full, (band, deadline) = broadcast(arrays, scalars, "[..., cells, clients]")
    if max(array.ndim for array in arrays.values()) < 2:
        shown = arrays["bits_per_unit"].shape
        raise ValueError(
            f"bits_per_unit has shape {shown}, and no other argument has cells and clients: give "
            "[..., cells, clients], with 0 bits and 0 cycles for clients that a smaller cell lacks."
        )
    sizes = read_sizes(np.ones(band.shape), total, 0.0, cap, lower, granularity)
    cells, step = sizes.cells.low.shape[1], sizes.cells.step
    bits, cycles, more_bits, more_cycles, gain, power, speed, factor = (
        array.reshape(-1, cells, array.shape[-1]) for array in full
    )
    bands, ends = band.reshape(-1, cells), deadline.reshape(-1, cells)[:, 0]
    problems = [
        _Cells(
            step * bits[i],
            step * cycles[i],
            more_bits[i],
            more_cycles[i],
            gain[i],
            power[i],
            speed[i],
            factor[i],
            bands[i],
            float(ends[i]),
        )
        for i in range(len(bands))
    ]
    return _solved(problems, sizes, bits_per_unit, start)


def _solved(
    problems: list[_Cells], sizes: Sizes, given: Any, start: float
) -> Solution[MasksAndEnergy]:
    feasible, reasons = sizes.feasible(), {}
    found: list[MasksAndEnergy] = []
    objective, bound = [], []
    for row in np.flatnonzero(feasible):
        cells, low, high = problems[row], sizes.cells.low[row], sizes.cells.high[row]
        most = cells.largest(low, high)
        if (most < low).any():
            cell = int((most < low).argmax())
            reasons[int(row)] = (
                f"cell {cell} does not end by {cells.deadline:g} s at its least size"
            )
        elif most.sum() < sizes.quota:
            ended = int(most.sum()) * sizes.cells.step
            reasons[int(row)] = (
                f"total is {sizes.total}, but only {ended} units end by {cells.deadline:g} s"
            )
        else:
            steps = _cheapest(cells, low, most, sizes.quota)
            design = cells.solve(steps)
            assert design.value is not None
            whole = (steps * sizes.cells.step).astype(np.int64)
            found.append(MasksAndEnergy(whole, *design.value[:4]))
            objective.append(design.objective.sum())
            bound.append(design.bound.sum())
    feasible[list(reasons)] = False
    message = ""
    if not feasible.all():
        worst = int((~feasible).argmax())
        message = located(reasons.get(worst) or sizes.explain(worst), ~feasible, sizes.shape)
    shape = sizes.cells.low.shape[1:], problems[0].bits.shape
    empty = MasksAndEnergy(
        np.zeros((0, *shape[0]), np.int64), *(np.zeros((0, *shape[1])) for _ in range(4))
    )
    value = MasksAndEnergy(*map(np.stack, zip(*found, strict=True))) if found else empty
    return Outcome(value, np.array(objective), np.array(bound)).solution(
        feasible, sizes.shape, given, backend="marginals", start=start, message=message
    )


def _cheapest(cells: _Cells, low: FloatArray, high: FloatArray, quota: int) -> FloatArray:
    """Steps [cells] from ``low`` to ``high`` of the least total energy, with sum ``quota``."""
    left, right = low, high
    while True:
        step = max(int(np.ceil((right - left).max() / _POINTS)), 1)
        count = int(np.ceil((right - left).max() / step)) + 1
        points = np.minimum(left + step * np.arange(count)[:, None], right)
        energy = cells.solve(points).objective
        width = np.diff(points, axis=0)
        cost = np.divide(
            np.diff(energy, axis=0), width, np.full(width.shape, np.inf), where=width > 0
        )
        order = np.argsort(cost, axis=None, kind="stable")
        taken = width.ravel()[order]
        before = taken.cumsum() - taken
        taken = np.clip(quota - points[0].sum() - before, 0, taken)
        added = np.zeros(width.size)
        added[order] = taken
        steps: FloatArray = points[0] + added.reshape(width.shape).sum(0)
        if (
            step == 1
            and ((steps > left) | (left == low)).all()
            and ((steps < right) | (right == high)).all()
        ):
            return steps
        wide = 2 * step if step > 1 else _POINTS
        left, right = np.maximum(steps - wide, low), np.minimum(steps + wide, high)
