"""Solutions of batches in which a method fails for some problems."""

from __future__ import annotations

import numpy as np
import pytest

from solvers import Status
from solvers.outcome import Outcome

FEASIBLE = np.array([True, False, True, True])


def test_a_nan_is_unknown_and_says_so() -> None:
    found = Outcome(np.eye(3), np.array([1.0, np.nan, 2.0]), np.array([1.0, np.nan, 1.0]))
    solution = found.solution(FEASIBLE, (4,), None, backend="b", start=0.0, message="why")
    assert solution.status.tolist() == [
        Status.OPTIMAL,
        Status.INFEASIBLE,
        Status.UNKNOWN,
        Status.FEASIBLE,
    ]
    np.testing.assert_array_equal(solution.objective, [1, np.inf, np.inf, 2])
    np.testing.assert_array_equal(solution.value[[0, 3]], np.eye(3)[[0, 2]])
    assert (solution.value[1:3] == -1).all()
    assert solution.message.startswith("why; rounding errors leave no solution of 1 of 4 problems")


def test_statuses_of_a_batch_can_be_counted() -> None:
    """They are in the order of their definitions."""
    status = np.array([Status.INFEASIBLE, Status.OPTIMAL, Status.INFEASIBLE, Status.FEASIBLE])
    values, counts = np.unique(status, return_counts=True)
    assert values.tolist() == [Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE]
    assert counts.tolist() == [1, 1, 2]
    with pytest.raises(TypeError, match="'<' not supported"):
        assert Status.OPTIMAL < "optimal"


@pytest.mark.parametrize("objective", [np.nan, 1.0])
def test_one_problem(objective: float) -> None:
    found = Outcome(np.ones((1, 2)), np.array([objective]), np.array([1.0]))
    solution = found.solution(np.array([True]), (), None, backend="b", start=0.0)
    if np.isnan(objective):
        assert solution.status is Status.UNKNOWN
        assert solution.value is None
        assert "rounding errors" in str(solution)
    else:
        assert solution.status is Status.OPTIMAL
        assert not solution.message


def test_gaps_of_infinite_and_zero_objectives_raise_no_warning() -> None:
    """An infinite objective is no solution; at 0 any other bound is infinitely far away."""
    objective, bound = np.array([np.inf, 0.0, 0.0, 2.0]), np.array([np.inf, 0.0, -1.0, -np.inf])
    found = Outcome(np.ones((4, 1)), objective, bound)
    solution = found.solution(np.ones(4, dtype=bool), (4,), None, backend="b", start=0.0)
    np.testing.assert_array_equal(solution.gap, [np.inf, 0, np.inf, np.inf])
    assert solution.status.tolist() == [
        Status.UNKNOWN,
        Status.OPTIMAL,
        Status.FEASIBLE,
        Status.FEASIBLE,
    ]


def test_a_batch_is_shown_by_its_ranges() -> None:
    """In one line, without the values; infinite objectives are not a part of the range."""
    found = Outcome(np.eye(3), np.array([1.0, 4.0, 2.0]), np.array([1.0, 3.0, 2.0]))
    solution = found.solution(FEASIBLE, (4,), None, backend="b", start=0.0, message="why")
    assert repr(solution).startswith("<Solution: batch (4,): 2 optimal, 1 infeasible, 1 feasible")
    assert "; objective 1 to 4, largest gap 0.25 [b, " in repr(solution)
    nothing = Outcome(np.empty((0, 3)), np.empty(0), np.empty(0))
    none = nothing.solution(np.zeros(4, dtype=bool), (4,), None, backend="b", start=0.0)
    assert "objective" not in repr(none)
