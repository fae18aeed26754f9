"""What a design of a training costs on other channel draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray
from channels.plausible import noted
from solvers.load_rows import takes_load
from solvers.training_rounds.grid_search import GridSearch
from solvers.training_rounds.optimize import TrainingRounds
from solvers.training_rounds.training_problem import Bands, read_problem


class RoundCosts(NamedTuple):
    """Costs of a design.

    >>> import solvers
    >>> network = 1e4, 1e6, [[[1e9, 1e9], [1e8, 1e8]]], 0.1, 1e9, 1e-28, [1e6, 1e6]
    >>> design = solvers.optimize_rounds(
    ...     [[90.0], [50.0]], *network, 10, local_steps=[1, 5], edge_rounds=[1]
    ... )
    >>> costs = solvers.evaluate_rounds(design.value, *network)
    >>> costs.seconds.shape, costs.late.tolist()
    ((1,), [False])

    Args:
        cost: R x mean over draws of w_T seconds + w_E joules.
        seconds: of each draw's global round, [draws].
        joules: of all clients in each draw's global round, [draws].
        late: draws [draws] whose rounds take longer than max_seconds / R even at full power and
            speed; their seconds and joules are those at full power and speed.
    """

    cost: float
    seconds: FloatArray
    joules: FloatArray
    late: BoolArray


@noted
@takes_load
def evaluate_rounds(
    design: TrainingRounds,
    bits_per_unit: ArrayLike,
    cycles_per_unit: ArrayLike,
    gain_per_noise: ArrayLike,
    max_power_watts: ArrayLike,
    max_cpu_hz: ArrayLike,
    kappa: ArrayLike,
    bandwidth_hz: ArrayLike,
    *,
    weights: tuple[float, float] = (1.0, 0.0),
    max_seconds: float | None = None,
    offset_bits: ArrayLike = 0.0,
    offset_cycles: ArrayLike = 0.0,
    extra_seconds: ArrayLike = 0.0,
    extra_seconds_per_unit: ArrayLike = 0.0,
    start_seconds: ArrayLike = 0.0,
    start_seconds_per_unit: ArrayLike = 0.0,
    bands: Bands = "optimal",
) -> RoundCosts:
    """Evaluate H, E and sizes of a design on channel draws, e.g. on draws that it has not seen.

    Each draw has the best bands, powers, clocks and ends of its own, as in ``optimize_rounds``.

    >>> import solvers
    >>> network = 1e4, 1e6, [[[1e9, 1e9], [1e8, 1e8]]], 0.1, 1e9, 1e-28, [1e6, 1e6]
    >>> design = solvers.optimize_rounds(
    ...     [[90.0], [50.0]], *network, 10, local_steps=[1, 5], edge_rounds=[1]
    ... )
    >>> again = solvers.evaluate_rounds(design.value, *network)
    >>> abs(again.cost - design.objective) < 1e-9 * again.cost
    True

    A :class:`channels.Load` (per unit and, for cycles, per local step) and the
    :class:`channels.ChannelDraw` of its clients can replace the arrays of clients and bands.
    Clients are then in the order of ``Network.by_cell``.

    Args:
        design: from ``optimize_rounds``.
        bits_per_unit, cycles_per_unit, gain_per_noise, max_power_watts, max_cpu_hz, kappa,
            bandwidth_hz: as for ``optimize_rounds``, on the draws of interest.
        weights, max_seconds, offset_bits, offset_cycles, extra_seconds, extra_seconds_per_unit,
            start_seconds, start_seconds_per_unit, bands: as for ``optimize_rounds``.

    Returns:
        Costs of the draws.

    Raises:
        ValueError: an argument is out of range, shapes do not fit, or a client of the design
            cannot take part.
    """
    clients = {
        "bits_per_unit": bits_per_unit,
        "cycles_per_unit": cycles_per_unit,
        "offset_bits": offset_bits,
        "offset_cycles": offset_cycles,
        "gain_per_noise": gain_per_noise,
        "max_power_watts": max_power_watts,
        "max_cpu_hz": max_cpu_hz,
        "kappa": kappa,
    }
    sizes = design.sizes
    problem = read_problem(
        [[design.rounds]],
        clients,
        bandwidth_hz,
        int(sizes.sum()),
        ([design.local_steps], [design.edge_rounds], None),
        (weights, max_seconds),
        {
            "extra_seconds": extra_seconds,
            "extra_seconds_per_unit": extra_seconds_per_unit,
            "start_seconds": start_seconds,
            "start_seconds_per_unit": start_seconds_per_unit,
        },
        (sizes, sizes, 1),
        bands,
    )
    stuck = problem.named(np.ones(problem.shape[1]))
    if stuck:
        raise ValueError(f"the design cannot be evaluated: {stuck}.")
    search = GridSearch(problem)
    phases = search.phases((0, 0, 0), np.ones((1, problem.shape[1])))
    seconds = design.edge_rounds * phases.ends[0] + search.shared[0]
    joules = design.edge_rounds * phases.joules[0]
    cost = design.rounds * float((weights[0] * seconds + weights[1] * joules).mean())
    return RoundCosts(cost, seconds, joules, phases.late[0])
