"""What a design of a training costs on other channel draws."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray
from channels.plausible import noted
from solvers.training_rounds.grid_problem import read_problem
from solvers.training_rounds.grid_search import GridSearch
from solvers.training_rounds.optimize import TrainingRounds
from solvers.training_rounds.training_problem import TrainingProblem


class RoundCosts(NamedTuple):
    """Costs of a design.

    >>> import solvers
    >>> gain = [[1e9, 1e9], [1e8, 1e8]]
    >>> problem = solvers.TrainingProblem(1e4, 1e6, gain, 0.1, 1e9, 1e-28, [1e6, 1e6], 10)
    >>> design = solvers.optimize_rounds(
    ...     problem, [[90.0], [50.0]], local_steps=[1, 5], edge_rounds=[1]
    ... )
    >>> costs = solvers.evaluate_rounds(design.value, problem)
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
def evaluate_rounds(
    design: TrainingRounds,
    problem: TrainingProblem,
    *,
    weights: tuple[float, float] = (1.0, 0.0),
    max_seconds: float | None = None,
) -> RoundCosts:
    """Evaluate H, E and sizes of a design on channel draws, e.g. on draws that it has not seen.

    Each draw has the best bands, powers, clocks and ends of its own, as in ``optimize_rounds``.

    >>> import solvers
    >>> gain = [[1e9, 1e9], [1e8, 1e8]]
    >>> problem = solvers.TrainingProblem(1e4, 1e6, gain, 0.1, 1e9, 1e-28, [1e6, 1e6], 10)
    >>> design = solvers.optimize_rounds(
    ...     problem, [[90.0], [50.0]], local_steps=[1, 5], edge_rounds=[1]
    ... )
    >>> again = solvers.evaluate_rounds(design.value, problem)
    >>> abs(again.cost - design.objective) < 1e-9 * again.cost
    True

    Args:
        design: from ``optimize_rounds``.
        problem: the cells on the draws of interest; sizes are those of the design.
        weights, max_seconds: as for ``optimize_rounds``.

    Returns:
        Costs of the draws.
    """
    sizes = design.sizes
    grid = read_problem(
        replace(problem, total=int(sizes.sum()), cap=sizes, lower=sizes, granularity=1),
        [[design.rounds]],
        ([design.local_steps], [design.edge_rounds], None),
        (weights, max_seconds),
    )
    stuck = grid.named(np.ones(grid.shape[1]))
    if stuck:
        raise ValueError(f"the design cannot be evaluated: {stuck}.")
    search = GridSearch(grid)
    phases = search.phases((0, 0, 0), np.ones((1, grid.shape[1])))
    seconds = design.edge_rounds * phases.ends[0] + search.shared[0]
    joules = design.edge_rounds * phases.joules[0]
    cost = design.rounds * float((weights[0] * seconds + weights[1] * joules).mean())
    return RoundCosts(cost, seconds, joules, phases.late[0])
