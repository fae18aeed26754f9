"""Results do not depend on torch's default dtype and device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from solvers import align_transmitters, optimize_beamformer


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
