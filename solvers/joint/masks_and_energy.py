"""Mask sizes, bands, powers and CPU frequencies together: least energy, or seconds and joules.

Sizes by a deadline are found in ``deadline``, and those with a free end in ``weighted``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from channels.plausible import noted
from solvers.arrays import broadcast, finite
from solvers.bands.shared import shared_band
from solvers.energy.energy_problem import read_end
from solvers.joint.size_plans import by_deadline, by_weights
from solvers.joint.sized_energy_cells import SizedEnergyCells
from solvers.load_rows import takes_load
from solvers.mask_sizes.mask_size_problem import MaskSizeProblem as Sizes
from solvers.mask_sizes.mask_size_problem import read_problem as read_sizes
from solvers.outcome import Outcome, located
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor


class MasksAndEnergy(NamedTuple):
    """A joint design.

    >>> import solvers
    >>> plan = solvers.optimize_masks_and_energy(
    ...     1e4,
    ...     1e6,
    ...     [[1e9, 1e9], [1e8, 1e8]],
    ...     [1e6, 1e6],
    ...     total=10,
    ...     max_power_watts=0.1,
    ...     max_cpu_hz=1e9,
    ...     kappa=1e-28,
    ...     deadline_seconds=1.0,
    ... ).value
    >>> int(plan.sizes.sum()), plan.power_watts.shape
    (10, (2, 2))

    Args:
        sizes: units of each cell, [..., cells], integers.
        bandwidth_hz, upload_seconds, power_watts, cpu_hz: [..., cells, clients].
        seconds: common end of all cells, [...].
    """

    sizes: Any
    bandwidth_hz: Any
    upload_seconds: Any
    power_watts: Any
    cpu_hz: Any
    seconds: Any


@noted
@takes_load
def optimize_masks_and_energy(
    bits_per_unit: ArrayLike | Tensor,
    cycles_per_unit: ArrayLike | Tensor,
    gain_per_noise: ArrayLike | Tensor,
    bandwidth_hz: ArrayLike | Tensor,
    total: int,
    *,
    max_power_watts: ArrayLike | Tensor,
    max_cpu_hz: ArrayLike | Tensor,
    kappa: ArrayLike | Tensor,
    deadline_seconds: ArrayLike | Tensor | None = None,
    weights: tuple[ArrayLike | Tensor, ArrayLike | Tensor] | None = None,
    offset_bits: ArrayLike | Tensor = 0.0,
    offset_cycles: ArrayLike | Tensor = 0.0,
    cap: ArrayLike | Tensor | None = None,
    lower: ArrayLike | Tensor = 0,
    granularity: int = 1,
) -> Solution[MasksAndEnergy]:
    """Find submodel sizes, bands, powers and CPU frequencies that cost the least.

    Solves  min sum_j V_j(p_j, T)  over integers p_j in [lower_j, cap_j], multiples of
    ``granularity``, with sum_j p_j = total, where V_j is the least energy of cell j within T, as in
    ``allocate_energy``, with bits o + s p_j and cycles w + v p_j for each of its clients. T is the
    deadline, or is chosen too, with the objective w_T T + w_E sum_j V_j(p_j, T).

    >>> import solvers
    >>> solution = solvers.optimize_masks_and_energy(
    ...     1e4,
    ...     1e6,
    ...     [[1e9, 1e9], [1e8, 1e8]],
    ...     [1e6, 1e6],
    ...     total=10,
    ...     max_power_watts=0.1,
    ...     max_cpu_hz=1e9,
    ...     kappa=1e-28,
    ...     deadline_seconds=1.0,
    ... )
    >>> solution.value.sizes.tolist(), solution.status.name
    ([10, 0], 'OPTIMAL')

    A :class:`channels.Load` (per unit) and the :class:`channels.ChannelDraw` of its clients can
    replace the arrays of clients and bands. Clients are then in the order of ``Network.by_cell``.

    Args:
        bits_per_unit: s, [..., cells, clients], bits that a client sends per unit (neuron) of its
            cell's submodel; 0, with 0 cycles, for clients that a smaller cell lacks.
        cycles_per_unit: v, [..., cells, clients], CPU cycles per unit.
        gain_per_noise: [..., cells, clients], power gain / noise density in Hz/W.
        bandwidth_hz: [..., cells], the band of each cell in Hz.
        total: number of units to allocate.
        max_power_watts, max_cpu_hz, kappa: [..., cells, clients], as for ``allocate_energy``.
        deadline_seconds: T > 0, [...], by which all cells end.
        weights: w_T > 0 and w_E >= 0, [...] each, costs of a second and of a joule, instead of a
            deadline.
        offset_bits: o, [..., cells, clients], bits of layers that all cells share.
        offset_cycles: w, [..., cells, clients], cycles of layers that all cells share. With weights
            and w_E > 0, both must be those of the same number of units for all clients of a cell.
        cap, lower, granularity: bounds of the sizes, as for ``optimize_mask_sizes``.

    Arrays are broadcast; leading axes are a batch, solved one by one. Array-like, or torch tensors
    on any device.

    Returns:
        ``MasksAndEnergy`` with the array type of ``bits_per_unit``. The objective is in joules, or
        in the unit of the weights. The bound of a deadline is that of the cells' energies at sizes
        proven best; it is a lower one if offsets are in other proportions than units and a cell has
        more than 4096 sizes. With weights it is that of outer approximation (see ``weighted``),
        which stops at a relative gap of 1e-7 or after 100 turns; above 1e6 steps fractions are
        rounded. With w_E = 0, sizes and energy are those of the least energy within the least
        time. Sizes whose least time exceeds an end by 8 units of rounding or less meet it;
        ``seconds`` is when they end. Infeasible problems have no value (-1 in a batch); the message
        names the constraint, or how many units end by the deadline, and clients that cannot compute
        or send, whose cells train nothing.
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
    ends = read_end(deadline_seconds, weights)
    scalars = {"bandwidth_hz": shared_band(bandwidth_hz, arrays)}
    full, (band,), end = broadcast(arrays, scalars, "[..., cells, clients]", ends)
    if max(array.ndim for array in arrays.values()) < 2:
        shown = arrays["bits_per_unit"].shape
        raise ValueError(
            f"bits_per_unit has shape {shown}, and no other argument has cells and clients: give "
            "[..., cells, clients], with 0 bits and 0 cycles for clients that a smaller cell lacks."
        )
    sizes = read_sizes(np.ones(band.shape), total, 0.0, cap, lower, granularity)
    number, step = sizes.cells.low.shape[1], sizes.cells.step
    flat = [array.reshape(-1, number, array.shape[-1]) for array in full]
    bits, cycles, more_bits, more_cycles, gain, power, speed, factor = flat
    rows = step * bits, step * cycles, more_bits, more_cycles, gain, power, speed, factor
    problems = [
        SizedEnergyCells(*arrays) for arrays in zip(*rows, band.reshape(-1, number), strict=True)
    ]
    goals = np.stack([array.reshape(-1) for array in end], axis=-1)
    if weights is not None:
        _check_offsets(problems, goals)
    shape = (number, full[0].shape[-1])
    return _solved(problems, shape, goals, sizes, bits_per_unit, start)


def _check_offsets(problems: list[SizedEnergyCells], weights: FloatArray) -> None:
    """Raise unless energy is convex in size and time: offsets are those of some units."""
    for row, cells in enumerate(problems):
        good = cells.offsets()[1]
        if weights[row, 1] > 0 and not good.all():
            raise ValueError(
                f"offset_bits and offset_cycles of cell {int((~good).argmin())} are not those of "
                "one number of units for all its clients, which weights need: give "
                "deadline_seconds, an array for the front of joules against seconds."
            )


def _solved(
    problems: list[SizedEnergyCells],
    shape: tuple[int, int],
    goals: FloatArray,
    sizes: Sizes,
    model: Any,
    start: float,
) -> Solution[MasksAndEnergy]:
    """Solve the problems, by the deadline or with the weights ``goals`` [problems, 1 or 2].

    ``shape`` is the number of cells and of clients per cell.
    """
    feasible = sizes.feasible()
    reasons: dict[int, str] = {}
    notes: dict[int, str] = {}
    values: list[MasksAndEnergy] = []
    objective, bound = [], []
    for row in np.flatnonzero(feasible):
        goal = goals[row].tolist()
        if len(goal) == 1:
            plan = by_deadline(problems[row], sizes, int(row), *goal)
        else:
            plan = by_weights(problems[row], sizes, int(row), *goal)
        if isinstance(plan, str):
            reasons[int(row)] = plan
            continue
        whole = (plan.steps * sizes.cells.step).astype(np.int64)
        bands, windows, powers, frequencies = plan.clients
        end = np.float64(plan.seconds)
        values.append(MasksAndEnergy(whole, bands, windows, powers, frequencies, end))
        objective.append(plan.objective)
        bound.append(plan.bound)
        if plan.message:
            notes[int(row)] = plan.message
    feasible[list(reasons)] = False
    texts = []
    if not feasible.all():
        worst = int((~feasible).argmax())
        texts.append(located(reasons.get(worst) or sizes.explain(worst), ~feasible, sizes.shape))
    if notes:
        noted = np.isin(np.arange(len(feasible)), list(notes))
        texts.append(located(notes[min(notes)], noted, sizes.shape, "have a note"))
    clients = np.zeros((0, *shape))
    sizes_only = np.zeros((0, shape[0]), np.int64)
    empty = MasksAndEnergy(sizes_only, clients, clients, clients, clients, np.zeros(0))
    value = MasksAndEnergy(*map(np.stack, zip(*values, strict=True))) if values else empty
    backend = "outer approximation" if (goals[:, 1:] > 0).any() else "marginals"
    return Outcome(value, np.array(objective), np.array(bound)).solution(
        feasible, sizes.shape, model, backend=backend, start=start, message="; ".join(texts)
    )
