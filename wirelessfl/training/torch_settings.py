"""Settings of torch during a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from channels.concurrency import SharedContext
from solvers.torch_threads import torch_threads


@contextmanager
def torch_settings(threads: int) -> Iterator[None]:
    """Set all torch settings that affect rounding, and restore them at the end.

    Products and convolutions use full float32, and those of GPUs deterministic algorithms. Warnings
    that ask to report operations without a batching rule are off, since clients need no such rule.

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
    warn_of_fallbacks(False)
    try:
        yield
    finally:
        warn_of_fallbacks(True)
        cudnn.allow_tf32, cudnn.deterministic = before
        if precision != "highest":
            torch.set_float32_matmul_precision(precision)


def warn_of_fallbacks(enabled: bool) -> None:
    """Whether ``torch.vmap`` warns of operations that it computes one by one; it does by default.

    Torch cannot tell whether a caller has turned the warnings off.
    """
    functorch: Any = torch._C._functorch
    functorch._set_vmap_fallback_warning_enabled(enabled)


def _products() -> str:
    """Torch's precision of products; "highest" where a caller has set it by operation instead."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to name several in one word
        return "highest"


_of_all_threads = SharedContext(_exact)
"""Settings that torch has for all threads; all runs need the same."""
