"""The joint problem of mask sizes and bands: reads and validates the arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from channels.arrays import BoolArray, FloatArray
from solvers.arrays import broadcast, finite
from solvers.bands.shared import shared_band
from solvers.joint.sized_cells import SizedCells
from solvers.mask_sizes.mask_size_problem import MaskSizeProblem as Sizes
from solvers.mask_sizes.mask_size_problem import read_problem as read_sizes
from solvers.outcome import located, unable


@dataclass(frozen=True, eq=False)
class JointProblem:
    """Problems with the same total and granularity; cells of all problems in one row each.

    Args:
        cells: [problems x cells], per step of ``granularity`` units.
        low, high: bounds in steps, [problems, cells].
        sizes: the bounds as given, which explain why sizes are impossible.
        silent: cells [problems, cells] with a client that cannot send even the bits that do not
            depend on the size.
        mute: clients that cannot send, of cells that are to train, [problems, cells, clients].
    """

    cells: SizedCells
    low: FloatArray
    high: FloatArray
    sizes: Sizes
    silent: BoolArray
    mute: BoolArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.sizes.shape

    @property
    def quota(self) -> int:
        """Total number of steps."""
        return self.sizes.quota

    def feasible(self) -> BoolArray:
        """Whether each problem has a solution, [problems]."""
        enough = self.high.sum(-1) >= self.quota
        return np.asarray(
            self.sizes.feasible() & enough & (self.low <= self.high).all(-1) & ~self.silent.any(-1)
        )

    def explain(self, feasible: BoolArray) -> str:
        """Say which problems have no answer, and what the first of them violates."""
        row = int((~feasible).argmax())
        if not self.sizes.feasible()[row]:
            text = self.sizes.explain(row)
        else:
            text = self.named(row)
            if not (self.silent[row] | (self.low[row] > self.high[row])).any():
                units = int(self.high[row].sum()) * self.sizes.cells.step
                text = few_units(self.sizes.total, units, text)
        return located(text, ~feasible, self.shape)

    def named(self, row: int) -> str:
        """Name the clients that cannot send in the first such cell of a problem."""
        needed = self.silent[row] | (self.low[row] > self.high[row])
        cells = needed if needed.any() else self.mute[row].any(-1)
        cell = int(cells.argmax())
        return f"cell {cell}: {unable({'send: snr_hz is 0': self.mute[row, cell]})}"


def few_units(total: int, units: int, why: str) -> str:
    """Say that too few units are in cells whose clients can all take part."""
    return f"total is {total}, but only {units} units are in cells that can send them; {why}"


def read_problem(
    bits_per_unit: Any,
    seconds_per_unit: Any,
    snr_hz: Any,
    bandwidth_hz: Any,
    total: Any,
    offset_bits: Any,
    offset_seconds: Any,
    bounds: tuple[Any, Any, Any],
) -> JointProblem:
    """Read and validate the problem; ``bounds`` are cap, lower and granularity."""
    arrays = {
        "bits_per_unit": finite("bits_per_unit", bits_per_unit, "bits"),
        "seconds_per_unit": finite("seconds_per_unit", seconds_per_unit, "seconds"),
        "offset_bits": finite("offset_bits", offset_bits, "bits"),
        "offset_seconds": finite("offset_seconds", offset_seconds, "seconds"),
        "snr_hz": finite("snr_hz", snr_hz, "Hz: transmit power x gain / noise density"),
    }
    scalars = {"bandwidth_hz": shared_band(bandwidth_hz, arrays)}
    full, (band,), _ = broadcast(arrays, scalars, "[..., cells, clients]")
    if full[0].ndim < 2:
        raise ValueError(
            f"bits_per_unit has shape {full[0].shape}: give [..., cells, clients], with 0 bits and "
            "0 seconds for clients that a smaller cell lacks."
        )
    cap, lower, granularity = bounds
    sizes = read_sizes(np.ones(band.shape), total, 0.0, cap, lower, granularity)
    rows = (-1, full[0].shape[-1])
    bits, ready, more_bits, more_ready, snr = (array.reshape(rows) for array in full)
    stuck = snr == 0
    empty = (stuck & (bits > 0)).any(-1).reshape(sizes.cells.low.shape)
    silent = (stuck & (more_bits > 0)).any(-1).reshape(sizes.cells.low.shape)
    mute = (stuck & (bits + more_bits > 0)).reshape(*silent.shape, -1)
    mute &= (silent | (sizes.cells.high > 0))[:, :, None]
    high = np.where(empty, np.minimum(sizes.cells.high, 0), sizes.cells.high)
    step = sizes.cells.step
    cells = SizedCells(
        step * bits,
        step * ready,
        more_bits,
        more_ready,
        np.where(stuck, 1.0, snr),
        band.reshape(-1),
    )
    return JointProblem(cells, sizes.cells.low, high, sizes, silent, mute)
