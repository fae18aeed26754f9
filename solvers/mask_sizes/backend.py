"""What backends of mask sizes are given, and what they return."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from solvers.backend import Backend
from solvers.mask_sizes.cells import Floats
from solvers.mask_sizes.problem import Problem


class Found(NamedTuple):
    """What a backend found.

    Args:
        steps: whole steps of ``granularity`` units [problems, cells] within the bounds, which add
            up to the quota; None if there are none, for a single problem.
        bound: proven lower bound on the objective in seconds: a number, or [problems] for a batch.
            Above what the steps take it counts as that, so that infinity marks proven optima.
    """

    steps: Floats | None
    bound: float | Floats = 0.0


class MaskSizeBackend(Backend[Problem, Found]):
    """A method for ``optimize_mask_sizes``; it gets feasible problems only.

    Attributes:
        batches: whether it takes more than one problem at once.
    """

    batches: ClassVar[bool] = False

    def obstacle(self) -> str | None:
        """Why it cannot be used here, None if it can."""
        return None
