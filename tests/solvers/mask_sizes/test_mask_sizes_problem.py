"""Mask sizes: messages for invalid arguments and infeasible problems."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from solvers import Status, available_backends, optimize_mask_sizes

C = [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cap": 30.9}, "caps add up to 90 units, 10 units short of total 100"),
        ({"cap": [10, 20, 69]}, "caps add up to 99 units, 1 unit short of total 100"),
        (
            {"cap": 33.5},
            "caps add up to 99 units, 1 unit short of total 100; "
            "rounding to multiples of 1 causes this",
        ),
        (
            {"cap": 34, "granularity": 5},
            "caps add up to 90 units, 10 units short of total 100; "
            "rounding to multiples of 5 causes this",
        ),
        ({"lower": 40}, "lower bounds add up to 120 units, 20 units more than total 100"),
        (
            {"lower": 33, "granularity": 5},
            "lower bounds add up to 105 units, 5 units more than total 100; "
            "rounding to multiples of 5 causes this",
        ),
        (
            {"lower": [0, 12, 0], "cap": [90, 7, 90]},
            "cell 1 must train at least 12 units and at most 7 units: 5 units short",
        ),
        (
            {"lower": [0, 11, 0], "cap": [90, 14, 90], "granularity": 5},
            "cell 1 must train at least 15 units and at most 10 units: 5 units short; "
            "rounding to multiples of 5 causes this",
        ),
        (
            {"granularity": 3},
            "total 100 is not a multiple of granularity 3: 1 unit too many, or 2 units too few",
        ),
    ],
)
@pytest.mark.parametrize("backend", ["exact", "highs"])
def test_infeasibility_messages_name_constraint_and_shortfall(given, message, backend):
    solution = optimize_mask_sizes(C, 100, backend=backend, **given)
    assert solution.status is Status.INFEASIBLE
    assert solution.value is None
    assert solution.objective == solution.bound == np.inf
    assert solution.message == message
    assert str(solution).startswith("infeasible")
    assert message in str(solution)


def test_infeasible_items_of_a_batch():
    cap = np.array([[[50.0], [10.0]], [[33.4], [40.0]]])
    solution = optimize_mask_sizes(np.ones((2, 2, 3)), 100, cap=cap)
    infeasible = np.array([[False, True], [True, False]])
    assert np.array_equal(solution.status == Status.INFEASIBLE, infeasible)
    assert (solution.value[infeasible] == -1).all()
    assert (solution.value[~infeasible].sum(-1) == 100).all()
    assert np.array_equal(np.isinf(solution.objective), infeasible)
    assert (solution.gap == 0).all()
    assert solution.message == (
        "2 of 4 problems are infeasible; item [0, 1]: "
        "caps add up to 30 units, 70 units short of total 100"
    )
    assert "2 optimal, 2 infeasible" in str(solution)


@pytest.mark.parametrize(
    ("seconds", "given", "message"),
    [
        ([1, 1, 1, 0.0], {}, "seconds_per_unit[3] is 0.0: a cell needs a positive latency per "
         "unit. Is its data rate infinite?"),
        ([[1, 1], [1, np.inf]], {}, "seconds_per_unit[1, 1] is inf: a cell needs a finite latency"),
        ([1, 1e-200], {}, "seconds_per_unit[1] is 1e-200: give seconds from 1e-100 to 1e+100, or"),
        ([], {}, "seconds_per_unit has shape (0,): give [..., cells] with at least one cell."),
        (np.ones((3, 0)), {}, "seconds_per_unit has shape (3, 0)"),
        (1.0, {}, "seconds_per_unit has shape ()"),
        ([True], {}, "seconds_per_unit has dtype bool"),
        (C, {"cap": [1, 2]}, "cap has shape (2,): give one number, or values that broadcast to "
         "(3,), one per cell."),
        (C, {"cap": [[1, 2, 3]] * 2}, "cap has shape (2, 3)"),
        (C, {"cap": np.full((1, 3), 50)}, "cap has shape (1, 3)"),
        (C, {"cap": [9, 9, np.nan]}, "cap[2] is nan"),
        (C, {"cap": -1}, "cap is -1.0: give a number >= 0."),
        (C, {"lower": np.inf}, "lower is inf: give a number from 0 to 1.1259e+15."),
        (C, {"total": True}, "total is True"),
        ([C, C], {"backend": "highs"}, "backend 'highs' solves one problem, but seconds_per_unit "
         "is a batch of shape (2,): use backend 'exact'"),
    ],
)  # fmt: skip
def test_errors_name_argument_and_value(seconds, given, message):
    def solve(total=10, backend="exact", **more):
        made = backend() if callable(backend) else backend
        optimize_mask_sizes(seconds, total, backend=made, **more)

    with pytest.raises(ValueError, match=re.escape(message)):
        solve(**given)


@pytest.mark.parametrize(
    ("seconds", "total", "sizes"),
    [
        ([3.0], 7, [7]),
        ([1.0, 2.0], 0, [0, 0]),
        ([1, 2], np.int32(3), [2, 1]),
        (torch.tensor([1, 2]), torch.tensor(3), [2, 1]),
        (np.array([1e-100, 1e100]), 2**50, [2**50, 0]),
        (np.array([1.0, 2.0], dtype=np.float16), 3, [2, 1]),
    ],
)
def test_unusual_arguments_are_accepted(seconds, total, sizes):
    assert optimize_mask_sizes(seconds, total).value.tolist() == sizes


def test_import_is_quick():
    """Importing the package and solving NumPy input load neither torch nor any other solver."""
    code = (
        "import sys, solvers; solvers.optimize_mask_sizes([1.0, 2.0], 3);"
        "print({'torch', 'scipy', 'cvxpy', 'gurobipy'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "set()"


def test_backends_are_listed():
    backends = available_backends()
    assert list(backends) == ["exact", "gurobi", "highs", "cvxpy"]
    assert backends["exact"] is backends["highs"] is backends["cvxpy"] is None
