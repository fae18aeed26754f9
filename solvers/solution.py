"""The result type of every solver: a value with its objective, bound and status."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from channels.summaries import ROWS, cells_of, html_table

Value = TypeVar("Value")

PROVEN_GAP = 1e-6
"""Maximum relative gap of an optimal solution, unless a solver states another."""


class Status(Enum):
    """Outcome of a solve; a member's value is its description. Members are ordered, best first.

    >>> import solvers
    >>> solvers.optimize_mask_sizes([1.0, 3.0], 8, cap=2).status is solvers.Status.INFEASIBLE
    True
    """

    OPTIMAL = "optimal"
    ZERO = "optimal, and zero: a client's channel is zero"
    FEASIBLE = "feasible, not proven optimal"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown: no solution within the time limit or numerical precision"

    def __lt__(self, other: object) -> bool:
        """Whether it comes first in the order of the definitions, for ``np.unique`` of a batch."""
        if not isinstance(other, Status):
            return NotImplemented
        order = list(Status)
        return order.index(self) < order.index(other)

    @classmethod
    def of_gap(cls, gap: float, proven: float = PROVEN_GAP) -> Status:
        """The status of a feasible value; it depends on the gap only, not on the backend's exit.

        Args:
            gap: relative gap between objective and proven bound, >= 0; NaN gives FEASIBLE.
            proven: maximum gap of an optimal solution.
        """
        return cls.OPTIMAL if gap <= proven else cls.FEASIBLE


class SolverUnavailableError(RuntimeError):
    """A backend is not installed, has no valid licence, or cannot solve this problem."""


@dataclass(frozen=True, eq=False)
class Solution(Generic[Value]):
    """A solution with its certificate; for a batch, fields are arrays of the batch's shape.

    >>> import solvers
    >>> solution = solvers.optimize_mask_sizes([1.0, 3.0], 8)
    >>> solution.value.tolist(), float(solution.objective), float(solution.gap)
    ([6, 2], 6.0, 0.0)

    Args:
        value: the solution; None if there is none. In a batch, -1 (False in Boolean arrays) marks
            items without a solution.
        objective: objective of ``value``, a float for one problem; infinite if there is no value.
        bound: proven bound on the best objective, with the type and unit of ``objective``; NaN for
            none.
        gap: |objective - bound| / |objective|; 0 if the two are equal (also if both are infinite).
        status: a ``Status``; for a batch, an object array of them. A feasible value is OPTIMAL
            if and only if its gap is at most ``PROVEN_GAP`` or the limit that its solver states.
        backend: name of the method that solved the problem.
        seconds: wall-clock seconds of the solve.
        message: further information, e.g. the violated constraint and the shortfall.
    """

    value: Value | None
    objective: Any
    bound: Any
    gap: Any
    status: Status | NDArray[Any]
    backend: str
    seconds: float
    message: str = ""

    def __repr__(self) -> str:
        """One line, without the value."""
        return f"<Solution: {self}>"

    def _repr_html_(self) -> str:
        status = np.asarray(self.status, dtype=object).reshape(-1)
        columns = {
            "status": [state.value for state in status[:ROWS]],
            "objective": cells_of(self.objective, ".6g"),
            "bound": cells_of(self.bound, ".6g"),
            "gap": cells_of(self.gap, ".2g"),
        }
        if isinstance(self.status, np.ndarray):
            columns = {"item": [str(place) for place in range(len(status[:ROWS]))]} | columns
        title = f"{self.backend}, {self.seconds:.3g} s"
        title += f"; {self.message}" if self.message else ""
        return html_table(title, columns, len(status))

    def __str__(self) -> str:
        """One line: status, objective, bound if there is one, backend, time, message.

        Of a batch: its shape, the number of items by status, the range of the finite objectives,
        and the largest gap.
        """
        if isinstance(self.status, Status):
            text = self.status.value
            if np.isfinite(self.objective):
                text += f"; objective {self.objective:.6g}"
                if not np.isnan(self.bound):
                    text += f", bound {self.bound:.6g}, gap {self.gap:.2g}"
        else:
            counts = Counter(status.value for status in self.status.flat)
            text = f"batch {self.status.shape}: "
            text += ", ".join(f"{count} {name}" for name, count in counts.items())
            text += _ranges(self.objective, self.gap)
        text += f" [{self.backend}, {self.seconds:.3g} s]"
        return f"{text}; {self.message}" if self.message else text


def _ranges(objective: Any, gap: Any) -> str:
    """The range of the finite objectives of a batch, and the largest gap."""
    finite = np.asarray(objective, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if not finite.size:
        return ""
    low, high = f"{finite.min():.6g}", f"{finite.max():.6g}"
    text = f"; objective {low}" if low == high else f"; objective {low} to {high}"
    gaps = np.asarray(gap, dtype=np.float64)
    gaps = gaps[np.isfinite(gaps)]
    return f"{text}, largest gap {gaps.max():.2g}" if gaps.size else text
