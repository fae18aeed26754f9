"""What every solver returns: an answer, and what is known about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value")

PROVEN_GAP = 1e-6
"""Largest relative gap at which an objective counts as optimal, unless a solver states its own."""


class Status(Enum):
    """How a solve ended; a member's value is its text."""

    OPTIMAL = "optimal"
    ZERO = "optimal, and zero: a client cannot be heard"
    FEASIBLE = "feasible, not proven optimal"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown: the time limit came before any solution"

    @classmethod
    def of_gap(cls, gap: float, proven: float = PROVEN_GAP) -> Status:
        """The status of a feasible value: its gap decides, not how or when the backend stopped.

        Args:
            gap: relative gap between objective and proven bound, >= 0; NaN proves nothing.
            proven: largest gap of an optimum.
        """
        return cls.OPTIMAL if gap <= proven else cls.FEASIBLE


class SolverUnavailableError(RuntimeError):
    """A backend that is not installed, has no valid licence, or refuses a problem of this size."""


@dataclass(frozen=True, eq=False)
class Solution(Generic[Value]):
    """An answer with its certificate; for a batch, fields are arrays of the batch's shape.

    Args:
        value: the answer; None if there is none. Within a batch, -1 marks items without one.
        objective: value's objective, a float for one problem; infinite where there is no value.
        bound: proven bound on the best objective, of objective's type and unit.
        gap: |objective - bound| / |objective|, 0 where the two agree (also if both are infinite).
        status: a ``Status``; for a batch, an object array of them. A feasible value is OPTIMAL
            exactly where its gap is at most ``PROVEN_GAP``, or what its solver states instead.
        backend: name of the method that solved it.
        seconds: wall time of the solve.
        message: what else there is to say, e.g. the violated constraint and the shortfall.
    """

    value: Value | None
    objective: Any
    bound: Any
    gap: Any
    status: Status | NDArray[Any]
    backend: str
    seconds: float
    message: str = ""

    def __str__(self) -> str:
        """One line: status, objective, bound, backend, time, message."""
        if isinstance(self.status, Status):
            text = self.status.value
            if np.isfinite(self.objective):
                text += f"; objective {self.objective:.6g}, bound {self.bound:.6g}"
                text += f", gap {self.gap:.2g}"
        else:
            counts = Counter(status.value for status in self.status.flat)
            text = f"batch {self.status.shape}: "
            text += ", ".join(f"{count} {name}" for name, count in counts.items())
        text += f" [{self.backend}, {self.seconds:.3g} s]"
        return f"{text}; {self.message}" if self.message else text
