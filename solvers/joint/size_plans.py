"""One problem of sizes and energies: by a deadline, or with a cost of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray
from solvers.bands.allocate import soonest
from solvers.joint.deadline import cheapest
from solvers.joint.joint_problem import few_units
from solvers.joint.masks_and_bands import fastest
from solvers.joint.sized_energy_cells import SizedEnergyCells
from solvers.joint.weighted import cheapest_time_and_sizes
from solvers.mask_sizes.mask_size_problem import MaskSizeProblem as Sizes


class SizePlan(NamedTuple):
    """A feasible point and its certificate.

    Args:
        steps: sizes in steps of the granularity, [cells].
        clients: bands, windows, powers and frequencies, [cells, clients] each.
        seconds: common end T.
        objective, bound: in joules, or in the unit of the weights; the objective is NaN if rounding
            errors leave a cell without a plan.
        message: further information.
    """

    steps: FloatArray
    clients: tuple[FloatArray, ...]
    seconds: float
    objective: float
    bound: float
    message: str = ""


def by_deadline(cells: SizedEnergyCells, sizes: Sizes, row: int, deadline: float) -> SizePlan | str:
    """The least energy by a deadline, or why there is none.

    Args:
        cells: of the problem.
        sizes: bounds of all problems, feasible for this one.
        row: number of the problem.
        deadline: T in seconds; sizes that miss it by rounding errors of their least time end then.
    """
    low, high = sizes.cells.low[row], sizes.cells.high[row]
    most = cells.largest(low, high, deadline)
    if (most < low).any():
        cell = int((most < low).argmax())
        if cells.unable(low)[cell]:
            return cells.named(cell, low)
        return f"cell {cell} does not end by {deadline:g} s at its least size"
    note = _left_out(cells, high)
    if most.sum() < sizes.quota:
        units = int(most.sum()) * sizes.cells.step
        text = f"total is {sizes.total}, but only {units} units end by {deadline:g} s"
        return f"{text}; {note}" if note else text
    steps, bound = cheapest(cells, low, most, sizes.quota, deadline)
    seconds, clients, energy = _spent(cells, steps, deadline)
    return SizePlan(steps, clients, seconds, energy, min(bound, energy), note)


def _left_out(cells: SizedEnergyCells, high: FloatArray) -> str:
    """Name the clients that cannot take part in the first cell that is to train; "" if all can."""
    steps = np.minimum(high, 1.0)
    unable = cells.unable(steps)
    return cells.named(int(unable.argmax()), steps) if unable.any() else ""


def _spent(
    cells: SizedEnergyCells, steps: FloatArray, deadline: float
) -> tuple[float, tuple[FloatArray, ...], float]:
    """End, plan of the clients and joules of all cells; NaN if a cell has no plan.

    An ``Outcome`` reports that as unknown.
    """
    solution = cells.solve(steps, deadline)
    assert solution.value is not None
    total = float(solution.objective.sum())
    seconds = max(deadline, float(solution.value.seconds.max()))
    return seconds, solution.value[:4], total if np.isfinite(total) else np.nan


def by_weights(
    cells: SizedEnergyCells, sizes: Sizes, row: int, second: float, joule: float
) -> SizePlan | str:
    """The least ``second`` x T + ``joule`` x energy, or why there is none.

    Args:
        cells, sizes, row: as for ``by_deadline``.
        second: w_T > 0.
        joule: w_E >= 0.
    """
    low, high = sizes.cells.low[row], sizes.cells.high[row]
    unable = cells.unable(low)
    if unable.any():
        return cells.named(int(unable.argmax()), low)
    notes = [_left_out(cells, high)]
    high = np.where(cells.unable(np.minimum(high, 1.0)), 0.0, high)
    if high.sum() < sizes.quota:
        return few_units(sizes.total, int(high.sum()) * sizes.cells.step, notes[0])
    if joule == 0:
        fast = cells.at_full_power()
        (steps,), (bound,) = fastest(fast, low[None], high[None], sizes.quota)
        seconds, bound = float(soonest(fast.at(steps))[1].max()), second * bound
        if seconds:  # at T* itself, rounding errors decide which sizes still end in time
            most = np.maximum(cells.largest(low, high, seconds), steps)
            steps = cheapest(cells, low, most, sizes.quota, seconds)[0]
    else:
        optimum = cheapest_time_and_sizes(cells, low, high, sizes.quota, second / joule)
        steps, seconds, bound = optimum.steps, optimum.seconds, joule * optimum.bound
        notes.append(optimum.message)
    end, clients, energy = _spent(cells, steps, seconds or 1.0)
    seconds = end if seconds else 0.0  # in no time, there is nothing to do
    objective = second * seconds + joule * energy
    message = "; ".join(filter(None, notes))
    return SizePlan(steps, clients, seconds, objective, min(bound, objective), message)
