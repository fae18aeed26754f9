"""Backends by name or as objects; torch's default dtype, device and threads do not matter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

import solvers
from solvers import align_transmitters, optimize_beamformer, optimize_mask_sizes
from solvers.settings import settings_elsewhere
from solvers.torch_threads import torch_threads

H = [[1 + 1j, 2.0, 0.5j], [1j, 1.0, 1.0]]


@pytest.mark.parametrize("wrong", ["best", None, 3, ["exact"], int])
def test_errors_for_unknown_backends_list_names_and_classes(wrong):
    names = "choose one of exact, gurobi, highs, cvxpy"
    with pytest.raises(ValueError, match=f"^backend is .*{names}.*MaskSizeBackend class") as caught:
        optimize_mask_sizes([1.0, 2.0], 3, backend=wrong)
    assert "\n" not in str(caught.value)
    names = "choose one of default, anneal, mirror_prox, sca, sdr, branch_and_bound"
    with pytest.raises(ValueError, match=f"^backend is .*{names}.*BeamformerBackend class"):
        optimize_beamformer(H, backend=wrong)
    if wrong is not None:
        names = "choose one of sdr, exact"
        with pytest.raises(ValueError, match=f"^certificate is .*{names}.*Certificate class"):
            optimize_beamformer(H, certificate=wrong)


@pytest.mark.parametrize(
    ("call", "setting", "remedy"),
    [
        (optimize_beamformer, "starts", r"backend=Anneal\(starts=...\)"),
        (optimize_beamformer, "seed", r"backend=Anneal\(seed=...\)"),
        (optimize_beamformer, "time_limit_seconds", r"BranchAndBound\(time_limit_seconds=...\)"),
        (optimize_mask_sizes, "time_limit_seconds", r"backend=Highs\(time_limit_seconds=...\)"),
    ],
)
def test_backend_settings_are_rejected_as_arguments(call, setting, remedy):
    with pytest.raises(TypeError, match=rf"has no argument {setting}, .*{remedy}"):
        call([[1.0]], **{setting: 3})


def test_other_unknown_arguments_raise_the_usual_error():
    @settings_elsewhere(seed="Method(seed=...)")
    def solve(problem, *, cap=None):
        """Solve it."""
        return problem, cap

    assert solve(1, cap=2) == (1, 2)
    assert solve.__doc__ == "Solve it."
    with pytest.raises(TypeError, match="unexpected keyword argument 'cups'"):
        solve(1, cups=2)


def test_every_exported_name_can_be_loaded():
    """Every exported class can be loaded; beamforming loads its backends on first use."""
    for package in (solvers.beamforming, solvers.mask_sizes):
        for name in package.__all__:
            assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Genetic'"):
        _ = solvers.beamforming.Genetic


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def channels(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal((*shape, 2)).view(complex)[..., 0]


SOLVES: list[Callable[[], Any]] = [
    *(
        lambda backend=backend: optimize_beamformer(channels(2, 5, 3), backend=backend).value
        for backend in ("default", "mirror_prox", "branch_and_bound")
    ),
    lambda: optimize_beamformer(channels(2, 5, 2), certificate="sdr").value,
    *(
        lambda shape=shape, options=options: (
            align_transmitters(channels(*shape), 0.2, 1.0, 0.1, **options).value.transmit
        )
        for shape, options in (
            ((2, 5, 3), {"correlation": 0.5}),
            ((2, 5, 3), {"certificate": "exact"}),
            ((2, 5, 1), {}),
        )
    ),
]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("solve", SOLVES)
def test_default_dtype_and_device_have_no_effect(solve: Callable[[], Any]) -> None:
    expected = solve()
    with default_dtype(torch.float64):
        np.testing.assert_array_equal(solve(), expected)
    with torch.device("meta"):
        np.testing.assert_array_equal(solve(), expected)


def in_new_thread():
    with ThreadPoolExecutor(1) as new:
        return new.submit(torch.get_num_threads).result()


def test_other_threads_keep_their_number():
    usual = torch.get_num_threads()
    with ThreadPoolExecutor(1) as other:
        other.submit(torch.set_num_threads, usual + 1).result()
        assert in_new_thread() == usual + 1  # torch sets the number of new threads, too
        with torch_threads(usual + 2):
            with torch_threads(usual + 3):
                assert torch.get_num_threads() == usual + 3
            assert torch.get_num_threads() == usual + 2
            assert other.submit(torch.get_num_threads).result() == usual + 1
            assert in_new_thread() == usual + 1
        other.submit(torch.set_num_threads, usual).result()
    assert torch.get_num_threads() == in_new_thread() == usual


LATE = """
import threading, torch
from solvers.torch_threads import torch_threads

def count():
    threading.main_thread().join()
    with torch_threads(5):
        print(torch.get_num_threads())

threading.Thread(target=count).start()
"""


@pytest.mark.thorough
def test_threads_may_outlive_the_main_thread():
    ran = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("5\n", "")
