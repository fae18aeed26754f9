"""A training problem on its grid: reads and validates the arguments.

Rows are cells of channel draws, draw by draw. Sizes are in steps of the granularity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.validation import shown
from solvers.arrays import broadcast, finite, first, numbers
from solvers.bands.shared import shared_band
from solvers.joint.sized_energy_cells import SizedEnergyCells
from solvers.mask_sizes.mask_size_problem import MaskSizeProblem as Sizes
from solvers.mask_sizes.mask_size_problem import read_problem as read_sizes
from solvers.training_rounds.training_problem import Bands, TrainingProblem

CLIENTS = {
    "bits_per_unit": "bits",
    "cycles_per_unit": "CPU cycles",
    "offset_bits": "bits",
    "offset_cycles": "CPU cycles",
    "gain_per_noise": "Hz/W",
    "max_power_watts": "watts",
    "max_cpu_hz": "Hz",
    "kappa": "joules per cycle and Hz^2",
}
"""Arguments [draws, cells, clients] with their units, in the order of ``SizedEnergyCells``."""
OTHERS = {
    "extra_seconds": "seconds",
    "extra_seconds_per_unit": "seconds per unit",
    "start_seconds": "seconds",
    "start_seconds_per_unit": "seconds per unit",
}
"""Arguments [draws, cells] besides the band, with their units."""


@dataclass(frozen=True, eq=False)
class GridProblem:
    """Validated arguments.

    Args:
        cells: work of one local step, per step of the size, [draws x cells].
        shape: numbers of draws and cells.
        rounds: R, [largest, local steps, edge rounds]; inf where the target is never reached.
        local_steps, edge_rounds: H and E of the grid.
        largest: m of the grid; NaN if R does not depend on it.
        sizes: the bounds on sizes for each m, as given.
        low, high: bounds in steps, [largest, cells]; ``high`` is 0 where a client cannot take part.
        quota: sum of the sizes in steps.
        extra, extra_each: seconds of a global round besides the edge rounds, and those per step of
            the size, [draws, cells].
        start, start_each: seconds of an edge round before its local phase, and those per step of
            the size, [draws, cells].
        weights: w_T and w_E.
        max_seconds: of the whole training; inf for no limit.
        bands: how the clients share the band.
        units: sizes of cells whose masks are fixed, [cells]; their work is then that of one step.
            None if sizes are to be chosen.
    """

    cells: SizedEnergyCells
    shape: tuple[int, int]
    rounds: FloatArray
    local_steps: IntArray
    edge_rounds: IntArray
    largest: FloatArray
    sizes: Sizes
    low: FloatArray
    high: FloatArray
    quota: int
    extra: FloatArray
    extra_each: FloatArray
    start: FloatArray
    start_each: FloatArray
    weights: tuple[float, float]
    max_seconds: float
    bands: Bands
    units: IntArray | None

    @property
    def fixed(self) -> bool:
        """Whether the sizes are given."""
        return self.units is not None

    def at(self, local_steps: int) -> SizedEnergyCells:
        """The cells of all draws with the cycles of this number of local steps."""
        cells = self.cells
        return cells._replace(
            cycles=local_steps * cells.cycles, more_cycles=local_steps * cells.more_cycles
        )

    def whole(self, steps: FloatArray) -> IntArray:
        """Sizes in units [cells] of sizes in steps."""
        if self.units is not None:
            return self.units
        return (steps * self.sizes.cells.step).astype(np.int64)

    def stuck(self) -> BoolArray:
        """Cells [cells] that cannot train, as a client lacks a channel, power or CPU in a draw."""
        ones = np.ones(len(self.cells.band))
        return np.asarray(self.cells.unable(ones).reshape(self.shape).any(0))

    def named(self, steps: FloatArray) -> str:
        """Name clients that cannot take part with ``steps`` [cells], in the first such cell."""
        sizes = np.tile(steps, self.shape[0])
        rows = np.flatnonzero(self.cells.unable(sizes))
        if not rows.size:
            return ""
        draw, cell = divmod(int(rows[0]), self.shape[1])
        text = self.cells.named(int(rows[0]), sizes).split(": ", 1)[1]
        where = f" of draw {draw}" if self.shape[0] > 1 else ""
        return f"cell {cell}{where}: {text}"

    def too_late(self, least: float, local: int, edge: int) -> str:
        """Why no design ends in time: the fastest, at places of the grid, takes ``least`` s."""
        return (
            f"max_seconds is {self.max_seconds:g}: even the fastest design needs {least:.6g} s, "
            f"{least - self.max_seconds:.3g} s more, in its slowest draw at full power and speed "
            f"(H = {self.local_steps[local]}, E = {self.edge_rounds[edge]})"
        )


def proportion(cells: SizedEnergyCells, number: int) -> tuple[FloatArray, bool]:
    """Fixed part in steps, [cells], and whether it is that of the bits and cycles of all clients.

    Where they differ, the smallest is returned: a lower bound of the work.

    Args:
        cells: [draws x cells].
        number: of cells.
    """
    amounts = np.concatenate([cells.bits, cells.cycles], axis=-1)
    more = np.concatenate([cells.more_bits, cells.more_cycles], axis=-1)
    none = np.full(amounts.shape, np.inf)
    steps = np.divide(more, amounts, none, where=amounts > 0)
    steps = steps.reshape(-1, number, amounts.shape[-1]).min((0, 2))
    steps = np.where(np.isfinite(steps), steps, 0.0)
    apart = np.abs(np.tile(steps, len(amounts) // number)[:, None] * amounts - more)
    return steps, bool((apart <= 1e-12 * more).all())


def read_problem(
    problem: TrainingProblem,
    rounds: Any,
    grid: tuple[Any, Any, Any],
    goal: tuple[Any, Any],
) -> GridProblem:
    """Validate a problem and its grid.

    Args:
        problem: as given.
        rounds: R.
        grid: local_steps, edge_rounds and largest.
        goal: weights and max_seconds.
    """
    if problem.bands not in get_args(Bands):
        raise ValueError(f"bands is {shown(problem.bands)}: choose 'optimal' or 'equal'.")
    local, edge = (
        _counts(n, g) for n, g in zip(("local_steps", "edge_rounds"), grid, strict=False)
    )
    reached, largest = _rounds(rounds, grid[2], len(local), len(edge))
    weights, limit = _goal(*goal)
    arrays = {name: finite(name, getattr(problem, name), unit) for name, unit in CLIENTS.items()}
    cell = {"bandwidth_hz": shared_band(problem.bandwidth_hz, arrays)}
    cell |= {name: finite(name, getattr(problem, name), unit) for name, unit in OTHERS.items()}
    full, (band, *other), _ = broadcast(arrays, cell, "[draws, cells, clients]")
    if full[0].ndim not in (2, 3):
        raise ValueError(
            f"arguments of clients have shape {full[0].shape}: give [draws, cells, clients], with "
            "0 bits and 0 cycles for clients that a smaller cell lacks."
        )
    draws, number = (1, *full[0].shape[:-1])[-2:]
    flat = [array.reshape(-1, array.shape[-1]) for array in full]
    rows = SizedEnergyCells._make((*flat, band.reshape(-1)))
    if problem.total is None:
        _unused(problem, grid[2])
        sizes = read_sizes(np.ones((1, number)), number, 0.0, 1, 1, 1)
    else:
        sizes = _sizes(problem, number, largest)
    step = sizes.cells.step
    extra, extra_each, start, start_each = (array.reshape(draws, number) for array in other)
    return _settled(
        GridProblem(
            cells=rows._replace(bits=step * rows.bits, cycles=step * rows.cycles),
            shape=(draws, number),
            rounds=reached,
            local_steps=local,
            edge_rounds=edge,
            largest=largest,
            sizes=sizes,
            low=sizes.cells.low,
            high=sizes.cells.high,
            quota=sizes.quota,
            extra=extra,
            extra_each=step * extra_each,
            start=start,
            start_each=step * start_each,
            weights=weights,
            max_seconds=limit,
            bands=problem.bands,
            units=None,
        )
    )


def _settled(problem: GridProblem) -> GridProblem:
    """``problem`` with fixed sizes as such, and without sizes that clients cannot train."""
    feasible = problem.sizes.feasible()
    low, high = problem.low, problem.high
    one = low[feasible]
    if feasible.any() and (one == high[feasible]).all() and (one == one[0]).all():
        size = np.tile(one[0], problem.shape[0])[:, None]
        cells = problem.cells
        none = np.zeros_like(cells.bits)
        cells = cells._replace(
            bits=cells.more_bits + size * cells.bits,
            cycles=cells.more_cycles + size * cells.cycles,
            more_bits=none,
            more_cycles=none,
        )
        units = (one[0] * problem.sizes.cells.step).astype(np.int64)
        ones = np.ones_like(low)
        nothing = np.zeros(problem.shape)
        return replace(
            problem,
            cells=cells,
            low=ones,
            high=ones,
            quota=problem.shape[1],
            units=units,
            extra=problem.extra + one[0] * problem.extra_each,
            start=problem.start + one[0] * problem.start_each,
            extra_each=nothing,
            start_each=nothing,
        )
    return replace(problem, high=np.where(problem.stuck(), np.minimum(high, 0.0), high))


def _sizes(problem: TrainingProblem, number: int, largest: FloatArray) -> Sizes:
    """The bounds on sizes for each m of the grid."""
    cap, lower, granularity = problem.cap, problem.lower, problem.granularity
    ones = np.ones((len(largest), number))
    sizes = read_sizes(ones, problem.total, 0.0, cap, lower, granularity)
    if np.isnan(largest).all():
        return sizes
    # m N / total in units, but for rounding errors of m = p N / total
    most = np.floor(largest * sizes.total / number * (1 + 1e-12))[:, None]
    return read_sizes(ones, problem.total, 0.0, np.minimum(sizes.cap, most), lower, granularity)


def _unused(problem: TrainingProblem, largest: Any) -> None:
    """Raise if bounds are given for sizes that cells do not have."""
    bounds = {"cap": None, "lower": 0, "granularity": 1, "largest": None}
    for name, default in bounds.items():
        value = largest if name == "largest" else getattr(problem, name)
        if value is not default and not (np.ndim(value) == 0 and value == default):
            raise ValueError(
                f"{name} is {shown(value)}, but without total all cells train the whole model: "
                f"give total, or leave {name} out."
            )


def _counts(name: str, values: Any) -> IntArray:
    array = numbers(name, values)
    good = (array >= 1) & (array == np.floor(array)) & (array < 1e9)
    if array.ndim != 1 or not array.size or not good.all():
        raise ValueError(f"{name} is {shown(values)}: give a list of whole numbers >= 1.")
    if (np.diff(array) <= 0).any():
        raise ValueError(f"{name} is {shown(values)}: give increasing numbers.")
    return array.astype(np.int64)


def _rounds(rounds: Any, largest: Any, local: int, edge: int) -> tuple[FloatArray, FloatArray]:
    """R [largest, local steps, edge rounds], and m; NaN for one m of any size."""
    array = numbers("rounds", rounds)
    if largest is None:
        most = np.full(1, np.nan)
        shape: tuple[int, ...] = (local, edge)
    else:
        most = finite("largest", largest, "shares of an equal mask", above=True)
        if most.ndim != 1 or not most.size or (np.diff(most) <= 0).any():
            raise ValueError(f"largest is {shown(largest)}: give a list of increasing numbers.")
        shape = (len(most), local, edge)
    if array.shape != shape:
        axes = (
            "[largest, local_steps, edge_rounds]"
            if largest is not None
            else ("[local_steps, edge_rounds], or give largest")
        )
        raise ValueError(f"rounds has shape {array.shape}: give {axes}, here {shape}.")
    good = array > 0
    if not good.all():
        index, value = first(good, array)
        raise ValueError(
            f"rounds{index} is {value}: give a number of global rounds > 0, or inf where the "
            "target is never reached."
        )
    return array.reshape(-1, local, edge), most


def _goal(weights: Any, max_seconds: Any) -> tuple[tuple[float, float], float]:
    """w_T and w_E, and the limit on the seconds of the training."""
    try:
        prices = [float(finite("weights", w, "cost per second or joule")) for w in weights]
        second, joule = prices
    except TypeError:
        raise ValueError(
            f"weights is {shown(weights)}: give (w_T, w_E), the costs of a second and of a joule."
        ) from None
    except ValueError as error:
        raise ValueError(f"weights is {shown(weights)}: give (w_T, w_E), numbers >= 0.") from error
    if second == joule == 0:
        raise ValueError("weights is (0, 0): give a cost > 0 per second or per joule.")
    if max_seconds is None:
        if second == 0:
            raise ValueError(
                "weights: w_T is 0, and energy alone never ends a round: give max_seconds, or a "
                "cost > 0 per second."
            )
        return (second, joule), np.inf
    limit = finite("max_seconds", max_seconds, "seconds", above=True)
    if limit.ndim:
        raise ValueError(f"max_seconds is {shown(max_seconds)}: give one number.")
    return (second, joule), float(limit)
