"""Interface of the backends for mask sizes."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from solvers.backend import Backend
from solvers.mask_sizes.cell_steps import Floats
from solvers.mask_sizes.mask_size_problem import MaskSizeProblem


class FoundSizes(NamedTuple):
    """Result of a backend.

    >>> import numpy as np
    >>> from solvers.mask_sizes import FoundSizes
    >>> FoundSizes(np.array([[6.0, 2.0]]), bound=6.0).bound
    6.0

    Args:
        steps: steps of ``granularity`` units [problems, cells], integers within the bounds whose
            sum is the quota; None if the backend found none (single problem only).
        bound: proven lower bound on the objective in seconds: a number, or [problems] for a batch.
            A bound above the steps' latency is replaced by that latency, so a backend can return
            infinity for a proven optimum.
    """

    steps: Floats | None
    bound: float | Floats = 0.0


class MaskSizeBackend(Backend[MaskSizeProblem, FoundSizes]):
    """A method for ``optimize_mask_sizes``; it receives feasible problems only.

    >>> from dataclasses import dataclass
    >>> import solvers
    >>> from solvers.mask_sizes import FoundSizes, MaskSizeBackend
    >>> @dataclass(frozen=True)
    ... class InOrder(MaskSizeBackend):
    ...     # Gives each cell in turn as much as it can hold
    ...     name = "in-order"
    ...     def solve(self, problem):
    ...         steps, left = problem.cells.low.copy(), problem.quota - problem.cells.low.sum()
    ...         for cell, most in enumerate(problem.cells.high[0]):
    ...             more = min(left, most - steps[0, cell])
    ...             steps[0, cell], left = steps[0, cell] + more, left - more
    ...         return FoundSizes(steps)
    >>> solution = solvers.optimize_mask_sizes([1.0, 3.0], 8, cap=5, backend=InOrder())
    >>> solution.value.tolist(), solution.status.name
    ([5, 3], 'FEASIBLE')

    Attributes:
        batches: whether it solves batches of problems.
    """

    batches: ClassVar[bool] = False

    def obstacle(self) -> str | None:
        """The reason why the backend is unavailable, or None if it is available."""
        return None
