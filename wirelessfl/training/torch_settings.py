"""Settings of torch during a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from channels.concurrency import SharedContext
from solvers.torch_threads import torch_threads


@contextmanager
def torch_settings(threads: int) -> Iterator[None]:
    """Set all torch settings that affect rounding, and restore them at the end.

    Products and convolutions use full float32, and those of GPUs deterministic algorithms.

    Args:
        threads: CPU threads of the calling thread's operations.
    """
    with torch_threads(threads), _of_all_threads:
        yield


@contextmanager
def _exact() -> Iterator[None]:
    cudnn = torch.backends.cudnn
    before = cudnn.allow_tf32, cudnn.deterministic
    precision = _products()
    cudnn.allow_tf32, cudnn.deterministic = False, True
    if precision != "highest":
        torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        cudnn.allow_tf32, cudnn.deterministic = before
        if precision != "highest":
            torch.set_float32_matmul_precision(precision)


def _products() -> str:
    """Torch's precision of products; "highest" where a caller has set it by operation instead."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to name several in one word
        return "highest"


_of_all_threads = SharedContext(_exact)
"""Settings that torch has for all threads; all runs need the same."""
