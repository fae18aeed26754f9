"""Widths: error messages for invalid and infeasible problems, and torch input."""

import numpy as np
import pytest
import torch

from solvers import Status, coverage_frontier, fastest_widths, widths_by_deadline


def test_infeasibility_messages_state_the_shortfall():
    seconds = [[1, 2], [3, 5]]
    solution = fastest_widths(seconds, [[2, 5], [3, 8]], 3)
    assert solution.message == (
        "layer 1: coverage 3 needs at least 3 clients; with 2 clients at full width (8 "
        "neurons), 8 neurons are missing"
    )
    assert str(solution).startswith("infeasible")
    solution = widths_by_deadline([[1, 2], [3, 5], [4, 4]], [2, 5], 2.5)
    assert solution.message == (
        "2 of 3 clients miss the deadline of 2.5 seconds even at level 0; the slowest, client "
        "2, needs 4.0 seconds"
    )
    assert fastest_widths(seconds, [2, 5], 10**30).status is Status.INFEASIBLE


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64])
def test_torch_input_gives_torch_output(dtype):
    seconds, neurons = torch.tensor([[1, 2, 4], [3, 6, 12]], dtype=dtype), torch.tensor([2, 4, 8])
    plain = seconds.numpy(), neurons.numpy()
    for solve, last in (
        (fastest_widths, (1,)),
        (widths_by_deadline, (6,)),
        (coverage_frontier, ()),
    ):
        ours, numpys = solve(seconds, neurons, *last), solve(*plain, *last)
        assert isinstance(ours.value, torch.Tensor)
        assert isinstance(numpys.value, np.ndarray)
        assert np.array_equal(ours.value.numpy(), numpys.value)
        assert np.array_equal(np.asarray(ours.objective), numpys.objective)
        assert isinstance(solve(plain[0], neurons, *last).value, np.ndarray)


@pytest.mark.parametrize(
    ("seconds", "neurons", "message"),
    [
        ([1, 2], [1, 2], r"seconds has shape \(2,\): give \[clients, levels\] with at least"),
        ([[], []], [1, 2], r"seconds has shape \(2, 0\)"),
        ([[1, np.inf]], [1, 2], r"seconds\[0, 1\] is inf: .* omit clients and levels that"),
        (
            [[1, 2, 3], [1, 5, 4]],
            [1, 2, 3],
            r"seconds\[1, 2\] is 4.0, less than 5.0 at the previous level: sort",
        ),
        ([[1, 2]], [1, 2, 3], r"neurons has shape \(3,\): give .* with the 2 levels of seconds"),
        ([[1, 2]], [[[1, 2]]], r"neurons has shape \(1, 1, 2\)"),
        ([[1, 2]], np.ones((0, 2)), r"neurons has shape \(0, 2\)"),
        ([[1, 2]], [1, 2**31], r"neurons\[1\] is 2147483648.0"),
        (
            [[1, 2]],
            [[1, 2], [4, 3]],
            r"neurons\[1, 1\] is 3.0, less than 4.0 at the previous level",
        ),
    ],
)
def test_invalid_problems_are_rejected(seconds, neurons, message):
    for solve, last in (
        (fastest_widths, (1,)),
        (widths_by_deadline, (1,)),
        (coverage_frontier, ()),
    ):
        with pytest.raises(ValueError, match=message):
            solve(seconds, neurons, *last)
