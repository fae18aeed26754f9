"""Settings of torch during a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

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
    cudnn, operations = torch.backends.cudnn, _operations()
    with ExitStack() as stack:
        for operation in operations:
            stack.callback(_set_precision, operation, operation.fp32_precision)
        stack.callback(setattr, cudnn, "deterministic", cudnn.deterministic)
        # Torch refuses to tell these two if the operations have different precisions.
        with suppress(RuntimeError):
            stack.callback(setattr, cudnn, "allow_tf32", cudnn.allow_tf32)
        with suppress(RuntimeError):
            precision = torch.get_float32_matmul_precision()
            stack.callback(torch.set_float32_matmul_precision, precision)
        cudnn.allow_tf32, cudnn.deterministic = False, True
        torch.set_float32_matmul_precision("highest")
        for operation in operations:
            if operation.fp32_precision != "none":
                _set_precision(operation, "ieee")
        yield


def _operations() -> list[Any]:
    """Operations that have a precision each, since torch 2.9."""
    libraries = torch.backends.cudnn, torch.backends.mkldnn
    names = "matmul", "conv", "rnn"
    parts: list[Any] = [getattr(library, name, None) for library in libraries for name in names]
    return [
        part for part in (torch.backends.cuda.matmul, *parts) if hasattr(part, "fp32_precision")
    ]


def _set_precision(operation: Any, precision: str) -> None:
    if operation.fp32_precision != precision:
        operation.fp32_precision = precision


_of_all_threads = SharedContext(_exact)
"""Settings that torch has for all threads; all runs need the same."""
