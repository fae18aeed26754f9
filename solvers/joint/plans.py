"""One problem of sizes and energies: by a deadline, or with a cost of time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from channels.arrays import FloatArray
from solvers.joint.deadline import cheapest
from solvers.joint.energy_cells import EnergyCells
from solvers.joint.masks import optimize_masks_and_bands
from solvers.joint.weighted import cheapest_time_and_sizes
from solvers.mask_sizes.problem import Problem as Sizes
from solvers.solution import Solution

_ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Plan(NamedTuple):
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


def by_deadline(cells: EnergyCells, sizes: Sizes, row: int, deadline: float) -> Plan | str:
    """The least energy by a deadline, or why there is none.

    Args:
        cells: of the problem.
        sizes: bounds of all problems, feasible for this one.
        row: number of the problem.
        deadline: T in seconds; sizes that miss it by rounding errors of their least time end then.
    """
    plan = _by_deadline(cells, sizes, row, deadline)
    if isinstance(plan, str):
        later = _by_deadline(cells, sizes, row, deadline * (1 + _ROUNDING))
        return plan if isinstance(later, str) else later
    return plan


def _by_deadline(cells: EnergyCells, sizes: Sizes, row: int, deadline: float) -> Plan | str:
    low, high = sizes.cells.low[row], sizes.cells.high[row]
    most = cells.largest(low, high, deadline)
    if (most < low).any():
        cell = int((most < low).argmax())
        return f"cell {cell} does not end by {deadline:g} s at its least size"
    if most.sum() < sizes.quota:
        ended = int(most.sum()) * sizes.cells.step
        return f"total is {sizes.total}, but only {ended} units end by {deadline:g} s"
    steps, bound = cheapest(cells, low, most, sizes.quota, deadline)
    found = cells.solve(steps, deadline)
    assert found.value is not None
    energy = _joules(found)
    return Plan(steps, found.value[:4], deadline, energy, min(bound, energy))


def _joules(found: Solution[Any]) -> float:
    """Energy of all cells; NaN, which an ``Outcome`` reports as unknown, if a cell has no plan."""
    total = float(found.objective.sum())
    return total if np.isfinite(total) else np.nan


def by_weights(
    cells: EnergyCells, sizes: Sizes, row: int, second: float, joule: float
) -> Plan | str:
    """The least ``second`` x T + ``joule`` x energy, or why there is none.

    Args:
        cells, sizes, row: as for ``by_deadline``.
        second: w_T > 0.
        joule: w_E >= 0.
    """
    low, high = sizes.cells.low[row], sizes.cells.high[row]
    unable = cells.stuck() | ~cells.able() & (low > 0)
    if unable.any():
        cell = int(unable.argmax())
        return f"cell {cell} has a client that cannot compute or send: its power or speed is 0"
    high = np.where(cells.able(), high, 0.0)
    if high.sum() < sizes.quota:
        units = int(high.sum()) * sizes.cells.step
        return f"total is {sizes.total}, but only {units} units are in cells that can send them"
    message = ""
    if joule == 0:
        fast = cells.at_full_power()
        soonest = optimize_masks_and_bands(
            fast.bits, fast.ready, fast.snr_hz, fast.bandwidth_hz, sizes.quota,
            offset_bits=fast.more_bits, offset_seconds=fast.more_ready, cap=high, lower=low,
        )  # fmt: skip
        assert soonest.value is not None
        steps, seconds, bound = soonest.value.sizes, soonest.objective, second * soonest.bound
        if seconds:  # at T* itself, rounding errors decide which sizes still end in time
            most = np.maximum(cells.largest(low, high, seconds), steps)
            steps = cheapest(cells, low, most, sizes.quota, seconds)[0]
    else:
        found = cheapest_time_and_sizes(cells, low, high, sizes.quota, second / joule)
        steps, seconds, bound = found.steps, found.seconds, joule * found.bound
        message = found.message
    spent = cells.solve(steps, seconds or 1.0)  # in no time, there is nothing to do
    assert spent.value is not None
    objective = second * seconds + joule * _joules(spent)
    return Plan(steps, spent.value[:4], seconds, objective, min(bound, objective), message)
