"""Settings of torch during a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_settings(threads: int) -> Iterator[None]:
    """Set all torch settings that affect rounding, and restore them at the end.

    On GPUs, convolutions use full float32 and deterministic algorithms.

    Args:
        threads: CPU threads of this process.
    """
    cudnn = torch.backends.cudnn
    before = torch.get_num_threads(), cudnn.allow_tf32, cudnn.deterministic
    torch.set_num_threads(threads)
    cudnn.allow_tf32, cudnn.deterministic = False, True
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        cudnn.allow_tf32, cudnn.deterministic = before[1:]
