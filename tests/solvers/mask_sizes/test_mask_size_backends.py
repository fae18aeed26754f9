"""Mask-size backends by name, as objects and as user classes; their settings are checked."""

from dataclasses import dataclass

import numpy as np
import pytest

from solvers import SolverUnavailableError, Status, available_backends, optimize_mask_sizes
from solvers.mask_sizes import Cvxpy, Exact, FoundSizes, Gurobi, Highs, MaskSizeBackend
from solvers.mask_sizes.milp import MilpAnswer, ProgramBackend

CLASSES = (Exact, Gurobi, Highs, Cvxpy)
SECONDS = [1.0, 2.0, 4.0]


def test_backend_names_are_those_of_the_classes():
    assert [kind.name for kind in CLASSES] == list(available_backends())


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", CLASSES, ids=[kind.name for kind in CLASSES])
@pytest.mark.parametrize("cap", [None, 60, 20])
def test_name_and_object_agree(kind, cap):
    reason = available_backends()[kind.name]
    if reason:
        pytest.skip(reason)
    one, other = (
        optimize_mask_sizes(SECONDS, 100, cap=cap, backend=backend)
        for backend in (kind.name, kind())
    )
    assert (one.value is None) == (other.value is None) == (cap == 20)
    assert np.array_equal(one.value, other.value)
    for field in ("objective", "bound", "gap", "status", "backend", "message"):
        assert getattr(one, field) == getattr(other, field)


def test_the_exact_method_has_no_settings():
    assert Exact() == Exact()
    with pytest.raises(TypeError, match="time_limit_seconds"):
        Exact(time_limit_seconds=1)


@dataclass(frozen=True)
class Even(MaskSizeBackend):
    """Equal sizes; the first cells get the remainder."""

    name = "even"
    batches = True

    bound: float = 0.0
    extra: int = 0

    def solve(self, problem):
        count = problem.cells.low.shape[-1]
        whole, rest = divmod(problem.quota + self.extra, count)
        steps = np.full(problem.cells.low.shape, float(whole))
        steps[:, :rest] += 1
        return FoundSizes(steps, self.bound)


def test_a_user_defined_backend_works():
    best = optimize_mask_sizes(SECONDS, 100)
    mine = optimize_mask_sizes(SECONDS, 100, backend=Even())
    assert mine.value.tolist() == [34, 33, 33]
    assert mine.backend == "even"
    assert (mine.objective, mine.bound, mine.gap) == (132.0, 0.0, 1.0)
    assert mine.status is Status.FEASIBLE
    proven = optimize_mask_sizes(SECONDS, 100, backend=Even(bound=best.objective))
    assert proven.gap == (132.0 - best.objective) / 132.0
    assert optimize_mask_sizes(SECONDS, 9, granularity=3, backend=Even()).value.tolist() == [3] * 3


def test_a_user_defined_backend_solves_batches():
    """The second problem is infeasible, and the bound proves the third solution optimal."""
    seconds = np.array([[1.0, 2.0], [1.0, 1.0], [3.0, 3.0]])
    cap = np.array([[9.0], [4.0], [9.0]])
    mine = optimize_mask_sizes(seconds, 10, cap=cap, backend=Even(bound=15.0))
    alone = [
        optimize_mask_sizes(c, 10, cap=k, backend=Even(bound=15.0))
        for c, k in zip(seconds, cap, strict=True)
    ]
    assert mine.value.tolist() == [[5, 5], [-1, -1], [5, 5]]
    for field in ("objective", "bound", "gap", "status"):
        assert getattr(mine, field).tolist() == [getattr(single, field) for single in alone]
    assert mine.status.tolist() == [Status.OPTIMAL, Status.INFEASIBLE, Status.OPTIMAL]
    looser = optimize_mask_sizes(seconds[[0, 2]], 10, backend=Even(bound=7.5))
    assert looser.gap.tolist() == [0.25, 0.5]
    assert (looser.status == Status.FEASIBLE).all()


@pytest.mark.parametrize("seconds", [SECONDS, [SECONDS, SECONDS]])
@pytest.mark.parametrize("bound", [float("nan"), -1.0])
def test_an_invalid_bound_is_replaced_by_zero(seconds, bound):
    mine = optimize_mask_sizes(seconds, 100, backend=Even(bound=bound))
    assert (np.array(mine.status) == Status.FEASIBLE).all()
    assert (np.array(mine.bound) == 0).all()
    assert (np.array(mine.gap) == 1).all()


def test_sizes_that_violate_bounds_or_sum_are_rejected():
    for seconds in (SECONDS, [SECONDS, SECONDS]):
        with pytest.raises(RuntimeError, match="backend 'even' returned sizes that violate"):
            optimize_mask_sizes(seconds, 100, backend=Even(extra=1))
        with pytest.raises(RuntimeError, match="backend 'even' returned sizes that violate"):
            optimize_mask_sizes(seconds, 100, cap=[20, 90, 90], backend=Even())


@dataclass(frozen=True)
class Fixed(MaskSizeBackend):
    """A backend that returns given steps."""

    name = "fixed"
    batches = True

    steps: tuple[float, ...] | None = None

    def solve(self, problem):
        return FoundSizes(None if self.steps is None else np.array([self.steps]))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((4.5, 5.5), "returned sizes that violate"),
        ((5.0,), r"returned steps of shape \(1, 1\) for cells of shape \(1, 2\)"),
        ((-1.0, 11.0), "returned sizes that violate"),
        ((float("nan"), 5.0), "returned sizes that violate"),
    ],
)
def test_invalid_steps_are_rejected(steps, message):
    with pytest.raises(RuntimeError, match=f"backend 'fixed' {message}"):
        optimize_mask_sizes([1.0, 1.0], 10, backend=Fixed(steps))


def test_no_steps_give_status_unknown():
    assert optimize_mask_sizes([1.0, 1.0], 10, backend=Fixed()).status is Status.UNKNOWN
    with pytest.raises(RuntimeError, match="backend 'fixed' returned no sizes for a batch"):
        optimize_mask_sizes([[1.0, 1.0]], 10, backend=Fixed())


@dataclass(frozen=True)
class Cheapest(ProgramBackend):
    """A program backend that gives all units to the first cell; it can be made unavailable."""

    name = "cheapest"
    missing = False

    @classmethod
    def check(cls):
        if cls.missing:
            raise SolverUnavailableError("it is missing")

    def run(self, program):
        steps = np.zeros(len(program.low))
        steps[0] = program.quota
        return MilpAnswer(steps, None, finished=False)


@dataclass(frozen=True)
class Unavailable(Cheapest):
    missing = True


def test_a_user_defined_program_backend_works():
    """If the backend gives no bound, the bound is 0 and the status FEASIBLE."""
    mine = optimize_mask_sizes([1.0, 1000.0], 10, backend=Cheapest(time_limit_seconds=1))
    assert mine.value.tolist() == [10, 0]
    assert mine.objective == 10.0
    assert mine.bound == 0.0
    assert mine.status is Status.FEASIBLE
    with pytest.raises(ValueError, match="backend 'cheapest' solves one problem"):
        optimize_mask_sizes([[1.0, 1000.0]], 10, backend=Cheapest())
    with pytest.raises(SolverUnavailableError, match="backend 'cheapest': it is missing"):
        optimize_mask_sizes([1.0, 1000.0], 10, backend=Unavailable())


@dataclass(frozen=True)
class Listed(MaskSizeBackend):
    """A backend that returns a list instead of an array."""

    name = "listed"

    def solve(self, problem):
        return FoundSizes([[5.0, 5.0]])


def test_steps_must_be_an_array():
    with pytest.raises(RuntimeError, match="backend 'listed' returned steps of type list: it must"):
        optimize_mask_sizes([1.0, 1.0], 10, backend=Listed())
