"""Interface of the backends for mask sizes."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from solvers.backend import Backend
from solvers.mask_sizes.cells import Floats
from solvers.mask_sizes.problem import Problem


class Found(NamedTuple):
    """Result of a backend.

    Args:
        steps: steps of ``granularity`` units [problems, cells], integers within the bounds whose
            sum is the quota; None if the backend found none (single problem only).
        bound: proven lower bound on the objective in seconds: a number, or [problems] for a batch.
            A bound above the steps' latency is replaced by that latency, so a backend can return
            infinity for a proven optimum.
    """

    steps: Floats | None
    bound: float | Floats = 0.0


class MaskSizeBackend(Backend[Problem, Found]):
    """A method for ``optimize_mask_sizes``; it receives feasible problems only.

    Attributes:
        batches: whether it solves batches of problems.
    """

    batches: ClassVar[bool] = False

    def obstacle(self) -> str | None:
        """The reason why the backend is unavailable, or None if it is available."""
        return None
